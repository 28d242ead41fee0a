"""Proxies for models loaded in another process, such as on a GPU of a cluster, while videos are decoded here.

A proxy has the interface of the model and forwards its arguments: frames as bytes, features, scores back. The model
works in batches of the same size as if it were local, in which rows do not depend on each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, fields, replace
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from jostle.core.interruption import exits_as_errors
from jostle.core.types.clip import Frames
from jostle.core.types.segments import Segments
from jostle.evaluation.inference.feature_detection import check_segments
from jostle.evaluation.recipes.sampling import RemoteInputSpec
from jostle.features.deferred_corruption import (
    DeferredCorruption,
    DeferredCorruptions,
    can_corrupt_on_device,
    corrupt_copies,
    corrupt_to_host,
)
from jostle.mending.loading import on_cpu
from jostle.models.extractors.protocol import Features
from jostle.parallel.serving.model_client import ModelClient

TOGETHER = 4  # clips of a worker per request: they are corrupted together, and few requests fill a batch


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


def connect_extractor(ask: ModelClient) -> RemoteExtractor:
    """Return a proxy for the extractor that a remote process holds."""
    extractor: RemoteExtractor = connect_predictor(ask).extractor
    return extractor


def connect_predictor(ask: ModelClient) -> Any:
    """Return the remote predictor with proxies in place of its models."""
    return ask(_replace_models_by_proxies, ask)


def _replace_models_by_proxies(predictor: Any, ask: ModelClient) -> Any:
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
            changes[part] = on_cpu(model)  # it runs where frames are corrupted
        elif part == "model":
            most = getattr(predictor, "batch", 1)
            changes[part] = RemoteModel(
                ask, getattr(model, "name", ""), RemoteInputSpec.of(getattr(model, "spec", None)), most
            )
        elif part == "language_model":
            changes[part] = RemoteLanguageModel(ask, model.frames)
        elif part == "batch":
            changes[part] = min(model, TOGETHER)
    return replace(predictor, **changes)


def _call_method(predictor: Any, part: str, method: str, *arguments: Any) -> Any:
    """Call a method of one of a predictor's models; runs where the models are."""
    with predictor.guard():
        return getattr(getattr(predictor, part), method)(*arguments)


def _forward(part: str, method: str) -> Callable[..., Any]:
    """Return the method of a proxy that calls the model's method of that name."""
    return lambda proxy, *arguments: proxy.ask(_call_method, part, method, *arguments)


@dataclass(frozen=True)
class RemoteExtractor:
    """Proxy for a remote extractor."""

    ask: ModelClient
    spec: RemoteInputSpec
    dim: int
    frame_dim: int | None
    at_once: tuple[int, int] = (1, 1)  # frames and windows per batch
    sees_flow: bool = False  # whether it also takes optical flow
    # Computes the flow locally; None for an extractor whose method cannot be pickled.
    flow_maker: Callable[[Frames, Frames], Frames] | None = None

    def __call__(self, clip_frames: Frames, *flow: Frames) -> Features:
        """Return (B, dim) features of (B, T, H, W, 3) uint8 clips, with flow (B, T, H', W', 2) where it is used."""
        return self.submit("", clip_frames, *flow)()

    def flow(self, first: Frames, second: Frames) -> Frames:
        """Return (N, H', W', 2) uint8 optical flow from each of the first frames to the second."""
        flow: Frames = (self.flow_maker or partial(self.ask, _call_method, "extractor", "flow"))(first, second)
        return flow

    def see(self, frames: Frames) -> Features:
        """Return (N, frame_dim) encodings of (N, H, W, 3) uint8 frames."""
        return self.submit("see", frames)()

    def join(self, encodings: Features) -> Features:
        """Return (B, dim) features of (B, T, frame_dim) encodings."""
        return self.submit("join", encodings)()

    def submit(
        self,
        method: str,
        *inputs: npt.NDArray[Any],
        corruptions: DeferredCorruptions = DeferredCorruptions(),  # noqa: B008
    ) -> Callable[[], Features]:
        """Submit the inputs of a method, empty for a call; the returned function waits for the output.

        Args:
            corruptions: of the frames of `see`, applied there; the outputs follow one another.
        """
        if method == "see":
            return self.ask.submit(_see, *inputs, corruptions, together=self.at_once[0])
        if method == "join":
            return self.ask.submit(_join, *inputs, together=self.at_once[1])
        return self.ask.submit(_call_method, "extractor", "__call__", *inputs)

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
    """Proxy for a remote feature detector."""

    ask: ModelClient
    at_once: int = 1  # videos per batch

    def detect(self, features: npt.ArrayLike, **facts: Any) -> Segments:
        """Return the segments of a video."""
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
    """Proxy for a remote `ClipDetector`; frame encodings are kept by the worker, as bytes."""

    ask: ModelClient
    config: Any

    sample_indices, clips = _forward("detector", "sample_indices"), _forward("detector", "clips")
    merge_clips, to_seconds = _forward("detector", "merge_clips"), _forward("detector", "to_seconds")

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


