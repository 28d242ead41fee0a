"""Proxies for models loaded in another process, such as on a GPU of a cluster, while videos are decoded here.

A proxy has the interface of the model and forwards its arguments: frames as bytes, features, scores back. The model
works in the same batches as if it were local, so results are bit-identical.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from jostle.core.types.clip import Frames
from jostle.core.types.segments import Segments
from jostle.evaluation.inference.deferred_corruption import can_corrupt_on_device, corrupt_inputs
from jostle.evaluation.inference.frame_sampling import Spread, Starts
from jostle.features.deferred_corruption import NO_CORRUPTION, DeferredCorruption
from jostle.models.extractors.protocol import Features

TOGETHER = 4  # clips of a worker per request: they are corrupted together, and few requests fill a batch


class RemoteCall(Protocol):
    """Protocol of calls to the process that holds a predictor with its models.

    `serving.client.Served` does that on this machine, `cluster.model_actors.Served` on a cluster.
    """

    def __hash__(self) -> int:
        """Return a hash: answers are cached by it."""

    def __call__(self, function: Callable[..., Any], /, *arguments: object) -> Any:
        """Return `function(predictor, *arguments)`, computed there."""

    def submit(self, function: Callable[..., Any], /, *arguments: object, together: int = 1) -> Callable[[], Any]:
        """Send a request without waiting; the returned function waits for the answer.

        Args:
            together: rows of the first argument that `function.together` may process in one call, of this and of
                similar requests.
        """


@dataclass(frozen=True)
class RemoteInputSpec:
    """Clip settings of a remote model, as far as decoding and sampling need them."""

    frames: int
    stride: int = 1
    step: int = 1
    fps: float | None = None
    spread: Spread = "step"
    clips: int | None = None
    starts: Starts = "ends"

    @classmethod
    def of(cls, spec: Any) -> RemoteInputSpec | None:
        """Copy the fields of a model's spec, if it has one."""
        if spec is None:
            return None
        return cls(**{one.name: getattr(spec, one.name) for one in fields(cls) if hasattr(spec, one.name)})


@dataclass(frozen=True)
class LoadedExtractor:
    """Extractor in the process that loaded it, called by workers in other processes."""

    extractor: Any
    guard: Callable[[], AbstractContextManager[None]] = nullcontext


def load_extractor_predictor(
    load: Callable[[], Any], guard: Callable[[], AbstractContextManager[None]]
) -> LoadedExtractor:
    """Load an extractor in the process that serves it."""
    return LoadedExtractor(load(), guard)


def connect_extractor(ask: RemoteCall) -> RemoteExtractor:
    """Return a proxy for the extractor that a remote process holds."""
    extractor: RemoteExtractor = connect_predictor(ask).extractor
    return extractor


def connect_predictor(ask: RemoteCall) -> Any:
    """Return the remote predictor with proxies in place of its models."""
    return ask(_replace_models_by_proxies, ask)


def _replace_models_by_proxies(predictor: Any, ask: RemoteCall) -> Any:
    """Return a picklable copy of a predictor with proxies for its models; runs where the models are."""
    changes: dict[str, Any] = {"guard": nullcontext}  # the guard is entered where the models are
    for part in (one.name for one in fields(predictor)):
        model = getattr(predictor, part)
        if part == "extractor":
            spec = RemoteInputSpec.of(model.spec)
            assert spec is not None
            at_once = getattr(model, "at_once", (1, 1))
            flow = getattr(model, "sees_flow", False)
            # It imports torch, which workers otherwise avoid.
            maker = getattr(model, "flow_maker", None) if flow else None
            changes[part] = RemoteExtractor(ask, spec, model.dim, model.frame_dim, at_once, flow, maker)
        elif part == "detector" and hasattr(model, "encode_frames"):
            changes[part] = RemoteClipDetector(ask, ClipLength(model.config.max_length))
        elif part == "detector":
            changes[part] = RemoteDetector(ask, getattr(model, "at_once", 1))
        elif part == "mending" and model is not None:
            changes[part] = model.to("cpu")  # it runs where frames are corrupted
        elif part == "model":
            most = getattr(predictor, "batch", 1)
            changes[part] = RemoteModel(
                ask, getattr(model, "name", ""), RemoteInputSpec.of(getattr(model, "spec", None)), most
            )
        elif part == "batch":
            changes[part] = min(model, TOGETHER)
    return replace(predictor, **changes)


