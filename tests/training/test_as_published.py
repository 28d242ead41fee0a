"""Published training settings: schedules, optimisers, weight decay, augmentation, AFSD's lesson and backbones."""

from __future__ import annotations

import colorsys
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import jostle
from jostle.core.random import rng_for
from jostle.corruptions.engine.spec import Spec
from jostle.errors import BadValue, CheckpointError
from jostle.models.checkpoints import write_weights
from jostle.models.detection.blocks.afsd import between, draw_cut
from jostle.models.extractors.i3d import I3dConfig, InceptionI3d
from jostle.training.augmentation import ClipTransform, draw_transform
from jostle.training.descriptor_bank import draw_spec
from jostle.training.detection_config import FrameTrainingConfig
from jostle.training.end_to_end import fill_backbone
from jostle.training.inspection_config import InspectionConfig
from jostle.training.optimisation import make_optimiser
from jostle.training.schedule import OptimiserConfig, learning_rate
from jostle.training.task import read_training

EXAMPLES = Path(__file__).parents[2] / "examples"
BASICTAD = OptimiserConfig(
    lr=0.01, final_lr=1e-4, schedule="restarts", period=100, warmup_epochs=0, warmup_steps=500, warmup_from=0.1,
    epochs=1200, method="sgd",
)  # fmt: skip


def test_basictad_schedule_restarts_every_100_epochs_with_warm_up_steps() -> None:
    for step in (0, 1, 130, 499, 500, 1299, 1300, 2613, 15599):
        epoch = step // 13
        expected = 1e-4 + 0.5 * 0.0099 * (1 + math.cos(math.pi * (epoch % 100) / 100))
        expected *= 0.1 + 0.9 * step / 500 if step < 500 else 1
        assert learning_rate(BASICTAD, step, 13) == pytest.approx(expected, rel=1e-12)
    assert learning_rate(BASICTAD, 1300, 13) == 0.01  # restarted


def test_constant_and_dropping_learning_rates() -> None:
    constant = OptimiserConfig(lr=1e-5, schedule="constant", warmup_epochs=0, epochs=16)
    assert {learning_rate(constant, step, 10) for step in range(160)} == {1e-5}
    drops = OptimiserConfig(lr=1e-4, schedule="drops", drop_at=(14,), warmup_epochs=0, epochs=16)
    rates = [learning_rate(drops, step, 10) for step in range(160)]
    assert rates[:140] == [1e-4] * 140
    assert rates[140:] == [pytest.approx(1e-5)] * 20


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schedule": "spiral"}, "schedule is one of cosine, constant, drops, restarts, not 'spiral'"),
        ({"method": "lion"}, "method is one of adamw, adam, sgd"),
        ({"decays": "norms"}, "decays is one of convolutions, all"),
        ({"schedule": "drops"}, r"drop_at names epochs .* got \[\] with 'drops'"),
        ({"drop_at": (3,)}, "goes with nothing else"),
        ({"schedule": "restarts"}, "period is the epochs of a cosine"),
        ({"period": 3}, "goes with nothing else"),
        ({"warmup_steps": 3}, "over epochs or over steps"),
        ({"warmup_from": 1.5}, "warmup_from lies from 0 to 1"),
        ({"momentum": 1.0}, "momentum below 1"),
    ],
)
def test_invalid_schedules_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BadValue, match=message):
        OptimiserConfig(**changes)


