"""Models that are loaded elsewhere, such as on a GPU of a cluster, while videos are decoded and corrupted here.

A stand-in has the face of the model and sends on what it is given: frames as bytes, features, scores back. The model
works in the same batches as if it were here, so results have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from jostle.extraction.extractor import Features
from jostle.looking.shown_frames import Spread, Starts
from jostle.types.clip import Frames
from jostle.types.segments import Segments


class Ask(Protocol):
    """Has something done where a look with its models was loaded.

    `jostle.feeding.asking.Served` does that on this machine, `jostle.cluster.serving.Served` on a cluster.

    Attributes:
        gathers: whether questions of many are put together there.
    """

    @property
    def gathers(self) -> bool: ...

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
        return cls(**{field.name: getattr(spec, field.name) for field in fields(cls) if hasattr(spec, field.name)})


def look_from_afar(ask: Ask) -> Any:
    """What looks at videos here with models that are there: the same look with stand-ins for them."""
    return ask(_with_stand_ins, ask)


def _with_stand_ins(look: Any, ask: Ask) -> Any:
    """Called where the models are: what it gives may travel, as only their faces are in it."""
    new: dict[str, Any] = {"guard": nullcontext}  # the context to work in is where the models are
    for part in (field.name for field in fields(look)):
        model = getattr(look, part)
        if part == "extractor":
            spec = Shown.of(model.spec)
            assert spec is not None
            new[part] = DistantExtractor(ask, spec, model.dim, model.frame_dim)
        elif part == "detector":
            new[part] = DistantDetector(ask)
        elif part == "model":
            most = getattr(look, "batch", 1)
            new[part] = DistantModel(ask, getattr(model, "name", ""), Shown.of(getattr(model, "spec", None)), most)
        elif part == "batch" and ask.gathers:
            new[part] = 1
    return replace(look, **new)


@dataclass(frozen=True)
class DistantExtractor:
    """Stands in for an extractor."""

    ask: Ask
    spec: Shown
    dim: int
    frame_dim: int | None

    def __call__(self, clip_frames: Frames) -> Features:
        """(B, dim) from (B, T, H, W, 3) uint8."""
        features: Features = self.ask(_extract, clip_frames)
        return features

    def see(self, frames: Frames) -> Features:
        """(N, frame_dim) from (N, H, W, 3) uint8."""
        seen: Features = self.ask(_see, frames)
        return seen

    def join(self, seen: Features) -> Features:
        """(B, dim) from (B, T, frame_dim)."""
        joined: Features = self.ask(_join, seen)
        return joined


@dataclass(frozen=True)
class DistantDetector:
    """Stands in for a detector."""

    ask: Ask

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
        found: Segments = self.ask(_detect, np.asarray(features), facts)
        return found


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

    def later(self, frames: Frames) -> Callable[[], Any]:
        """The same, to be waited for."""
        return self.ask.later(_call, frames, {}, together=self.most)


def _extract(look: Any, clip_frames: Frames) -> Features:
    with look.guard():
        features: Features = look.extractor(clip_frames)
        return features


def _see(look: Any, frames: Frames) -> Features:
    with look.guard():
        seen: Features = look.extractor.see(frames)
        return seen


def _join(look: Any, seen: Features) -> Features:
    with look.guard():
        joined: Features = look.extractor.join(seen)
        return joined


def _detect(look: Any, features: Features, facts: dict[str, Any]) -> Segments:
    with look.guard():
        found: Segments = look.detector.detect(features, **facts)
        return found


def _call(look: Any, frames: Frames, facts: dict[str, Any]) -> Any:
    from jostle.looking.detecting import accepting

    with look.guard():
        return accepting(look.model, facts)(frames)


def _call_together(look: Any, questions: Sequence[tuple[Frames, dict[str, Any]]]) -> list[Any]:
    parts = [frames for frames, _ in questions]
    with look.guard():
        if hasattr(look.model, "together"):
            answers: list[Any] = look.model.together(parts)
            return answers
        ends = np.cumsum([len(part) for part in parts])
        return np.split(look.model(np.concatenate(parts)), ends[:-1])


_call.together = _call_together  # type: ignore[attr-defined]
