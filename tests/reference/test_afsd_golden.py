"""AFSD against results of the public program; `tests/golden/detectors2/README.md` describes them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from golden import afsd_rule, by_rule

torch = pytest.importorskip("torch")

from jostle.models.detection.afsd import AFSD, AfsdOutputs
from jostle.models.detection.blocks.afsd import Cut, answers, end_maps, frame_regions, level_regions
from jostle.models.detection.blocks.assignment import Actions
from jostle.models.detection.blocks.boundaries import boundary_max_pool
from jostle.models.detection.detector import make_detector
from jostle.models.detection.nms import soft_nms, soft_nms_until_one

Build = Callable[..., AFSD]
OUTPUT_NAMES = {
    "offsets": "loc",
    "logits": "conf",
    "shifts": "prop_loc",
    "refined_logits": "prop_conf",
    "quality": "center",
}


@pytest.fixture(params=afsd_rule.FORMS)
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def build_detector(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Cached function that loads the detector of a form from a plain state dictionary, as the program saves it."""
    files: dict[str, Path] = {}

    @cache
    def build(form: str, **changes: Any) -> AFSD:
        if form not in files:
            files[form] = tmp_path_factory.mktemp("weights") / "checkpoint-15.ckpt"
            torch.save({key: torch.from_numpy(value) for key, value in afsd_rule.weights(form).items()}, files[form])
        detector = make_detector(afsd_rule.NAMES[form], weights=files[form], **afsd_rule.SIZES[form], **changes)
        assert isinstance(detector, AFSD)
        return detector

    return build


def golden(form: str, section: str) -> dict[str, Any]:
    return by_rule.stored(f"detectors2/afsd/{form}_{section}.npz")


def actions_of(rows: npt.NDArray[Any], length: int) -> Actions:
    """Convert rows [sample, start, end, class], with ends relative to the clip length, to actions."""
    videos = [rows[rows[:, 0] == i] for i in (0, 1)]
    return Actions.of([(x[:, 1:3] * length, x[:, 3].astype(int) - 1) for x in videos])


def test_outputs(form: str, build_detector: Build) -> None:
    detector, expected = build_detector(form), golden(form, "infer")
    frames = afsd_rule.frames(form, "vid_c" if form == "thumos" else "v_s")
    clip = detector.clip(detector.prepare(frames), 0)
    digest = {"thumos": "1219c3c2af308f08aecf3de0daa396eef080cfb0cc594a7b0255a30393a8d470"}
    digest["anet"] = "ae5538180ef75f2794d3fa5f862ba075398bbc7fe11fe82f0806b5933db9addc"
    assert by_rule.digest([clip[0].numpy()]) == digest[form]
    ((_, outputs),) = detector.outputs_of(frames)
    length = detector.config.max_length
    np.testing.assert_allclose(detector.points / length, expected["priors"][:, 0], rtol=0, atol=1e-6)
    for ours, theirs in OUTPUT_NAMES.items():
        actual, stored = (
            getattr(outputs, ours)[0],
            expected[theirs].squeeze(-1) if ours == "quality" else expected[theirs],
        )
        relative, absolute = (5e-5, 5e-4) if ours == "offsets" else (0, 1e-4)
        np.testing.assert_allclose(actual, stored, rtol=relative, atol=absolute)
    for name, sides in (
        ("", outputs.frame_sides),
        ("_loc_prop", outputs.offset_sides),
        ("_conf_prop", outputs.logit_sides),
    ):
        start, end = sides[0].tanh().chunk(2)
        np.testing.assert_allclose(start.mean(0), expected[f"tanhmean_start{name}"], rtol=0, atol=1e-5)
        np.testing.assert_allclose(end.mean(0), expected[f"tanhmean_end{name}"], rtol=0, atol=1e-5)
    offsets, clear = outputs.offsets, np.setdiff1d(np.arange(len(detector.points)), expected["near_half"])
    segments = torch.stack([detector.points - offsets[..., 0], detector.points + offsets[..., 1]], -1)
    np.testing.assert_array_equal(frame_regions(segments)[0][clear], expected["regions_frame"][clear])
    sizes = detector.config.sizes
    levels = [level_regions(x, n / length) for x, n in zip(offsets.split(sizes, 1), sizes, strict=True)]
    np.testing.assert_array_equal(torch.cat(levels, 1)[0][clear], expected["regions_level"][clear])


