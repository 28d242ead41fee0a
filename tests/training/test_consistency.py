"""Consistency loss: known values, both forms and finite results."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
import torch

from jostle.errors import BadValue
from jostle.models.detection.blocks.assignment import Actions
from jostle.models.detection.detector import make_detector
from jostle.training.consistency import consistency_loss, select_points
from jostle.training.detection_config import ConsistencyConfig
from jostle.training.loss import divergences

SIZES = {"input_dim": 8, "dim": 16, "classes": 3, "max_length": 64, "levels": 4}
ALL = {
    "actionformer": {"heads": 2, "window": 5, "mlp_dim": 32},
    "tridet": {"mlp_dim": 32, "sgp_window": 1, "sgp_k": 3, "bins": 4},
    "temporalmaxer": {},
    "vsgn": {"dim": 32, "neighbours": 4, "gap": 4},
}


@pytest.mark.parametrize(("p", "q", "expected"), [(0.2, 0.5, 0.035515), (0.05, 0.4, 0.104480), (0.9, 0.8, 0.001473)])
def test_divergence_of_known_values(p: float, q: float, expected: float) -> None:
    divergence, one, other = divergences["js"], torch.tensor([p]), torch.tensor([q])
    assert divergence(one, other).item() == pytest.approx(expected, abs=1e-6)
    assert divergence(one, one).item() == 0
    assert divergence(other, one).item() == pytest.approx(expected, abs=1e-6)  # symmetric


@pytest.mark.parametrize("kind", ["js", "kl", "mse"])
def test_extreme_probabilities_stay_finite(kind) -> None:
    p = torch.tensor([0.0, 1.0, 0.5], requires_grad=True)
    value = divergences[kind](p, torch.tensor([1.0, 0.0, 0.5]))
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(p.grad).all()
    assert divergences[kind](torch.zeros(0), torch.zeros(0)).item() == 0


@lru_cache
def outputs_of(name: str):
    """Return a detector, its outputs for clean and corrupted features, and the actions in them."""
    torch.manual_seed(0)
    detector = make_detector(name, **(SIZES | ALL[name]))
    rng = np.random.default_rng(0)
    features = [rng.standard_normal((n, 8)).astype(np.float32) for n in (40, 64)]
    rough = [x.copy() for x in features]
    for x in rough:
        x[10:14] = 0
    actions = Actions.of([([[3.0, 14.0], [20.0, 31.0]], [0, 2]), ([[40.0, 60.0]], [1])])
    x, lengths = detector.batch(features)
    return detector, detector(x, lengths), detector(detector.batch(rough)[0], lengths), actions


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("form", ["released", "paper"])
@pytest.mark.parametrize("selection", ["centre", "action", "video"])
@pytest.mark.parametrize("kind", ["js", "kl", "mse"])
def test_every_form_is_zero_for_equal_outputs_and_has_a_gradient(name, form, selection, kind) -> None:
    detector, clean, corrupted, actions = outputs_of(name)
    config = ConsistencyConfig(form=form, selection=selection, divergence=kind, nearest=4)
    assert consistency_loss(detector, clean, clean, actions, config).item() == pytest.approx(0, abs=1e-6)
    value = consistency_loss(detector, clean, corrupted, actions, config)
    assert torch.isfinite(value)
    assert value.item() >= 0
    every = torch.autograd.grad(value, list(detector.parameters()), retain_graph=True, allow_unused=True)
    gradients = [gradient for gradient in every if gradient is not None]
    assert gradients
    assert all(torch.isfinite(g).all() for g in gradients)


@pytest.mark.parametrize("name", ALL)
def test_selections_are_nested(name) -> None:
    detector, clean, _, actions = outputs_of(name)
    counts = [
        len(select_points(detector, clean, actions, ConsistencyConfig(selection=which))[0][0])
        for which in ("centre", "action", "video")
    ]
    assert 0 < counts[0] <= counts[1] <= counts[2]


@pytest.mark.parametrize("normalise", ["sum", "softmax", "none"])
def test_paper_form_uses_the_nearest_centres(normalise) -> None:
    detector, clean, corrupted, actions = outputs_of("actionformer")
    config = ConsistencyConfig(form="paper", normalise=normalise, nearest=1000)
    value = consistency_loss(detector, clean, corrupted, actions, config)  # fewer points than requested
    assert torch.isfinite(value)
    none = Actions.of([([], []), ([], [])])
    assert consistency_loss(detector, clean, corrupted, none, config).item() == 0


def test_invalid_settings_are_refused() -> None:
    for wrong in ({"nearest": 0}, {"epsilon": 0.0}, {"weight": -1.0}):
        with pytest.raises(BadValue, match=f"consistency: {next(iter(wrong))}"):
            ConsistencyConfig(**wrong)
