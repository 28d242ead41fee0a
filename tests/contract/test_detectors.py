"""Contract of every detector: stored and loaded, asked twice, and trained where nothing happens, it is the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from helpers.detector_forms import FORMS, SMALL, film, rows, small
from jostle.errors import BadValue, CheckpointError
from jostle.evaluation.inference.jobs import same_bits
from jostle.models.checkpoints import write_weights
from jostle.models.detection.blocks.assignment import Actions
from jostle.models.detection.detector import detectors, make_detector

OF_ACTIONS = {"afsd": ["quality"], "e2e_tad": ["iou"], "vsgn": ["adjustment"]}  # further terms of the loss
every_form = pytest.mark.parametrize("form", FORMS)


def build(form: str, **changes: Any) -> Any:
    name, own = FORMS[form]
    if not name.startswith(("e2e", "vsgn")):
        changes = {"min_probability": 0.0} | changes
    return small(name, **(own | changes))


def video(detector: Any, length: int) -> Any:
    return rows(length) if detector.looks_at == "features" else film(length)


def test_every_network_is_here() -> None:
    assert {detectors[name].model for name in SMALL} == {kind.model for kind in detectors.values()}


@every_form
def test_saved_weights_are_loaded_unchanged(form: str, tmp_path: Path) -> None:
    detector, (name, own) = build(form), FORMS[form]
    write_weights(detector.state_dict(), tmp_path / "a.safetensors")
    loaded: Any = make_detector(name, weights=tmp_path / "a.safetensors", **(SMALL[name] | own))
    assert type(loaded) is detectors[name].model
    assert same_bits(loaded.raw(video(loaded, 12)), detector.raw(video(detector, 12)))


@every_form
def test_inference_has_no_side_effects(form: str) -> None:
    detector = build(form).train()
    good = video(detector, 12)
    before, state = good.copy(), {key: value.clone() for key, value in detector.state_dict().items()}
    assert same_bits(detector.raw(good), detector.raw(good))
    assert np.array_equal(good, before)
    assert detector.training
    assert all(torch.equal(value, state[key]) for key, value in detector.state_dict().items())


@every_form
def test_segments_are_of_the_video_and_fall_in_score(form: str) -> None:
    detector = build(form)
    first, again = (detector.detect(video(detector, 70), fps=5.0, duration=10.0) for _ in range(2))
    assert len(first) > 0
    assert first.start.min() >= 0
    assert first.end.max() <= 10.0
    assert (np.diff(first.score) <= 0).all()
    assert same_bits(first, again)


@every_form
def test_loss_without_actions_is_only_background(form: str) -> None:
    detector = build(form).train()
    if detector.looks_at == "features":
        batch = detector.batch([rows(300), rows(50)])
    else:
        prepared = detector.prepare(film(2 * detector.config.max_length))
        batch = (torch.cat([detector.clip(prepared, first) for first in (0, detector.config.max_length)]),)
    losses = detector.loss(detector(*batch), Actions.of([([], []), ([], [])]))
    losses.total.backward()
    assert losses.regression.item() == losses.positives.item() == 0
    assert all(losses.others[name].item() == 0 for name in OF_ACTIONS.get(FORMS[form][0], ()))
    assert losses.classification.item() > 0
    if hasattr(detector, "loss_normalizer"):
        assert detector.loss_normalizer.item() == pytest.approx(90.1)
    if "actionness" in losses.others:
        assert losses.others["actionness"].item() > 0  # background is learned too
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in detector.parameters())


@pytest.mark.parametrize(("name", "other"), [("basictad", "basictad sigmoid_points"), ("e2e_tad", "e2e_tad slowfast")])
def test_weights_of_another_form_are_refused(name: str, other: str, tmp_path: Path) -> None:
    write_weights(small(name).state_dict(), tmp_path / "a.safetensors")
    with pytest.raises(CheckpointError, match=f"do not fit {name}"):
        make_detector(name, weights=tmp_path / "a.safetensors", **(SMALL[name] | FORMS[other][1]))


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("afsd", {"dim": 48}, "dim 48 does not divide into the 32 groups"),
        ("afsd", {"max_length": 48}, "4 levels need a max_length that is a multiple of 32, not 48"),
        ("afsd", {"crop": 40}, "crop is a multiple of 32, not 40"),
        ("afsd", {"crop": 64}, "crop 64 is larger than frame_size 40"),
        ("afsd", {"backbone_width": 0.0}, "backbone_width is above 0"),
        ("afsd", {"form": "kinetics"}, "form"),
        ("afsd", {"fps": 0.0}, "fps must be above 0"),
        ("afsd", {"levels": 1}, "levels are from 2"),
        ("basictad", {"input_dim": 2}, "frames of 3 colours, not 2"),
        ("basictad", {"max_length": 40}, "4 levels need a max_length that is a multiple of 16, not 40"),
        ("basictad", {"clip_stride": 33}, "clip_stride 33 leaves out frames"),
        ("basictad", {"form": "sigmoid_points", "dim": 48}, "dim 48 does not divide into the 32 groups"),
        ("basictad", {"backbone_width": 0.0}, "backbone_width is above 0"),
        ("basictad", {"threshold": 0.0}, "threshold is above 0"),
        ("basictad", {"implied": (0, 3)}, "implied is two numbers of its 3 classes"),
        ("basictad", {"form": "boxes"}, "form"),
        ("basictad", {"levels": 1}, "levels are from 2"),
        ("e2e_tad", {"input_dim": 2}, "frames of 3 colours, not 2"),
        ("e2e_tad", {"levels": 2}, "no pyramid"),
        ("e2e_tad", {"dim": 48}, "dim 48 does not divide"),
        ("e2e_tad", {"heads": 5}, "dim 32 does not divide"),
        ("e2e_tad", {"backbone": "slowfast", "max_length": 12}, "a multiple of 8, not 12"),
        ("e2e_tad", {"clip_stride": 17}, "clip_stride 17 leaves out frames"),
        ("e2e_tad", {"backbone_width": 0.0}, "backbone_width is above 0"),
        ("e2e_tad", {"threshold": 0.0}, "threshold is above 0"),
        ("e2e_tad", {"dropout": 1.0}, "dropout is from 0"),
        ("e2e_tad", {"backbone": "i3d"}, "backbone"),
        ("e2e_tad", {"decoder_layers": 0}, "decoder_layers must be a whole number from 1 to 32"),
        ("e2e_tad", {"encoder_layers": 10**9}, "encoder_layers must be a whole number from 1 to 32"),
        ("vsgn", {"dim": 48}, "dim 48 does not divide into the 32 groups"),
        ("vsgn", {"max_length": 312}, "4 levels need a max_length that can be halved 5 times, not 312"),
        ("vsgn", {"neighbours": 21}, "the coarsest graph has 20 steps, fewer than 21 neighbours"),
        ("vsgn", {"anchors": ()}, "anchors are lengths above 0"),
        ("vsgn", {"gap": 160}, "gap is from 0 to below half of max_length 320, not 160"),
        ("vsgn", {"long_videos": "cut"}, "long_videos"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(name: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BadValue, match=message):
        small(name, **changes)