@dataclass(frozen=True)
class RemoteExtractor:
    """Proxy for a remote extractor.

    Attributes:
        at_once: frames and windows per batch.
        sees_flow: whether it also takes optical flow.
        flow_maker: computes the flow locally; None for an extractor whose method cannot be pickled.
    """

    ask: RemoteCall
    spec: RemoteInputSpec
    dim: int
    frame_dim: int | None
    at_once: tuple[int, int] = (1, 1)
    sees_flow: bool = False
    flow_maker: Callable[[Frames, Frames], Frames] | None = None

    def __call__(self, clip_frames: Frames, *flow: Frames) -> Features:
        """Return (B, dim) features of (B, T, H, W, 3) uint8 clips, with flow (B, T, H', W', 2) where it is used."""
        return self.submit("", clip_frames, *flow)()

    def flow(self, first: Frames, second: Frames) -> Frames:
        """Return (N, H', W', 2) uint8 optical flow from each of the first frames to the second."""
        if self.flow_maker is not None:
            return self.flow_maker(first, second)
        flow: Frames = self.ask(_flow, first, second)
        return flow

    def see(self, frames: Frames) -> Features:
        """Return (N, frame_dim) encodings of (N, H, W, 3) uint8 frames."""
        return self.submit("see", frames)()

    def join(self, encodings: Features) -> Features:
        """Return (B, dim) features of (B, T, frame_dim) encodings."""
        joined: Features = self.ask.submit(_join, encodings, together=self.at_once[1])()
        return joined

    def submit(
        self, what: str, *inputs: Frames, deferred: DeferredCorruption = NO_CORRUPTION
    ) -> Callable[[], Features]:
        """Submit windows, or with `see` frames to corrupt there first; the returned function waits."""
        if what == "see":
            return self.ask.submit(_see, *inputs, deferred, together=self.at_once[0])
        return self.ask.submit(_extract, *inputs)

    def can_corrupt(self, spec: str) -> bool:
        """Whether this corruption is applied where the extractor is, so that frames are sent clean."""
        return _corrupts_remotely(self.ask, "extractor", spec)


@dataclass(frozen=True)
class DetectionOptions:
    """Keyword arguments of a detector call; they may differ between requests of one batch."""

    options: dict[str, Any]
    kind: ClassVar[str] = ""


@dataclass(frozen=True)
class RemoteDetector:
    """Proxy for a remote feature detector.

    Attributes:
        at_once: videos per batch.
    """

    ask: RemoteCall
    at_once: int = 1

    def detect(
        self,
        features: npt.ArrayLike,
        *,
        fps: float,
        duration: float,
        stride: float = 4,
        window: float = 16,
        video_scores: npt.ArrayLike | None = None,
    ) -> Segments:
        """Return the segments of a video."""
        facts = {"fps": fps, "duration": duration, "stride": stride, "window": window, "video_scores": video_scores}
        return self.submit(features, **facts)()

    def submit(self, features: npt.ArrayLike, **facts: Any) -> Callable[[], Segments]:
        """Submit the features of a video; the returned function waits for its segments."""
        return self.ask.submit(_detect, np.asarray(features)[None], DetectionOptions(facts), together=self.at_once)


@dataclass(frozen=True)
class ClipLength:
    """Settings of a detector that workers need to send it frames."""

    max_length: int


@dataclass(frozen=True)
class RemoteClipDetector:
    """Proxy for a remote frame detector; frame encodings are kept by the worker, as bytes."""

    ask: RemoteCall
    config: Any

    def sample_indices(self, count: int, fps: float) -> tuple[npt.NDArray[np.int64], float]:
        """Return the indices of the frames to process, and their rate."""
        sampled: tuple[npt.NDArray[np.int64], float] = self.ask(_call_detector, "sample_indices", (count, fps))
        return sampled

    def clips(self, count: int) -> list[int]:
        """Return the first frame of each clip."""
        firsts: list[int] = self.ask(_call_detector, "clips", (count,))
        return firsts

    def encode_frames(self, frames: npt.ArrayLike) -> list[Any]:
        """Encode each frame, as bytes with their dtype."""
        encodings, numbers = self.ask(_encode_frames, np.asarray(frames))
        return [(row, numbers) for row in encodings]

    def encode_clip(self, encodings: Sequence[Any], beside: Any = None) -> Sequence[Any]:
        """Return the encodings unchanged; the remaining layers run where the detector is."""
        return list(encodings)

    def detect_clip(self, deep: Sequence[Any]) -> Any:
        """Return the candidates of a clip."""
        return self.ask(_detect_clip, np.stack([row for row, _ in deep]), deep[0][1])

    def merge_clips(self, parts: Sequence[tuple[int, Any]], count: int) -> Any:
        """Merge the candidates of clips into those of the video."""
        return self.ask(_call_detector, "merge_clips", (list(parts), count))

    def to_seconds(
        self, candidates: Any, rate: float, duration: float, video_scores: npt.ArrayLike | None = None
    ) -> Segments:
        """Apply suppression, and return segments in seconds."""
        segments: Segments = self.ask(_call_detector, "to_seconds", (candidates, rate, duration, video_scores))
        return segments


