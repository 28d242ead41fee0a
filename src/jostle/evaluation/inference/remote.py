"""Models that are loaded elsewhere, such as on a GPU of a cluster, while videos are decoded and corrupted here.

A stand-in has the face of the model and sends on what it is given: frames as bytes, features, scores back. The model
works in the same batches as if it were here, so results have the same bits.
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
from jostle.evaluation.inference.deferred_corruption import strikes, struck_parts
from jostle.evaluation.inference.frame_sampling import Spread, Starts
from jostle.features.deferred_corruption import UNTOUCHED, Strike
from jostle.models.extractors.protocol import Features

TOGETHER = 4  # clips of a worker in one question: they are struck in one go, and few questions fill a batch


class Ask(Protocol):
    """Has something done where a look with its models was loaded.

    `serving.client.Served` does that on this machine, `cluster.model_actors.Served` on a cluster.
    """

    def __hash__(self) -> int:
        """What it answers is kept."""

    def __call__(self, function: Callable[..., Any], /, *arguments: object) -> Any:
        """What `function(look, *arguments)` gives there."""

    def later(self, function: Callable[..., Any], /, *arguments: object, together: int = 1) -> Callable[[], Any]:
        """Ask, and go on; what is given back waits for the answer.

        Args:
            together: rows of the first argument that `function.together` may answer at once, of this and of other
                questions like it.
        """


@dataclass(frozen=True)
class Shown:
    """What a model wants to see, as far as those have to know who show it."""

    frames: int
    stride: int = 1
    step: int = 1
    fps: float | None = None
    spread: Spread = "step"
    clips: int | None = None
    starts: Starts = "ends"

    @classmethod
    def of(cls, spec: Any) -> Shown | None:
        """Of the spec that a model has, if it has one."""
        if spec is None:
            return None
        return cls(**{one.name: getattr(spec, one.name) for one in fields(cls) if hasattr(spec, one.name)})


@dataclass(frozen=True)
class Extracting:
    """An extractor where it was loaded, for those who make features elsewhere."""

    extractor: Any
    guard: Callable[[], AbstractContextManager[None]] = nullcontext


def extracting(load: Callable[[], Any], guard: Callable[[], AbstractContextManager[None]]) -> Extracting:
    """Load an extractor where it is to be asked."""
    return Extracting(load(), guard)


def extractor_from_afar(ask: Ask) -> DistantExtractor:
    """What makes features here with an extractor that is there."""
    extractor: DistantExtractor = look_from_afar(ask).extractor
    return extractor


def look_from_afar(ask: Ask) -> Any:
    """What looks at videos here with models that are there: the same look with stand-ins for them."""
    return ask(_with_stand_ins, ask)


def _with_stand_ins(look: Any, ask: Ask) -> Any:
    """Called where the models are: what it gives may travel, as only their faces are in it."""
    new: dict[str, Any] = {"guard": nullcontext}  # the context to work in is where the models are
    for part in (one.name for one in fields(look)):
        model = getattr(look, part)
        if part == "extractor":
            spec = Shown.of(model.spec)
            assert spec is not None
            at_once = getattr(model, "at_once", (1, 1))
            flow = getattr(model, "sees_flow", False)
            maker = getattr(model, "flow_maker", None) if flow else None  # it knows torch, which others do without
            new[part] = DistantExtractor(ask, spec, model.dim, model.frame_dim, at_once, flow, maker)
        elif part == "detector" and hasattr(model, "seen_of"):
            new[part] = DistantClipDetector(ask, ClipLength(model.config.max_length))
        elif part == "detector":
            new[part] = DistantDetector(ask, getattr(model, "at_once", 1))
        elif part == "mending" and model is not None:
            new[part] = model.on("cpu")  # it looks at frames where they are corrupted
        elif part == "model":
            most = getattr(look, "batch", 1)
            new[part] = DistantModel(ask, getattr(model, "name", ""), Shown.of(getattr(model, "spec", None)), most)
        elif part == "batch":
            new[part] = min(model, TOGETHER)
    return replace(look, **new)


@dataclass(frozen=True)
class DistantExtractor:
    """Stands in for an extractor.

    Attributes:
        at_once: frames and windows that it looks at together.
        sees_flow: whether it is shown optical flow too.
        flow_maker: makes that here; None for an extractor whose own way does not travel.
    """

    ask: Ask
    spec: Shown
    dim: int
    frame_dim: int | None
    at_once: tuple[int, int] = (1, 1)
    sees_flow: bool = False
    flow_maker: Callable[[Frames, Frames], Frames] | None = None

    def __call__(self, clip_frames: Frames, *flow: Frames) -> Features:
        """(B, dim) from (B, T, H, W, 3) uint8, and for a network that sees it the flow (B, T, H', W', 2)."""
        return self.later("", clip_frames, *flow)()

    def flow(self, first: Frames, second: Frames) -> Frames:
        """(N, H', W', 2) uint8: optical flow from each of the first frames to the second."""
        if self.flow_maker is not None:
            return self.flow_maker(first, second)
        made: Frames = self.ask(_flow, first, second)
        return made

    def see(self, frames: Frames) -> Features:
        """(N, frame_dim) from (N, H, W, 3) uint8."""
        return self.later("see", frames)()

    def join(self, seen: Features) -> Features:
        """(B, dim) from (B, T, frame_dim)."""
        joined: Features = self.ask.later(_join, seen, together=self.at_once[1])()
        return joined

    def later(self, what: str, *shown: Frames, strike: Strike = UNTOUCHED) -> Callable[[], Features]:
        """What is made of windows, or with `see` of frames that are struck there first, to be waited for."""
        if what == "see":
            return self.ask.later(_see, *shown, strike, together=self.at_once[0])
        return self.ask.later(_extract, *shown)

    def strikes(self, spec: str) -> bool:
        """Whether frames are struck by this corruption where the extractor is, and are to go there untouched."""
        return _strikes_there(self.ask, "extractor", spec)


@dataclass(frozen=True)
class Facts:
    """What a detector is told of a video beside its features; it need not be the same of those it looks at together."""

    told: dict[str, Any]
    kind: ClassVar[str] = ""


@dataclass(frozen=True)
class DistantDetector:
    """Stands in for a detector.

    Attributes:
        at_once: videos that it looks at together.
    """

    ask: Ask
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
        """What it finds."""
        facts = {"fps": fps, "duration": duration, "stride": stride, "window": window, "video_scores": video_scores}
        return self.later(features, **facts)()

    def later(self, features: npt.ArrayLike, **facts: Any) -> Callable[[], Segments]:
        """What it finds, to be waited for."""
        return self.ask.later(_detect, np.asarray(features)[None], Facts(facts), together=self.at_once)


@dataclass(frozen=True)
class ClipLength:
    """What of a detector's settings those have to know who show it frames."""

    max_length: int