@dataclass(frozen=True)
class RemoteLanguageModel:
    """Proxy for a remote model that answers questions or finds sentences."""

    ask: ModelClient
    frames: int  # number of frames that it wants

    def answer(self, questions: Sequence[Any], corruption: DeferredCorruption | None = None) -> Any:
        """Answer questions about the same frames, corrupted there first."""
        return self.ask(_ask_about, "answer", questions, corruption)

    def locate(self, sentences: Sequence[Any], corruption: DeferredCorruption | None = None) -> Any:
        """Find sentences in the same frames, corrupted there first."""
        return self.ask(_ask_about, "locate", sentences, corruption)

    def can_corrupt(self, spec: str) -> bool:
        """Whether this corruption is applied where the model is, so that frames are sent clean."""
        return _corrupts_remotely(self.ask, "language_model", spec)


@dataclass(frozen=True)
class RemoteModel:
    """Proxy for a remote recogniser or object detector."""

    ask: ModelClient
    name: str
    spec: RemoteInputSpec | None
    most: int = 1  # clips per batch

    def __call__(self, frames: Frames, **facts: Any) -> Any:
        """Return the model's output for frames."""
        return self.ask(_call, frames, facts)

    def can_corrupt(self, spec: str) -> bool:
        """Whether this corruption is applied where the model is, so that clips are sent clean."""
        return _corrupts_remotely(self.ask, "model", spec)

    def submit(self, frames: Frames, corruptions: DeferredCorruptions = DeferredCorruptions()) -> Callable[[], Any]:  # noqa: B008
        """Submit frames; the returned function waits for the output, of each corruption one after the other."""
        return self.ask.submit(_predict, frames, corruptions, together=self.most)


def _ask_about(predictor: Any, method: str, asked: Sequence[Any], corruption: DeferredCorruption | None) -> Any:
    """Ask about frames that all questions or sentences share."""
    with exits_as_errors(), predictor.guard():
        if corruption is not None:
            frames = corrupt_to_host(predictor.language_model.device, asked[0].frames, corruption)
            asked = [replace(one, frames=frames) for one in asked]
        return getattr(predictor.language_model, method)(asked)


def _see(predictor: Any, frames: Frames, corruptions: DeferredCorruptions) -> Any:
    if corruptions:
        return _see_together(predictor, [(frames, corruptions)])[0]
    return _call_method(predictor, "extractor", "see", frames)  # the only method that a user's extractor has


def _join(predictor: Any, encodings: Features) -> Any:
    return _call_method(predictor, "extractor", "join", encodings)


def _see_together(predictor: Any, requests: Sequence[tuple[Frames, DeferredCorruptions]]) -> list[Features]:
    with exits_as_errors(), predictor.guard():
        parts = corrupt_copies(predictor.extractor, requests)
        return _split_copies(np.concatenate(predictor.extractor.see_together(parts)), requests)


def _join_together(predictor: Any, requests: Sequence[tuple[Features]]) -> list[Features]:
    with exits_as_errors(), predictor.guard():
        joined: list[Features] = predictor.extractor.join_together([encodings for (encodings,) in requests])
        return joined


_see.together = _see_together  # type: ignore[attr-defined]
_join.together = _join_together  # type: ignore[attr-defined]


def _detect(predictor: Any, features: Features, facts: DetectionOptions) -> Segments:
    with predictor.guard():
        return check_segments(predictor.detector.detect(features[0], **facts.options))


def _detect_together(predictor: Any, requests: Sequence[tuple[Features, DetectionOptions]]) -> list[Segments]:
    with exits_as_errors(), predictor.guard():
        videos, facts = zip(*((features[0], facts.options) for features, facts in requests), strict=True)
        segments: list[Segments] = predictor.detector.detect_together(videos, facts)
        return segments


_detect.together = _detect_together  # type: ignore[attr-defined]


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
        return predictor.check(bind_supported_arguments(predictor.model, facts)(frames))


@lru_cache(1024)
def _corrupts_remotely(ask: ModelClient, part: str, spec: str) -> bool:
    """Whether a remote model applies a corruption; requested once per corruption."""
    answer: bool = ask(_can_corrupt, part, spec)
    return answer


def _can_corrupt(predictor: Any, part: str, spec: str) -> bool:
    return can_corrupt_on_device(getattr(predictor, part), spec)


def _predict(predictor: Any, frames: Frames, corruptions: DeferredCorruptions) -> Any:
    return _predict_together(predictor, [(frames, corruptions)])[0]


def _predict_together(predictor: Any, requests: Sequence[tuple[Frames, DeferredCorruptions]]) -> list[Any]:
    with exits_as_errors(), predictor.guard():
        parts = corrupt_copies(predictor.model, requests)
        if hasattr(predictor.model, "together"):
            outputs = np.concatenate(predictor.model.together(parts))
        else:
            outputs = predictor.model(np.concatenate(parts))
        return _split_copies(outputs, requests)


def _split_copies(outputs: Any, requests: Sequence[tuple[Frames, DeferredCorruptions]]) -> list[Any]:
    """Split the outputs of a batch into those of each request."""
    ends = np.cumsum([len(frames) * corruptions.copies for frames, corruptions in requests]).tolist()
    return [outputs[begin:end] for begin, end in zip((0, *ends), ends, strict=False)]


_predict.together = _predict_together  # type: ignore[attr-defined]
