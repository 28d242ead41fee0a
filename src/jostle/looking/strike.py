"""Clips that are struck where the model is: frames travel as they are, and a GPU makes of them the bytes a core would.

A core takes ten to a hundred times as long for most corruptions, and a run on a GPU waits for its cores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from jostle.corrupting.scene import Mask, Scene
from jostle.corrupting.spec import Spec
from jostle.corrupting.stages import Source
from jostle.types.clip import Frames

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Strike:
    """What is done to some clips of a video before a model sees them.

    Attributes:
        spec: as it is written; empty for nothing.
        numbers: (B, T) of the clips' frames in their video.
        times: when they are shown, in seconds.
        struck: which of them the corruption strikes.
        kind: what all have in common: clips are looked at together whatever is done to each.
    """

    spec: str = ""
    seed: int = 0
    video_id: str = ""
    fps: Fraction = Fraction(30)
    numbers: Any = ()
    times: Any = ()
    struck: Any = ()
    kind: ClassVar[str] = "strike"

    @classmethod
    def on(cls, spec: str, video: Source, mask: Mask, seed: int, name: str, rows: Indices) -> Strike:
        """On clips of the frames `rows` of a video, where the mask of its frames says so."""
        return cls(spec, seed, name, video.fps, rows, video.pts[rows], mask[rows])

    def done_to(self, clips: Any) -> Any:
        """Tensors of clips (B, T, H, W, 3), struck."""
        from jostle.corruptions.tensors.batch import struck_frames

        spec = Spec.parse(self.spec)
        # A video of which nothing is known but these frames.
        times, mask = np.zeros(self.numbers.max() + 1), np.zeros(self.numbers.max() + 1, np.bool_)
        times[self.numbers], mask[self.numbers] = self.times, self.struck
        size = (int(clips.shape[2]), int(clips.shape[3]))
        scene = Scene(spec.corruption.name, size, times, self.fps, mask, seed=self.seed, video_id=self.video_id)
        return struck_frames(clips.flatten(0, 1), self.numbers.ravel(), spec, scene).view_as(clips)


UNTOUCHED = Strike()
Striking = Callable[[Indices], Strike]  # what a cell does to clips of these frames


def strikes(model: Any, spec: str) -> bool:
    """Whether a model's device corrupts faster than the cores do: a GPU with programs for it."""
    device = getattr(model, "device", None)
    if device is None or device.type != "cuda":
        return False
    from jostle.corruptions.tensors.batch import form_of
    from jostle.corruptions.tensors.programs import has_triton

    return form_of(Spec.parse(spec)) is not None and has_triton()


def struck_parts(model: Any, questions: Sequence[tuple[Frames, Strike]]) -> list[Any]:
    """Clips as the model is to see them, on its device where any of them are struck there."""
    if not any(strike.spec for _, strike in questions):
        return [clips for clips, _ in questions]
    from jostle.models.lanes import on_device, turn

    with turn(model.device):
        there = [on_device(clips, model.device) for clips, _ in questions]
        return [
            strike.done_to(clips) if strike.spec else clips for clips, (_, strike) in zip(there, questions, strict=True)
        ]
