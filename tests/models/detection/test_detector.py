"""Detectors by name: settings, weights, features and outputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from helpers.detector_forms import descend
from jostle.errors import BadValue, CheckpointError, DataError, UnknownName
from jostle.models.checkpoints import write_weights
from jostle.models.detection.blocks.assignment import Actions
from jostle.models.detection.detector import detectors, is_opentad, make_detector, opentad_names
from jostle.models.detection.outputs import Candidates, with_video_scores

NAMES = ("actionformer", "tridet", "temporalmaxer")  # point-based detectors
EVERY = (*NAMES, "vsgn")
SETS = ("thumos_i3d", "thumos_i3d_rgb", "thumos_videomae", "anet_tsp", "anet_i3d", "multithumos_i3d", "puppets")
TINY = {"dim": 16, "head_dim": 16}
Make = Callable[..., Any]


def test_every_variant_is_registered() -> None:
    others = {f"vsgn_{kind}" for kind in ("thumos_tsn", "anet_tsp", "anet_i3d", "puppets")}
    others |= {"afsd", "afsd_thumos", "afsd_anet", "afsd_puppets", "basictad", "basictad_puppets"}
    others |= {f"basictad_thumos_{form}" for form in ("ab3", "ab6", "afs3", "afm6")}
    others |= {"e2e_tad", "e2e_tad_puppets", "e2e_tad_anet_slowfast", "e2e_tad_anet_tsm50"}
    others |= {f"e2e_tad_thumos_{trunk}" for trunk in ("slowfast", "tsm18", "tsm50")}
    assert set(detectors) == set(EVERY) | {f"{name}_{kind}" for name in NAMES for kind in SETS} | others
    assert all(variant.summary.endswith(".") for variant in detectors.values())


@pytest.mark.parametrize("name", sorted(name for name in detectors if detectors[name].model.looks_at == "features"))
def test_every_variant_detects(name: str, rows: Make) -> None:
    detector = make_detector(name, **(TINY if name.startswith(NAMES) else {"dim": 32}))
    assert detector.looks_at == "features"
    width = detector.config.input_dim
    segments = detector.detect(rows(40, width), fps=30, duration=6.0)
    assert segments.score is not None
    assert len(segments) <= detector.config.max_segments
    assert (segments.end <= 6.0).all()


@pytest.mark.parametrize(
    ("name", "millions"),
    [
        ("actionformer", 29.25),
        ("tridet", 15.99),
        ("temporalmaxer", 7.12),
        ("actionformer_anet_tsp", 6.94),
        ("vsgn", 8.37),
        ("afsd", 44.75),
        ("afsd_anet", 30.16),
        ("basictad_thumos_ab3", 40.84),
        ("basictad_thumos_ab6", 40.84),
        ("e2e_tad_thumos_slowfast", 42.28),
        ("e2e_tad_thumos_tsm50", 32.17),
        ("e2e_tad_thumos_tsm18", 19.44),
    ],
)
def test_numbers_of_parameters_are_the_published_ones(name: str, millions: float) -> None:
    with torch.device("meta"):
        variant = detectors[name]
        detector = variant.model(variant.config())
    assert sum(p.numel() for p in detector.parameters()) / 1e6 == pytest.approx(millions, abs=0.006)


def test_multithumos_shares_one_norm_over_all_levels() -> None:
    keys = make_detector("temporalmaxer_multithumos_i3d", **TINY).state_dict()
    assert {f"neck.fpn_norms.{level}.weight" for level in range(6)} <= set(keys)
    assert "backbone.embd.2.conv.weight" in keys


def test_unknown_names_and_settings_are_refused() -> None:
    with pytest.raises(UnknownName, match="did you mean actionformer_thumos_i3d"):
        make_detector("actionformer_thumos_i3")
    with pytest.raises(BadValue, match=r"tridet has no setting heads: did you mean head_dim\?"):
        make_detector("tridet", heads=4)
    with pytest.raises(BadValue, match="dim must be a whole number from 1, not 0"):
        make_detector("tridet", dim=0)
    with pytest.raises(BadValue, match="a window is an odd number of steps, not 4"):
        make_detector("actionformer", window=4)
    with pytest.raises(BadValue, match="rules: 'mine' is not one of 'original', 'opentad'"):
        make_detector("actionformer", rules="mine")


@pytest.mark.parametrize("name", EVERY)
def test_invalid_features_are_refused(name: str, small: Make, rows: Make) -> None:
    detector = small(name)
    good = rows(20)
    with pytest.raises(BadValue, match=r"got \(T, 10\), the model takes 12; choose the variant"):
        detector.raw(good[:, :10])
    with pytest.raises(BadValue, match=r"got \(T, 20\), the model takes 12; transpose them"):
        detector.raw(good.T)
    with pytest.raises(BadValue, match=r"must be \(T, 12\), one row a step, got an array of shape \(12,\)"):
        detector.raw(good[0])
    with pytest.raises(BadValue, match="floating-point numbers, got int64"):
        detector.raw(good.astype(np.int64))
    with pytest.raises(DataError, match="no rows"):
        detector.raw(good[:0])
    for bad in (np.nan, np.inf):
        spoilt = good.copy()
        spoilt[7, 3] = bad
        with pytest.raises(DataError, match="row 7 of 20 holds NaN or infinity"):
            detector.detect(spoilt, fps=30, duration=3)
    with pytest.raises(BadValue, match="fps must be above 0, not 0"):
        detector.detect(good, fps=0, duration=3)
    with pytest.raises(BadValue, match="at least one video"):
        detector.batch([])


@pytest.mark.parametrize("name", NAMES)
def test_single_step_video(name: str, small: Make, rows: Make) -> None:
    detector = small(name)
    assert [int(mask.sum()) for mask in detector.raw(rows(1))["mask"]] == [1, 1, 1, 1]
    detector.detect(rows(1), fps=30, duration=0.5)


@pytest.mark.parametrize("name", EVERY)
def test_half_and_double_precision_features_are_accepted(name: str, small: Make, rows: Make) -> None:
    detector, good = small(name), rows(20)
    expected = detector.raw(good)["cls"][0]
    assert np.array_equal(detector.raw(good.astype(np.float64))["cls"][0], expected)
    assert np.abs(detector.raw(good.astype(np.float16))["cls"][0] - expected).max() < 0.1


def test_mismatched_weights_are_listed(small: Make, tmp_path: Any) -> None:
    weights = small("temporalmaxer").state_dict()
    weights["surplus"] = weights.pop("reg_head.offset_head.conv.bias")
    path = tmp_path / "weights.safetensors"
    write_weights(weights, path)
    with pytest.raises(CheckpointError) as caught:
        make_detector("temporalmaxer", weights=path, input_dim=13, dim=32, classes=3, levels=4)
    message = str(caught.value)
    assert "the weights do not fit temporalmaxer" in message
    assert "1 missing: reg_head.offset_head.conv.bias" in message
    assert "1 unexpected: surplus" in message
    assert "backbone.embd.0.conv.weight is (32, 12, 3), not (32, 13, 3)" in message


def test_opentad_names_are_detected(small: Make) -> None:
    assert not is_opentad(small("tridet").state_dict())
    opentad_weights = {
        "projection.branch.0.ln.weight": torch.ones(4),
        "projection.branch.0.gn.weight": torch.ones(4),
        "neck.fpn_norms.3.bias": torch.ones(4),
        "rpn_head.cls_end_convs.1.norm.weight": torch.ones(4),
        "rpn_head.cls_start_head.bias": torch.ones(4),
        "rpn_head.loss_normalizer": torch.tensor(87.25),
    }
    assert is_opentad(opentad_weights)
    assert {key: tuple(value.shape) for key, value in opentad_names(opentad_weights).items()} == {
        "backbone.branch.0.ln.weight": (1, 4, 1),
        "backbone.branch.0.gn.weight": (4,),
        "neck.fpn_norms.3.bias": (1, 4, 1),
        "end_head.norm.1.weight": (1, 4, 1),
        "start_head.cls_head.conv.bias": (4,),
        "loss_normalizer": (),
    }


@pytest.mark.parametrize("name", EVERY)
def test_training_reduces_the_loss(name: str, small: Make, rows: Make) -> None:
    detector = small(name, **({"drop_path": 0.1} if name in ("actionformer", "tridet") else {}))
    detector.train()
    batch, actions = detector.batch([rows(48)]), Actions.of([([[10.0, 30.0]], [1])])
    with torch.random.fork_rng():
        torch.manual_seed(0)
        losses = descend(detector, batch, actions, lr=1e-3, steps=12)
    assert losses[-1].total < 0.7 * losses[0].total


def test_candidates_are_selected_per_level(small: Make, rows: Make) -> None:
    features = rows(60)
    every = small("actionformer", min_probability=0.0, top_candidates=10**6, min_duration=-1.0).candidates(features)
    assert len(every) == 3 * (60 + 30 + 15 + 8)
    best = small("actionformer", min_probability=0.0, top_candidates=5, min_duration=-1.0).candidates(features)
    assert len(best) == 5 * 4
    expected = [every.scores[a : a + 5] for a in (0, 180, 270, 315)]
    assert np.array_equal(best.scores, np.concatenate(expected))
    assert (np.diff(best.scores.reshape(4, 5)) <= 0).all()


def test_class_agnostic_proposals_get_video_classes(rows: Make) -> None:
    detector = make_detector("actionformer_anet_tsp", min_probability=0.0, min_score=0.0, **TINY)
    scores = np.zeros(200)
    scores[[7, 150]] = 0.5, 0.25
    plain = detector.detect(rows(90, 512), fps=15, duration=97, stride=16, window=16)
    segments = detector.detect(rows(90, 512), fps=15, duration=97, stride=16, window=16, video_scores=scores)
    assert plain.classes == ("action",)
    assert set(segments.label.tolist()) == {7, 150}
    assert len(segments) == 2 * len(plain)
    assert segments.score is not None
    assert plain.score is not None
    assert segments.score[0] == pytest.approx(np.sqrt(0.5 * plain.score[0]), rel=1e-6)
    with pytest.raises(BadValue, match="video_scores must be one finite number from 0 for each class"):
        detector.detect(rows(90, 512), fps=15, duration=97, video_scores=[np.nan])
    with pytest.raises(BadValue, match="2 class_names were given for 200 classes"):
        make_detector("actionformer_anet_tsp", class_names=("a", "b"), **TINY).detect(
            rows(90, 512), fps=15, duration=97, video_scores=scores
        )
    thumos = make_detector("temporalmaxer_puppets", **TINY)
    with pytest.raises(BadValue, match="this one has 16 classes"):
        thumos.detect(rows(9, 128), fps=24, duration=2, video_scores=scores)


def test_both_rules_for_video_scores() -> None:
    candidates = Candidates(np.array([[0, 1]], np.float32), np.array([0.25], np.float32), np.zeros(1, np.int64))
    config = detectors["actionformer_anet_tsp"].config()
    assert with_video_scores(candidates, [0.0, 1.0], config).scores.tolist() == [0.5, 0.0]
    opentad_config = dataclasses.replace(config, rules="opentad")
    assert with_video_scores(candidates, [0.0, 1.0], opentad_config).scores.tolist() == [0.25, 0.0]


def test_resized_features_give_segments_in_seconds(rows: Make) -> None:
    """90 rows of 16 frames are resized to 192 rows of 7.5 frames; the last row ends with the video."""
    detector = make_detector("actionformer_anet_tsp", min_probability=0.0, min_score=0.0, **TINY)
    assert [len(mask) for mask in detector.raw(rows(90, 512))["mask"]] == [192, 96, 48, 24, 12, 6]
    grid = detector.candidates(rows(90, 512)).segments
    segments = detector.detect(rows(90, 512), fps=15, duration=1e6, stride=16, window=16)
    step = 90 * 16 / 192 / 15  # seconds
    assert segments.start.min() >= 0
    assert segments.end.max() <= (grid[:, 1].max() + 0.5) * step + 1e-3


@pytest.mark.parametrize("name", EVERY)
def test_bfloat16_is_close_to_float32(name: str, small: Make, rows: Make) -> None:
    expected = small(name).raw(rows(40))
    actual = small(name, precision="bfloat16").raw(rows(40))
    for a, b in zip(expected["cls"], actual["cls"], strict=True):
        assert np.abs(a - b).max() < 0.25
        assert b.dtype == np.float32


@pytest.mark.parametrize("window", [9, 1])
def test_bfloat16_has_no_side_effects(window: int, small: Make, rows: Make) -> None:
    """A failed bfloat16 matmul makes torch disable its fast kernels for good, which changes later results."""
    before = small("actionformer", window=window).raw(rows(40))
    small("actionformer", window=window, precision="bfloat16").raw(rows(40))
    assert torch.backends.mkldnn.enabled
    after = small("actionformer", window=window).raw(rows(40))
    for a, b in zip(before["cls"], after["cls"], strict=True):
        assert np.array_equal(a, b)


def test_compiled_is_ignored_on_cpu() -> None:
    sizes = {"input_dim": 8, "dim": 32, "classes": 3, "max_length": 96, "levels": 4}
    detector = make_detector("temporalmaxer", compiled=True, **sizes)
    detector.raw(np.ones((20, 8), np.float32))
    assert detector._fast is None