# One of the four runs by default: the forms differ only in the loss terms, the kinds only in pooling.
@pytest.mark.parametrize(
    ("form", "kind"),
    [
        ("thumos", "exact"),
        pytest.param("thumos", "published", marks=pytest.mark.slow),
        pytest.param("anet", "exact", marks=pytest.mark.slow),
        pytest.param("anet", "published", marks=pytest.mark.slow),
    ],
)
def test_targets_losses_and_gradients(form: str, build_detector: Build, kind: str) -> None:
    expected = golden(form, "train")
    # In double precision, as the order of single-precision sums depends on the processor.
    detector = copy.deepcopy(build_detector(form, reproduce_bugs=kind == "published")).train().double()
    length, names = detector.config.max_length, list(afsd_rule.VIDEOS[form])
    clips = []
    for row in expected["batch_index"]:
        prepared = detector.prepare(afsd_rule.frames(form, names[expected["list_video"][row]]))
        clips.append(detector.clip(prepared, int(expected["list_offset"][row])))
    x, actions = torch.cat(clips).double(), actions_of(expected["targets"], length)
    np.testing.assert_array_equal(end_maps(actions, length), expected["scores"][:, -2:])
    outputs = detector(x)
    targets = answers(detector.points, detector.level, outputs.offsets, actions, detector.config.form)
    np.testing.assert_array_equal(targets.labels, expected["gt_conf"])
    np.testing.assert_array_equal(targets.refined, expected["gt_prop_conf"])
    positive = expected["gt_conf"] > 0
    np.testing.assert_allclose(targets.offsets.numpy()[positive], expected["gt_loc"][positive], rtol=0, atol=1e-4)

    losses = detector.loss(outputs, actions)
    terms = {
        "loc": losses.regression,
        "conf": losses.classification,
        "prop_loc": losses.others["refined_regression"],
        "prop_conf": losses.others["refined_classification"],
        **{name: losses.others[name] for name in ("quality", "start", "end")},
    }
    for name, term in terms.items():
        assert term.item() == pytest.approx(float(expected[f"loss_{name}"]), rel=2e-5), name
    choice = expected["ssl_choice"]
    cut = Cut(float(choice[0]), float(choice[1]), *(int(n) for n in choice[2:]))
    np.testing.assert_array_equal(cut.order(length), expected["ssl_frame_index"])
    np.testing.assert_array_equal(cut.segments(), expected["ssl_segments"])
    moved = x[int(expected["ssl_base"][0])][:, cut.order(length)][None]
    losses.total.backward()
    check_norms(detector, expected[f"grad_norm_detection_{kind}"], form, kind)
    detector.zero_grad()
    triplet = detector.triplet(detector(moved), torch.from_numpy(cut.segments())[None])
    assert triplet.item() == pytest.approx(float(expected["loss_triplet"]), rel=2e-5)
    weighted = 0.1 * triplet
    weighted.backward()
    check_norms(detector, expected[f"grad_norm_triplet_{kind}"], form, kind)
    assert (losses.total + weighted).item() == pytest.approx(float(expected["cost"]), rel=2e-5)


def check_norms(detector: AFSD, expected: npt.NDArray[Any], form: str, kind: str) -> None:
    """Compare gradient norms; in the single-precision original a tie of maxima changes one of 157 by 1.7e-3."""
    parameters = dict(detector.named_parameters())
    keys = [key for key in by_rule.shapes(afsd_rule.keys(form)) if ".bn." not in key]
    off = {}
    for key, norm in zip(keys, expected, strict=True):
        gradient = parameters[key].grad
        if norm > 1e-5:
            assert gradient is not None, key
            off[key] = abs(gradient.norm().item() / float(norm) - 1)
    assert max(off.values()) <= 3e-3, max(off, key=off.__getitem__)
    assert kind == "published" or np.mean(np.array(list(off.values())) <= 1e-3) >= 0.99


def check_all(actual: npt.NDArray[Any], expected: npt.NDArray[Any]) -> None:
    """Check that at least 99 % of the expected rows [class, start, end, score] have a match."""
    assert len(actual) == len(expected)
    matched = 0
    for label, start, end, score in expected:
        near = (np.abs(actual[:, 1:3] - [start, end]) <= 2e-3).all(1) & (actual[:, 0] == label)
        matched += bool((near & (np.abs(actual[:, 3] - score) <= 1e-3 * score)).any())
    assert matched >= 0.99 * len(expected)


@pytest.mark.parametrize("form", ["thumos"])
@pytest.mark.parametrize(
    ("number", "video"),
    [
        pytest.param(0, "vid_a", marks=pytest.mark.slow),
        pytest.param(1, "vid_b", marks=pytest.mark.slow),
        (2, "vid_c"),
    ],
)
def test_segments_of_thumos14(form: str, build_detector: Build, number: int, video: str) -> None:
    detector, expected = build_detector(form, reproduce_bugs=True), golden(form, "detect")
    candidates = detector.candidates(afsd_rule.frames(form, video))
    counts = expected["candidates_per_call"].reshape(3, 20)[number]
    assert np.bincount(candidates.labels, minlength=20).tolist() == counts.tolist()
    segments = detector.suppress(candidates)
    pred = expected["pred"][expected["pred"][:, 0] == number]
    check_all(np.c_[segments.labels + 1, segments.segments / 10, segments.scores], pred[:, 1:])
    mended = build_detector(form).suppress(candidates)
    assert len(segments) < len(mended) <= len(segments) + 20  # at most one more per class


