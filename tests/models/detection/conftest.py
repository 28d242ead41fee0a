"""Small detectors with large random weights, so that every layer affects the outputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

SMALL: dict[str, dict[str, Any]] = {
    "actionformer": {"window": 5, "heads": 2, "mlp_dim": 64},
    "tridet": {"mlp_dim": 48, "sgp_k": 3.0, "bins": 8},
    "temporalmaxer": {},
    "vsgn": {"neighbours": 4, "gap": 8},
}


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


@pytest.fixture
def small() -> Callable[..., Any]:
    from jostle.models.detection.detector import load_detector

    def make(name: str, **config: Any) -> Any:
        sizes = {"input_dim": 12, "dim": 32, "classes": 3, "max_length": 320, "levels": 4, **SMALL[name], **config}
        return randomise(load_detector(name, **sizes))

    return make


@pytest.fixture
def rows() -> Callable[..., Any]:
    def make(steps: int, width: int = 12, seed: int = 0) -> Any:
        return torch.randn(steps, width, generator=torch.Generator().manual_seed(seed)).numpy()

    return make
