"""Registered losses and divergences: bits of the published ones, names and wrong results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional as F

import jostle
from helpers.small_clips import make_config
from helpers.small_world import make_config as make_detector_config
from jostle.core import plugins
from jostle.core.registry import Registry
from jostle.errors import BadValue, UnknownName
from jostle.extend import divergence, divergences, loss
from jostle.training.loss import losses


@pytest.fixture
def _restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Unregister afterwards what a test registered."""
    for registry in (losses, divergences):
        list(registry)
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    monkeypatch.setattr(plugins, "_parts", dict(plugins._parts))
    yield
    plugins.origin_of.cache_clear()


@pytest.mark.parametrize(("name", "frames"), [("own", 1), ("all", 5), ("worst", 5)])
def test_losses_are_cross_entropies_of_frames(name: str, frames: int) -> None:
    config = make_config(Path("clips"), loss=name, smoothing=0.2)
    rng = torch.Generator().manual_seed(0)
    logits, labels = torch.randn(4, frames, 3, generator=rng), torch.tensor([0, 2, 1, 1])
    each = F.cross_entropy(
        logits.flatten(0, 1), labels.repeat_interleave(frames), label_smoothing=0.2, reduction="none"
    )
    expected = each.view(4, -1).amax(1).mean() if name == "worst" else each.mean()
    assert torch.equal(losses[name](logits, labels, config), expected)
    assert losses[name].whole_sets == (frames > 1)


def test_names_are_refused_with_the_nearest(world: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="no loss is called 'worstt': did you mean worst"):
        jostle.train(make_config(tmp_path / "clips", loss="worstt"), tmp_path / "run")
    config = make_detector_config(world, data={"corrupted": str(world / "rough")}, consistency={"divergence": "jss"})
    with pytest.raises(UnknownName, match="no divergence is called 'jss': did you mean js"):
        jostle.train(config, tmp_path / "run")


@pytest.mark.usefixtures("_restored")
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (3.0, "loss odd returned float; it must return a tensor of one number"),
        (torch.zeros(2), r"loss odd returned a tensor \(2,\); it must return a tensor of one number"),
    ],
)
def test_a_result_that_is_no_number_is_explained(value: Any, message: str) -> None:
    loss("odd")(lambda logits, labels, config: value)
    with pytest.raises(BadValue, match=message):
        losses["odd"](torch.zeros(1, 1, 2), torch.zeros(1, dtype=torch.int64), None)
    divergence("odd")(lambda p, q, epsilon: value)
    with pytest.raises(BadValue, match=message.replace("loss", "divergence")):
        divergences["odd"](torch.zeros(1), torch.zeros(1))


@pytest.mark.usefixtures("_restored")
def test_names_of_jostle_are_taken() -> None:
    with pytest.raises(BadValue, match=r"two losses are called 'worst', one of .* and one of jostle"):
        loss("worst")(lambda logits, labels, config: logits.sum())


def test_kinds_have_plurals() -> None:
    assert [Registry(kind).plural for kind in ("loss", "training task", "model")] == [
        "losses",
        "trainingtasks",
        "models",
    ]