@pytest.mark.parametrize("form", ["anet"])
def test_segments_of_activitynet(form: str, build_detector: Build) -> None:
    detector, expected = build_detector(form, reproduce_bugs=True), golden(form, "detect")
    rng = np.random.Generator(np.random.PCG64(9))
    scores = [np.round(rng.random(200), 6) for _ in range(4)]
    for number, (video, fps) in enumerate((("v_r", 7.5), ("v_s", 5.0)), 2):
        frames = afsd_rule.frames(form, video)
        pred = expected["pred"][expected["pred"][:, 0] == number]
        matching = [s for s in scores if s.argmax() == pred[0, 1]]
        assert len(matching) == 1
        segments = detector.detect(frames, fps=fps, duration=len(frames) / fps, video_scores=matching[0])
        check_all(np.c_[segments.label, segments.start, segments.end, segments.score], pred[:, 1:])


@pytest.mark.parametrize("case", ["same", "fewer", "triplet"])
@pytest.mark.parametrize("kind", ["exact", "published"])
def test_boundary_pooling_equals_the_program(case: str, kind: str) -> None:
    ops = {key: torch.from_numpy(value) for key, value in golden("thumos", "ops").items() if key.startswith("pool")}
    x = ops[f"pool_{case}_x"].requires_grad_()
    pooled = boundary_max_pool(x, ops[f"pool_{case}_segments"], reproduce_bugs=kind == "published")
    torch.testing.assert_close(pooled, ops[f"pool_{case}_out"], rtol=0, atol=0)
    pooled.backward(ops[f"pool_{case}_grad_out"])
    torch.testing.assert_close(x.grad, ops[f"pool_{case}_grad_{kind}"], rtol=1e-6, atol=1e-6)


def test_loss_terms_and_input_gradients(form: str) -> None:
    """Compare the gradient of every loss term for every input; quality has gradients for distances and shifts too."""
    expected = golden(form, "ops")
    with torch.random.fork_rng():
        detector = make_detector(afsd_rule.NAMES[form], dim=32, backbone_width=0.1, **afsd_rule.SIZES[form])
    assert isinstance(detector, AFSD)
    inputs = {
        ours: torch.from_numpy(expected[f"in_{theirs}"]).requires_grad_() for ours, theirs in OUTPUT_NAMES.items()
    }
    length, finest = detector.config.max_length, detector.config.finest
    sides = [torch.full((2, 8, n), 0.3) for n in (length, length // finest, length // finest)]
    outputs = AfsdOutputs(**{**inputs, "quality": inputs["quality"][..., 0]}, **dict(zip(SIDES, sides, strict=True)))
    losses = detector.loss(outputs, actions_of(expected["in_targets"], length))
    terms = {
        "loc": losses.regression,
        "conf": losses.classification,
        "prop_loc": losses.others["refined_regression"],
        "prop_conf": losses.others["refined_classification"],
        "quality": losses.others["quality"],
    }
    for name, term in terms.items():
        assert term.item() == pytest.approx(float(expected[f"loss_{name}"]), rel=1e-5)
        gradients = torch.autograd.grad(term, list(inputs.values()), retain_graph=True, allow_unused=True)
        for theirs, gradient in zip(OUTPUT_NAMES.values(), gradients, strict=True):
            stored = expected.get(f"d_{name}_d_{theirs}")
            assert (stored is None) == (gradient is None)
            if gradient is not None:
                np.testing.assert_allclose(gradient, stored, rtol=1e-5, atol=1e-6)


SIDES = ("frame_sides", "offset_sides", "logit_sides")


def test_suppression() -> None:
    expected = golden("thumos", "ops")
    rows = expected["nms_in"]
    one_class = (rows[:, :2], rows[:, 2], np.zeros(len(rows), int))
    for sigma, most, name in ((0.5, 5000, "nms_out"), (0.85, 10, "nms_out_085_top10")):
        settings = {"sigma": sigma, "min_score": 0.001, "max_segments": most}
        stored = expected[name][np.argsort(-expected[name][:, 2])]
        segments, scores, _ = soft_nms_until_one(*one_class, **settings)
        np.testing.assert_allclose(np.c_[segments, scores], stored, rtol=1e-5, atol=1e-6)
        right = soft_nms(*one_class, **settings)
        np.testing.assert_allclose(right[1][: len(scores)], scores, rtol=1e-4, atol=1e-6)
        assert len(right[1]) - len(scores) == (most == 5000)
    assert expected["nms_single_count"] == 0
    one = (rows[:1, :2], rows[:1, 2], np.zeros(1, int))
    assert len(soft_nms_until_one(*one, sigma=0.5, min_score=0.001, max_segments=9)[1]) == 0