class ConvNormNet(nn.Module):
    """Network of two convolutions, each with a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv1d(2, 3, 1), nn.BatchNorm1d(3))
        self.sampling_offsets = nn.Linear(3, 2)
        self.head = nn.Conv1d(3, 1, 1)


@pytest.mark.parametrize(("method", "kind"), [("adamw", "AdamW"), ("adam", "Adam"), ("sgd", "SGD")])
def test_optimisers_and_weight_decay_groups(method: Any, kind: str) -> None:
    for decays, count in (("convolutions", 3), ("all", 8)):
        config = OptimiserConfig(method=method, decays=decays, weight_decay=0.1, momentum=0.8)
        optimiser = make_optimiser(ConvNormNet(), config)
        assert type(optimiser).__name__ == kind
        assert sum(len(group["params"]) for group in optimiser.param_groups if group["weight_decay"] == 0.1) == count
        assert sum(len(group["params"]) for group in optimiser.param_groups) == 8
        assert optimiser.defaults.get("momentum", 0.8) == 0.8


def test_learning_rates_by_parameter_name() -> None:
    optimiser = make_optimiser(ConvNormNet(), OptimiserConfig(), {"backbone.": 0.05, "sampling_offsets": 0.1})
    shares = {group["share"]: 0 for group in optimiser.param_groups}
    for group in optimiser.param_groups:
        shares[group["share"]] += len(group["params"])
    assert shares == {1.0: 2, 0.05: 4, 0.1: 2}


def test_single_steps_of_the_optimisers() -> None:
    """The weight decay of Adam is scaled by its second moment, that of AdamW is not; momentum accumulates."""
    for method, expected in (("adam", 1 - 0.1), ("adamw", 1 - 0.1 * 0.5 - 0.1), ("sgd", 1 - 0.1 * (2 + 0.5))):
        model = nn.Conv1d(1, 1, 1, bias=False)
        nn.init.ones_(model.weight)
        optimiser = make_optimiser(model, OptimiserConfig(lr=0.1, method=method, weight_decay=0.5))
        model.weight.grad = torch.full_like(model.weight, 2.0)
        optimiser.step()
        assert model.weight.item() == pytest.approx(expected, abs=1e-6)


def test_examples_have_the_published_values() -> None:
    config = {name: read_training(EXAMPLES / f"{name}-thumos.toml") for name in ("afsd", "basictad", "e2e-tad", "vsgn")}
    one = config["basictad"]
    assert isinstance(one, FrameTrainingConfig)
    assert (one.optimiser.method, one.optimiser.lr, one.optimiser.all_epochs, one.optimiser.batch) == (
        "sgd", 0.01, 1200, 16,
    )  # fmt: skip
    assert [learning_rate(one.optimiser, step, 13) for step in (0, 700, 1400)] == [
        learning_rate(BASICTAD, step, 13) for step in (0, 700, 1400)
    ]
    assert (one.data.recolour, one.data.rotate, one.data.mirror, one.data.visible) == (0.5, 45, True, 0.75)
    one = config["e2e-tad"]
    assert one.rates == {"reference_points": 0.1, "sampling_offsets": 0.1}
    assert (one.backbone_rate * one.optimiser.lr, one.optimiser.clip) == (pytest.approx(5e-6), 0.1)
    one = config["afsd"]
    assert (one.optimiser.method, one.optimiser.lr, one.optimiser.weight_decay, one.lesson) == ("adam", 1e-5, 1e-3, 0.1)
    assert learning_rate(one.optimiser, 1000, 100) == 1e-5
    assert config["vsgn"].optimiser.batch == 32
    for value in config.values():
        assert value.optimiser.decays == "all"
        assert value.optimiser.average == 0
        assert value.detector in jostle.names("detectors")


def test_examples_of_robust_training_name_corruptions_that_exist() -> None:
    recogniser, inspector = (read_training(EXAMPLES / f"{name}.toml") for name in ("robust-recogniser", "inspector"))
    assert (recogniser.task, type(inspector)) == ("recognition", InspectionConfig)
    for spec in recogniser.corruptions.specs:
        Spec.parse(spec)
    for spec in inspector.strikes.specs:
        draw_spec([spec], inspector.strikes.severities, rng_for(0))


def random_image(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (2, 12, 15, 3)).astype(np.uint8)


def test_colour_changes_equal_their_definition() -> None:
    """Compare with `colorsys`, for values that are not clipped."""
    frames = (random_image() // 2 + 40).astype(np.uint8)
    changes = {"brightness": 10, "contrast": 0.9, "contrast_first": False, "saturation": 0.7, "hue": -17}
    transform = ClipTransform(recoloured=True, order=(2, 0, 1), **changes)
    changed = transform.apply(frames)
    for position in ((0, 0, 0), (1, 5, 9), (1, 11, 14), (0, 7, 3)):
        hue, strong, value = colorsys.rgb_to_hsv(*((frames[position] + 10.0) / 255))
        rgb = 255 * np.array(colorsys.hsv_to_rgb((hue - 17 / 360) % 1, 0.7 * strong, value)) * 0.9
        np.testing.assert_allclose(changed[position], rgb[[2, 0, 1]], atol=0.51)
    first = ClipTransform(recoloured=True, contrast=1.5).apply(random_image())
    np.testing.assert_allclose(first, np.minimum(1.5 * random_image(), 255), atol=0.51)
    assert ClipTransform().apply(frames) is frames


def test_images_are_rotated_about_their_centre() -> None:
    square = random_image()[:, :, :12]
    assert np.array_equal(ClipTransform(angle=90.0).apply(square), np.rot90(square, 1, (1, 2)))
    assert np.array_equal(ClipTransform(angle=180.0).apply(random_image()), random_image()[:, ::-1, ::-1])
    assert np.array_equal(ClipTransform(angle=0.0).apply(square), square)
    odd = np.random.default_rng(1).integers(0, 256, (1, 13, 15, 3)).astype(np.uint8)
    rows = [1, *range(13), 11]  # mirrored at the centre of the outermost pixel
    expected = odd[:, rows][:, :, ::-1].transpose(0, 2, 1, 3)[:, 1:14]
    assert np.array_equal(ClipTransform(angle=90.0).apply(odd), expected)


def test_augmentations_are_drawn_with_their_probability() -> None:
    transforms = [draw_transform(np.random.default_rng(i), 0.5, 45.0) for i in range(400)]
    assert 150 < sum(transform.recoloured for transform in transforms) < 250
    turned = [transform.angle for transform in transforms if transform.angle]
    assert 150 < len(turned) < 250
    assert max(map(abs, turned)) <= 45
    coloured = [transform for transform in transforms if transform.recoloured]
    for name, neutral in (("brightness", 0.0), ("contrast", 1.0), ("saturation", 1.0), ("order", (0, 1, 2))):
        share = sum(getattr(transform, name) != neutral for transform in coloured) / len(coloured)
        assert 0.3 < share < 0.65, name
    assert all(transform.hue for transform in coloured)
    assert draw_transform(np.random.default_rng(0), 0.0, 0.0) == ClipTransform()


def test_afsd_lesson_moves_background_into_an_action() -> None:
    segments = np.array([[20.0, 60.0], [80.0, 86.5]], np.float32)
    for seed in range(50):
        gap = draw_cut(segments, 100, np.random.default_rng(seed))
        assert (gap.start, gap.end, gap.length) == (20, 60, 7)
        assert 27 <= gap.at <= 53
        moved = range(gap.background, gap.background + gap.length)
        assert not any(a < t + 1 and t < b for t in moved for a, b in segments.tolist())
        order = gap.order(100)
        assert sorted(order) == list(range(100))
        _, _, (first, last) = gap.segments()
        inside = order[int(first) - 1 : int(last) + 1]
        assert set(inside) <= set(moved)


def test_clips_without_background_have_no_afsd_lesson() -> None:
    rng = np.random.default_rng(0)
    assert draw_cut(np.array([[20.0, 60.0]], np.float32), 100, rng) is None  # twice its length does not fit
    assert draw_cut(np.array([[0.0, 90.0], [91, 98]], np.float32), 100, rng) is None  # no background
    assert draw_cut(np.array([[20.0, 60.0]], np.float32), 100, rng, activitynet=True) is not None
    assert between(np.array([[0.0, 10.0]]), 10) == []


@pytest.mark.parametrize("prefix", ["", "backbone.", "base_model."])
def test_pretrained_backbone_is_loaded(prefix: str, tmp_path: Path) -> None:
    """Any name prefix is accepted, and the classifier is ignored."""
    settings = {"dim": 64, "classes": 2, "max_length": 32, "levels": 3, "backbone_width": 0.06}
    detector = jostle.load_detector("afsd", **settings)
    torch.manual_seed(3)
    public = InceptionI3d(I3dConfig(width=0.06)).state_dict()
    write_weights({prefix + name: tensor for name, tensor in public.items()}, tmp_path / "net.safetensors")
    before = {name: tensor.clone() for name, tensor in detector.state_dict().items()}
    fill_backbone(detector, tmp_path / "net.safetensors", "afsd")
    for name, tensor in detector.state_dict().items():
        own = name.removeprefix("backbone._model.")
        assert torch.equal(tensor, public[own] if name.startswith("backbone.") else before[name]), name


def test_short_parameter_names_do_not_match_longer_ones(tmp_path: Path) -> None:
    """A ResNet has `bn1` in its stem and in every block."""
    small = {"backbone": "tsm18", "backbone_width": 0.125, "max_length": 32, "clip_stride": 24}
    detector = jostle.load_detector("e2e_tad", **small)
    public = {
        name.removeprefix("backbone."): torch.randn_like(tensor) if tensor.is_floating_point() else tensor
        for name, tensor in detector.state_dict().items()
        if name.startswith("backbone.")
    }
    renamed = {name.replace("backbone.", "base_model."): tensor for name, tensor in public.items()}
    write_weights({name: tensor for name, tensor in renamed.items() if "num_batches" not in name}, tmp_path / "net.st")
    fill_backbone(detector, tmp_path / "net.st", "e2e_tad")
    filled = detector.state_dict()
    for name, tensor in public.items():
        if "num_batches" not in name:
            assert torch.equal(filled[f"backbone.{name}"], tensor), name


def test_mismatched_backbone_is_refused(tmp_path: Path) -> None:
    settings = {"dim": 64, "classes": 2, "max_length": 32, "levels": 3, "backbone_width": 0.06}
    detector = jostle.load_detector("afsd", **settings)
    write_weights({"fc.bias": torch.zeros(3)}, tmp_path / "other.safetensors")
    with pytest.raises(CheckpointError, match=r"not a backbone of afsd: it has no .* and \d+ more, but fc.bias"):
        fill_backbone(detector, tmp_path / "other.safetensors", "afsd")
    write_weights(InceptionI3d(I3dConfig(width=0.1)).state_dict(), tmp_path / "wider.safetensors")
    with pytest.raises(CheckpointError, match="of another shape"):
        fill_backbone(detector, tmp_path / "wider.safetensors", "afsd")