@dataclass(frozen=True)
class DistantClipDetector:
    """Stands in for a detector of frames. What it has seen of a frame is kept here, as bytes."""

    ask: Ask
    config: Any

    def wanted(self, count: int, fps: float) -> tuple[npt.NDArray[np.int64], float]:
        """Which frames are looked at, and how many those are a second."""
        wanted: tuple[npt.NDArray[np.int64], float] = self.ask(_of_detector, "wanted", (count, fps))
        return wanted

    def clips(self, count: int) -> list[int]:
        """First frames of the clips."""
        firsts: list[int] = self.ask(_of_detector, "clips", (count,))
        return firsts

    def seen_of(self, frames: npt.ArrayLike) -> list[Any]:
        """What is seen of each frame: bytes, and of what numbers."""
        seen, numbers = self.ask(_seen_of, np.asarray(frames))
        return [(row, numbers) for row in seen]

    def deepened(self, seen: Sequence[Any], beside: Any = None) -> Sequence[Any]:
        """What was seen of a clip; deeper layers look at it where the detector is, at all of it."""
        return list(seen)

    def found_in(self, deep: Sequence[Any]) -> Any:
        """The candidates of a clip."""
        return self.ask(_found_in, np.stack([row for row, _ in deep]), deep[0][1])

    def gathered(self, parts: Sequence[tuple[int, Any]], count: int) -> Any:
        """The candidates of a video."""
        return self.ask(_of_detector, "gathered", (list(parts), count))

    def seconds_of(
        self, found: Any, rate: float, duration: float, video_scores: npt.ArrayLike | None = None
    ) -> Segments:
        """What suppression leaves."""
        segments: Segments = self.ask(_of_detector, "seconds_of", (found, rate, duration, video_scores))
        return segments


