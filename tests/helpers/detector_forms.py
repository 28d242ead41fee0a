"""Every detector in a form small enough for a test, with inputs that fit it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from jostle.models.detection.blocks.assignment import Actions
from jostle.models.detection.detector import make_detector
from jostle.models.detection.outputs import Losses

FEATURES: dict[str, Any] = {"input_dim": 12, "dim": 32, "classes": 3, "max_length": 320, "levels": 4}
AFSD: dict[str, Any] = {
    "dim": 64, "classes": 3, "max_length": 64, "levels": 4, "frame_size": 40, "crop": 32, "clip_stride": 32,
    "backbone_width": 0.06,
}  # fmt: skip
BASICTAD: dict[str, Any] = {
    "dim": 32, "neck_dim": 16, "classes": 3, "max_length": 32, "levels": 4, "frame_size": 40, "crop": 32,
    "clip_stride": 24, "backbone_width": 0.06, "fps": 5.0,
}  # fmt: skip
E2E_TAD: dict[str, Any] = {
    "dim": 32, "classes": 3, "max_length": 16, "frame_size": 40, "crop": 32, "clip_stride": 12, "fps": 5.0,
    "backbone": "tsm18", "backbone_width": 0.125, "heads": 4, "points": 2, "encoder_layers": 1, "decoder_layers": 2,
    "mlp_dim": 16, "queries": 6, "dropout": 0.0,
}  # fmt: skip
SMALL: dict[str, dict[str, Any]] = {
    "actionformer": {**FEATURES, "window": 5, "heads": 2, "mlp_dim": 64},
    "tridet": {**FEATURES, "mlp_dim": 48, "sgp_k": 3.0, "bins": 8},
    "temporalmaxer": FEATURES,
    "vsgn": {**FEATURES, "neighbours": 4, "gap": 8},
    "afsd": AFSD,
    "basictad": BASICTAD,
    "e2e_tad": E2E_TAD,
}


def small(name: str, **changes: Any) -> Any:
    """Build a small detector: on features with large random weights, so that every layer affects the outputs."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        detector: Any = make_detector(name, **(SMALL[name] | changes))
    return randomise(detector) if detector.looks_at == "features" else detector


def randomise(detector: Any, seed: int = 5) -> Any:
    """Replace all weights of the detector by large random values and return it."""
    draw = torch.Generator().manual_seed(seed)
    for name, weight in detector.named_parameters():
        low, high = (0.2, 0.6) if name.endswith("scale") else (-0.3, 0.3)
        if weight.ndim == 3 and weight.shape[0] == 1 and name.endswith("weight"):
            low, high = 0.6, 1.4
        elif weight.ndim == 3 and weight.shape[0] > 1:
            high = 2.0 * (weight.shape[1] * weight.shape[2]) ** -0.5
            low = -high
        weight.data.uniform_(low, high, generator=draw)
    return detector


def rows(steps: int, width: int = 12, seed: int = 0) -> Any:
    return torch.randn(steps, width, generator=torch.Generator().manual_seed(seed)).numpy()


def film(count: int, size: tuple[int, int] = (48, 64), channels: int = 3) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(0).integers(0, 256, (count, *size, channels), dtype=np.uint8)


FORMS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in ("actionformer", "tridet", "temporalmaxer", "vsgn")},
    "vsgn of one class": ("vsgn", {"classes": 1}),
    **{f"afsd {form}": ("afsd", {"form": form}) for form in ("thumos14", "activitynet")},
    **{f"basictad {form}": ("basictad", {"form": form}) for form in ("anchors", "sigmoid_points", "softmax_points")},
    **{f"e2e_tad {trunk}": ("e2e_tad", {"backbone": trunk}) for trunk in ("slowfast", "tsm18", "tsm50")},
}


def descend(detector: Any, inputs: tuple[Any, ...], actions: Actions, *, lr: float, steps: int) -> list[Losses]:
    """Train for a few steps on one batch; the losses before each."""
    adam = torch.optim.Adam([p for p in detector.parameters() if p.requires_grad], lr)
    losses = []
    for _ in range(steps):
        losses.append(detector.loss(detector(*inputs), actions))
        adam.zero_grad()
        losses[-1].total.backward()
        adam.step()
    return losses