@dataclass(frozen=True)
class RemoteModel:
    """Proxy for a remote recogniser or object detector.

    Attributes:
        most: clips per batch.
    """

    ask: RemoteCall
    name: str
    spec: RemoteInputSpec | None
    most: int = 1

    def __call__(self, frames: Frames, **facts: Any) -> Any:
        """Return the model's output for frames."""
        return self.ask(_call, frames, facts)

    def can_corrupt(self, spec: str) -> bool:
        """Whether this corruption is applied where the model is, so that clips are sent clean."""
        return _corrupts_remotely(self.ask, "model", spec)

    def submit(self, frames: Frames, deferred: DeferredCorruption = NO_CORRUPTION) -> Callable[[], Any]:
        """Submit frames to corrupt there first; the returned function waits for the output."""
        return self.ask.submit(_predict, frames, deferred, together=self.most)


def _extract(predictor: Any, clip_frames: Frames, *flow: Frames) -> Features:
    with predictor.guard():
        features: Features = predictor.extractor(clip_frames, *flow)
        return features


def _flow(predictor: Any, first: Frames, second: Frames) -> Frames:
    with predictor.guard():
        flow: Frames = predictor.extractor.flow(first, second)
        return flow


def _see(predictor: Any, frames: Frames, deferred: DeferredCorruption) -> Features:
    if deferred.spec:
        return _see_together(predictor, [(frames, deferred)])[0]
    with predictor.guard():
        encodings: Features = predictor.extractor.see(frames)  # the only method that a user's extractor has
        return encodings


def _join(predictor: Any, encodings: Features) -> Features:
    with predictor.guard():
        joined: Features = predictor.extractor.join(encodings)
        return joined


def _see_together(predictor: Any, requests: Sequence[tuple[Frames, DeferredCorruption]]) -> list[Features]:
    with predictor.guard():
        encodings: list[Features] = predictor.extractor.see_together(corrupt_inputs(predictor.extractor, requests))
        return encodings


def _join_together(predictor: Any, requests: Sequence[tuple[Features]]) -> list[Features]:
    with predictor.guard():
        joined: list[Features] = predictor.extractor.join_together([encodings for (encodings,) in requests])
        return joined


_see.together = _see_together  # type: ignore[attr-defined]
_join.together = _join_together  # type: ignore[attr-defined]


def _detect(predictor: Any, features: Features, facts: DetectionOptions) -> Segments:
    with predictor.guard():
        segments: Segments = predictor.detector.detect(features[0], **facts.options)
        return segments


def _detect_together(predictor: Any, requests: Sequence[tuple[Features, DetectionOptions]]) -> list[Segments]:
    with predictor.guard():
        videos, facts = zip(*((features[0], facts.options) for features, facts in requests), strict=True)
        segments: list[Segments] = predictor.detector.detect_together(videos, facts)
        return segments


_detect.together = _detect_together  # type: ignore[attr-defined]


def _call_detector(predictor: Any, method: str, arguments: tuple[Any, ...]) -> Any:
    with predictor.guard():
        return getattr(predictor.detector, method)(*arguments)


def _encode_frames(predictor: Any, frames: Frames) -> tuple[npt.NDArray[np.uint8], str]:
    with predictor.guard():
        encoded: tuple[npt.NDArray[np.uint8], str] = predictor.detector.to_bytes(
            predictor.detector.encode_frames(frames)
        )
        return encoded


def _detect_clip(predictor: Any, encodings: npt.NDArray[np.uint8], numbers: str) -> Any:
    with predictor.guard():
        return predictor.detector.detect_clip(
            predictor.detector.encode_clip([*predictor.detector.from_bytes(encodings, numbers)])
        )


def _call(predictor: Any, frames: Frames, facts: dict[str, Any]) -> Any:
    from jostle.evaluation.inference.detection import bind_supported_arguments

    with predictor.guard():
        return bind_supported_arguments(predictor.model, facts)(frames)


@lru_cache(1024)
def _corrupts_remotely(ask: RemoteCall, part: str, spec: str) -> bool:
    """Whether a remote model applies a corruption; asked once per corruption."""
    answer: bool = ask(_can_corrupt, part, spec)
    return answer


def _can_corrupt(predictor: Any, part: str, spec: str) -> bool:
    return can_corrupt_on_device(getattr(predictor, part), spec)


def _predict(predictor: Any, frames: Frames, deferred: DeferredCorruption) -> Any:
    return _predict_together(predictor, [(frames, deferred)])[0]


def _predict_together(predictor: Any, requests: Sequence[tuple[Frames, DeferredCorruption]]) -> list[Any]:
    with predictor.guard():
        parts = corrupt_inputs(predictor.model, requests)
        if hasattr(predictor.model, "together"):
            answers: list[Any] = predictor.model.together(parts)
            return answers
        outputs, ends = predictor.model(np.concatenate(parts)), np.cumsum([len(part) for part in parts]).tolist()
        return [outputs[begin:end] for begin, end in zip((0, *ends), ends, strict=False)]


_predict.together = _predict_together  # type: ignore[attr-defined]
