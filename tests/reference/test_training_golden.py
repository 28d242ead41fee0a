"""Optimisation and the consistency loss against traces of the original programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from jostle.detectors.blocks.assignment import Actions  # noqa: E402
from jostle.detectors.detector import Detector, load_detector  # noqa: E402
from jostle.training.consistency import ConsistencyConfig, consistency_loss  # noqa: E402
from jostle.training.optimisation import (  # noqa: E402
    Average,
    OptimiserConfig,
    decaying,
    learning_rate,
    make_optimiser,
)

GOLDEN = Path(__file__).resolve().parents[3] / "shared" / "golden" / "detectors"
pytestmark = pytest.mark.skipif(not GOLDEN.is_dir(), reason="no golden data at ../shared/golden/detectors")

SIZES: dict[str, dict[str, Any]] = {
    "actionformer": {"heads": 4, "window": 19, "mlp_dim": 256},
    "tridet": {"mlp_dim": 96, "sgp_window": 1, "sgp_k": 5, "bins": 16, "input_noise": 0.0},
    "temporalmaxer": {},
}
SCHEDULES = {
    "actionformer": OptimiserConfig(warmup_epochs=5, epochs=30),
    "tridet": OptimiserConfig(warmup_epochs=20, epochs=20),
    "temporalmaxer": OptimiserConfig(warmup_epochs=5, epochs=60),
}


def detector(name: str, **changes: Any) -> Detector[Any]:
    """With the golden weights; only the top is in training mode, as when the goldens were made."""
    sizes = {"input_dim": 32, "dim": 64, "classes": 5, "max_length": 576} | SIZES[name] | changes
    made = load_detector(name, weights=GOLDEN / name / "model.safetensors", **sizes)
    made.train()
    for child in made.children():
        child.eval()
    return made


def batch(made: Detector[Any], name: str, features: str) -> tuple[torch.Tensor, torch.Tensor, Actions]:
    stored = np.load(GOLDEN / name / "train.npz")
    x, lengths = made.batch([np.load(GOLDEN / "data" / features / f"{video}.npy") for video in ("vid_a", "vid_b")])
    rows = [stored["video_of_segment"] == i for i in range(2)]
    return x, lengths, Actions.of([(stored["segments_grid"][r], stored["labels"][r]) for r in rows])


@pytest.mark.parametrize("name", SIZES)
def test_learning_rates_are_the_published(name: str) -> None:
    wanted = np.load(GOLDEN / name / "optim.npz")["lr_published"]
    made = [learning_rate(SCHEDULES[name], step, 10) for step in range(len(wanted))]
    np.testing.assert_allclose(made, wanted, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("name", SIZES)
def test_six_steps_change_every_parameter_as_the_original_does(name: str) -> None:
    wanted = np.load(GOLDEN / name / "optim.npz")
    keys = [line.split()[0] for line in (GOLDEN / name / "grad_keys.txt").read_text().splitlines() if line.strip()]
    made = detector(name)
    assert [key in decaying(made) for key in keys] == wanted["decayed"].tolist()
    config = OptimiserConfig(
        lr=1e-3,
        warmup_epochs=1,
        epochs=2,
        weight_decay=float(wanted["weight_decay"]),
        clip=float(wanted["clip"]),
        average=0.999,
    )
    optimiser, average = make_optimiser(made, config), Average(made, config.average)
    start = {key: value.detach().clone() for key, value in made.state_dict().items()}
    x, lengths, actions = batch(made, name, "clean")
    for step in range(6):
        for group in optimiser.param_groups:
            group["lr"] = learning_rate(config, step, 2)
        assert optimiser.param_groups[0]["lr"] == pytest.approx(wanted["lr"][step], rel=1e-9)
        optimiser.zero_grad()
        losses = made.loss(made(x, lengths), actions)
        losses.total.backward()
        norm = torch.nn.utils.clip_grad_norm_(made.parameters(), config.clip)
        optimiser.step()
        average.update(made)
        assert losses.total.item() == pytest.approx(wanted["final_loss"][step], rel=2e-5)
        assert norm.item() == pytest.approx(wanted["grad_norm_total"][step], rel=2e-4)
        assert made.loss_normalizer.item() == pytest.approx(wanted["loss_normalizer"][step], rel=1e-6)
    now = made.state_dict()
    # The true gradient of a key's bias is 0, as softmax does not see it; Adam turns its rounding into arbitrary steps.
    told = [i for i, key in enumerate(keys) if not key.endswith(("attn.key.bias", "attn.key_norm.bias"))]
    changed = [(now[keys[i]] - start[keys[i]]).norm().item() for i in told]
    averaged = [(average.weights[keys[i]] - start[keys[i]]).norm().item() for i in told]
    np.testing.assert_allclose(changed, wanted["change_norm"][told], rtol=5e-3, atol=1e-6)
    np.testing.assert_allclose(averaged, wanted["ema_change_norm"][told], rtol=5e-3, atol=1e-8)


# The released program's word for a selection, what it comes to, and whether its targets lose their radius.
TRIDET = {"center_sample": ("centre", True), "whole": ("centre", False), "both": ("video", True)}
CASES = [
    ("actionformer", "trc", "js", "centre", False),
    ("temporalmaxer", "trc", "js", "centre", False),
    *(
        ("tridet", f"trc_{kind}_{word}", short, selection, wide)
        for kind, short in (("jsd", "js"), ("kld", "kl"), ("mse", "mse"))
        for word, (selection, wide) in TRIDET.items()
    ),
]


@pytest.mark.parametrize(("name", "file", "divergence", "selection", "wide"), CASES)
def test_consistency_and_its_gradients(name: str, file: str, divergence: Any, selection: Any, wide: bool) -> None:
    wanted = np.load(GOLDEN / name / f"{file}.npz")
    made = detector(name, **({"centre_radius": None} if wide else {}))
    config = ConsistencyConfig(
        selection=selection,
        divergence=divergence,
        weight=float(wanted["trc_weighted"] / wanted["trc"]),
        released_faults=True,
    )
    x, lengths, actions = batch(made, name, "clean")
    y, _, _ = batch(made, name, "corrupted")
    clean = made(x, lengths)
    losses = made.loss(clean, actions)
    term = consistency_loss(made, clean, made(y, lengths), actions, config)
    total = losses.total + config.weight * term
    total.backward()
    made.normaliser(losses.positives)  # the released program moves it twice
    assert term.item() == pytest.approx(float(wanted["trc"]), abs=5e-6)
    assert losses.classification.item() == pytest.approx(float(wanted["cls_loss"]), abs=1e-5)
    assert losses.regression.item() == pytest.approx(float(wanted["reg_loss"]), abs=1e-5)
    assert total.item() == pytest.approx(float(wanted["final_loss"]), abs=2e-5)
    assert made.loss_normalizer.item() == pytest.approx(float(wanted["loss_normalizer_after"]), rel=1e-6)
    keys = [line.split()[0] for line in (GOLDEN / name / "grad_keys.txt").read_text().splitlines() if line.strip()]
    parameters = dict(made.named_parameters())
    norms = [0.0 if parameters[key].grad is None else parameters[key].grad.norm().item() for key in keys]
    np.testing.assert_allclose(norms, wanted["grad_norm"], rtol=1e-3, atol=2e-5)