@dataclass(frozen=True)
class DistantModel:
    """Stands in for what scores clips, or finds something in frames.

    Attributes:
        most: clips that it looks at together.
    """

    ask: Ask
    name: str
    spec: Shown | None
    most: int = 1

    def __call__(self, frames: Frames, **facts: Any) -> Any:
        """What it gives for these frames."""
        return self.ask(_call, frames, facts)

    def strikes(self, spec: str) -> bool:
        """Whether clips are struck by this corruption where the model is, and are to go there untouched."""
        return _strikes_there(self.ask, "model", spec)

    def later(self, frames: Frames, strike: Strike = UNTOUCHED) -> Callable[[], Any]:
        """What it gives for frames that are struck there first, to be waited for."""
        return self.ask.later(_show, frames, strike, together=self.most)


def _extract(look: Any, clip_frames: Frames, *flow: Frames) -> Features:
    with look.guard():
        features: Features = look.extractor(clip_frames, *flow)
        return features


def _flow(look: Any, first: Frames, second: Frames) -> Frames:
    with look.guard():
        made: Frames = look.extractor.flow(first, second)
        return made


def _see(look: Any, frames: Frames, strike: Strike) -> Features:
    if strike.spec:
        return _see_together(look, [(frames, strike)])[0]
    with look.guard():
        seen: Features = look.extractor.see(frames)  # all that one from elsewhere has
        return seen


def _join(look: Any, seen: Features) -> Features:
    with look.guard():
        joined: Features = look.extractor.join(seen)
        return joined


def _see_together(look: Any, questions: Sequence[tuple[Frames, Strike]]) -> list[Features]:
    with look.guard():
        seen: list[Features] = look.extractor.see_together(struck_parts(look.extractor, questions))
        return seen


def _join_together(look: Any, questions: Sequence[tuple[Features]]) -> list[Features]:
    with look.guard():
        joined: list[Features] = look.extractor.join_together([seen for (seen,) in questions])
        return joined


_see.together = _see_together  # type: ignore[attr-defined]
_join.together = _join_together  # type: ignore[attr-defined]


def _detect(look: Any, features: Features, facts: Facts) -> Segments:
    with look.guard():
        found: Segments = look.detector.detect(features[0], **facts.told)
        return found


def _detect_together(look: Any, questions: Sequence[tuple[Features, Facts]]) -> list[Segments]:
    with look.guard():
        videos, facts = zip(*((features[0], facts.told) for features, facts in questions), strict=True)
        found: list[Segments] = look.detector.detect_together(videos, facts)
        return found


_detect.together = _detect_together  # type: ignore[attr-defined]


def _of_detector(look: Any, method: str, arguments: tuple[Any, ...]) -> Any:
    with look.guard():
        return getattr(look.detector, method)(*arguments)


def _seen_of(look: Any, frames: Frames) -> tuple[npt.NDArray[np.uint8], str]:
    with look.guard():
        carried: tuple[npt.NDArray[np.uint8], str] = look.detector.carried(look.detector.seen_of(frames))
        return carried


def _found_in(look: Any, seen: npt.NDArray[np.uint8], numbers: str) -> Any:
    with look.guard():
        return look.detector.found_in(look.detector.deepened([*look.detector.brought_back(seen, numbers)]))


def _call(look: Any, frames: Frames, facts: dict[str, Any]) -> Any:
    from jostle.evaluation.inference.detection import accepting

    with look.guard():
        return accepting(look.model, facts)(frames)


@lru_cache(1024)
def _strikes_there(ask: Ask, part: str, spec: str) -> bool:
    """Asked once for each corruption."""
    answer: bool = ask(_strikes, part, spec)
    return answer


def _strikes(look: Any, part: str, spec: str) -> bool:
    return strikes(getattr(look, part), spec)


def _show(look: Any, frames: Frames, strike: Strike) -> Any:
    return _show_together(look, [(frames, strike)])[0]


def _show_together(look: Any, questions: Sequence[tuple[Frames, Strike]]) -> list[Any]:
    with look.guard():
        parts = struck_parts(look.model, questions)
        if hasattr(look.model, "together"):
            answers: list[Any] = look.model.together(parts)
            return answers
        given, ends = look.model(np.concatenate(parts)), np.cumsum([len(part) for part in parts]).tolist()
        return [given[begin:end] for begin, end in zip((0, *ends), ends, strict=False)]


_show.together = _show_together  # type: ignore[attr-defined]
