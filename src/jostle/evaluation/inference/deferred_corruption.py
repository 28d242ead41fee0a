"""Frames struck where the model is; see `jostle.features.deferred_corruption` for why."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from jostle.core.types.clip import Frames
from jostle.corruptions.engine.context import Scene
from jostle.corruptions.engine.spec import Spec
from jostle.features.deferred_corruption import Strike


def strikes(model: Any, spec: str) -> bool:
    """Whether a model's device corrupts faster than the cores do: a GPU with programs for it."""
    device = getattr(model, "device", None)
    if device is None or device.type != "cuda":
        return False
    if not hasattr(model, "together") and not hasattr(model, "see_together"):
        return False  # one from elsewhere, which may take arrays alone
    from jostle.core.triton import builds
    from jostle.corruptions.gpu.batch import form_of

    return form_of(Spec.parse(spec)) is not None and builds()


def struck(frames: Any, strike: Strike) -> Any:
    """A tensor of frames (N, H, W, 3), or of clips of them, struck."""
    from jostle.corruptions.gpu.batch import struck_frames

    spec, numbers = Spec.parse(strike.spec), strike.numbers.ravel()
    # A video of which nothing is known but these frames.
    times, mask = np.zeros(numbers.max() + 1), np.zeros(numbers.max() + 1, np.bool_)
    times[numbers], mask[numbers] = strike.times.ravel(), strike.struck.ravel()
    size = (int(frames.shape[-3]), int(frames.shape[-2]))
    scene = Scene(spec.corruption.name, size, times, strike.fps, mask, seed=strike.seed, video_id=strike.video_id)
    return struck_frames(frames.reshape(-1, *frames.shape[-3:]), numbers, spec, scene).view_as(frames)


def struck_parts(model: Any, questions: Sequence[tuple[Frames, Strike]]) -> list[Any]:
    """Frames or clips as the model is to see them, on its device where any of them are struck there."""
    if not any(strike.spec for _, strike in questions):
        return [shown for shown, _ in questions]
    from jostle.core.cuda import on_device, turn

    with turn(model.device):
        there = [on_device(shown, model.device) for shown, _ in questions]
        return [
            struck(shown, strike) if strike.spec else shown for shown, (_, strike) in zip(there, questions, strict=True)
        ]
