"""The detectors against numbers of the public implementations; `tests/golden/detectors/README.md` describes them."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

torch = pytest.importorskip("torch")

from jostle.detectors.blocks.assignment import Actions  # noqa: E402
from jostle.detectors.checkpoints import write_weights  # noqa: E402
from jostle.detectors.detector import Detector, load_detector  # noqa: E402

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "detectors"
SHARED = Path(__file__).resolve().parents[3] / "shared" / "golden" / "detectors"
NAMES = ("actionformer", "tridet", "temporalmaxer")
SEEDS = {"actionformer": 1101, "tridet": 1201, "temporalmaxer": 1301}
VIDEOS = {"vid_a": (400, 11, 53.7333), "vid_b": (576, 21, 77.2)}  # rows, seed, seconds
SIZES: dict[str, Any] = {"input_dim": 32, "dim": 64, "classes": 5, "max_length": 576, "levels": 6}
OWN: dict[str, dict[str, Any]] = {
    "actionformer": {"window": 19, "heads": 4, "mlp_dim": 256},
    "tridet": {"mlp_dim": 96, "sgp_window": 1, "sgp_k": 5, "bins": 16},
    "temporalmaxer": {},
}
# Centre and half-width of the weights, by the first expression that fits their name.
RULE = (
    (r"drop_path_\w+\.scale$", 0.3, 0.2),
    (r"reg_head\.scale\.\d+\.scale$", 1.0, 0.4),
    (r"^cls_head\.cls_head\.conv\.bias$", -6.2, 1.5),
    (r"^(start|end)_head\.cls_head\.conv\.bias$", -1.0, 1.0),
    (r"^reg_head\.offset_head\.conv\.bias$", 0.4, 0.6),
    (r"\.bias$", 0.0, 0.2),
)


def drawn_weights(keys: list[str], seed: int) -> dict[str, Any]:
    rng = np.random.Generator(np.random.PCG64(seed))
    made = {}
    for line in keys:
        name, *dims = line.split()
        shape = tuple(int(n) for n in dims)
        norm = len(shape) == 1 or (len(shape) == 3 and shape[0] == 1 and shape[2] == 1)
        wide = (1.0, 0.4) if norm else (0.0, 1.5 * math.sqrt(3.0 / math.prod(shape[1:])))
        centre, half = next(((c, a) for pattern, c, a in RULE if re.search(pattern, name)), wide)
        values = centre + half * (2.0 * rng.random(math.prod(shape)) - 1.0)
        made[name] = torch.from_numpy(values.astype(np.float32).reshape(shape))
    return made


def features(video: str) -> npt.NDArray[np.float32]:
    rows, seed, _ = VIDEOS[video]
    rng = np.random.Generator(np.random.PCG64(seed))
    amplitude = rng.random(rows)
    noise = rng.random((rows, 32))
    return ((0.02 + 1.5 * amplitude * amplitude)[:, None] * (2.0 * noise - 1.0)).astype(np.float32)


@pytest.fixture(scope="module", params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def golden(name: str) -> dict[str, Any]:
    with np.load(GOLDEN / f"{name}.npz") as file:
        return {key: file[key] for key in file.files}


@pytest.fixture(scope="module")
def weights(name: str, golden: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("weights") / f"{name}.safetensors"
    write_weights(drawn_weights(golden["keys"].tolist(), SEEDS[name]), path)
    return path


def built(name: str, weights: Path, rules: str = "original", **more: Any) -> Detector[Any]:
    if rules == "opentad" and name != "temporalmaxer":
        more["max_segments"] = 2000
    return load_detector(name, weights=weights, rules=rules, **SIZES, **OWN[name], **more)


def check_raw(detector: Detector[Any], golden: dict[str, Any], video: str, prefix: str = "") -> None:
    raw = detector.raw(features(video))
    key = f"{prefix}{video}"
    assert [int(mask.sum()) for mask in raw["mask"]] == golden[f"{key}_sizes"].tolist()
    assert [len(mask) for mask in raw["mask"]] == golden[f"{key}_padded"].tolist()
    for ours, theirs, tolerance in (("cls", "cls_logits", 1e-4), ("offsets", "offsets", 2e-4)):
        found = np.concatenate([x[mask] for x, mask in zip(raw[ours], raw["mask"], strict=True)])
        np.testing.assert_allclose(found, golden[f"{key}_{theirs}"], rtol=0, atol=tolerance)


def check_segments(detector: Detector[Any], golden: dict[str, Any], video: str, prefix: str = "") -> None:
    found = detector.detect(features(video), fps=30, duration=VIDEOS[video][2])
    ends, scores, labels = (golden[f"{prefix}{video}_pred_{x}"] for x in ("segments", "scores", "labels"))
    kept = ends[:, 0] < ends[:, 1]  # a segment of no length, which OpenTAD does not drop, is none here
    ends, scores, labels = ends[kept], scores[kept], labels[kept]
    assert kept.sum() >= len(kept) - 1
    assert len(found) == len(scores)
    assert found.score is not None
    assert (np.diff(found.score) <= 0).all()
    for (start, end), score, label in zip(ends, scores, labels, strict=True):
        near = (np.abs(found.start - start) < 2e-3) & (np.abs(found.end - end) < 2e-3) & (found.label == label)
        assert (near & (np.abs(found.score - score) < 1e-3 * score)).any()


@pytest.mark.parametrize("video", VIDEOS)
@pytest.mark.parametrize("rules", ["original", "opentad"])
def test_outputs_and_segments(name: str, golden: dict[str, Any], weights: Path, video: str, rules: str) -> None:
    detector = built(name, weights, rules)
    prefix = "opentad_" if rules == "opentad" else ""
    check_raw(detector, golden, video, prefix)
    check_segments(detector, golden, video, prefix)


@pytest.mark.parametrize("video", VIDEOS)
def test_candidates(name: str, golden: dict[str, Any], weights: Path, video: str) -> None:
    found = built(name, weights).candidates(features(video))
    assert len(found) == len(golden[f"{video}_pre_nms_scores"])
    np.testing.assert_allclose(found.scores, golden[f"{video}_pre_nms_scores"], rtol=0, atol=1e-5)
    same = found.labels == golden[f"{video}_pre_nms_labels"]  # neighbours of nearly one score may change places
    assert same.mean() > 0.99
    apart = np.abs(found.segments - golden[f"{video}_pre_nms_segments"]).max(1)
    assert (apart < 1e-2).mean() > 0.99


def test_losses_targets_and_gradients(name: str, golden: dict[str, Any], weights: Path) -> None:
    detector = built(name, weights)
    detector.training = True  # the module itself, so that its children drop nothing
    inputs, lengths = detector.batch([features(video) for video in VIDEOS])
    segments, labels, video = (golden[f"train_{x}"] for x in ("segments_grid", "labels", "video_of_segment"))
    actions = Actions.of([(segments[video == i], labels[video == i]) for i in range(2)])
    outputs = detector(inputs, lengths)

    targets = detector.assign(outputs, actions, radius=1.5)
    positive = golden["train_pos"]
    np.testing.assert_array_equal(outputs.mask.numpy(), golden["train_valid"])
    np.testing.assert_array_equal(targets.positive.numpy(), positive)
    np.testing.assert_array_equal(targets.classes.numpy(), golden["train_gt_cls"])
    np.testing.assert_allclose(targets.offsets.numpy()[positive], golden["train_gt_offset"][positive], atol=1e-5)

    losses = detector.loss(outputs, actions)
    losses.total.backward()
    assert int(losses.positives) == 27
    assert float(detector.loss_normalizer) == pytest.approx(float(golden["train_loss_normalizer_after"]), rel=1e-6)
    for ours, theirs in (("classification", "cls_loss"), ("regression", "reg_loss"), ("total", "final_loss")):
        assert getattr(losses, ours).item() == pytest.approx(float(golden[f"train_{theirs}"]), rel=1e-5)
    gradients = dict(detector.named_parameters())
    for key, norm in zip(golden["train_grad_keys"].tolist(), golden["train_grad_norm"], strict=True):
        if norm > 1e-5:  # below lie gradients that are zero but for rounding
            assert gradients[key].grad.norm().item() == pytest.approx(norm, rel=1e-3), key


@pytest.mark.parametrize("video", VIDEOS)
def test_public_checkpoints(name: str, golden: dict[str, Any], video: str) -> None:
    """The same numbers from files as the originals and OpenTAD save them, averaged weights chosen, names mapped."""
    if not SHARED.is_dir():
        pytest.skip("no checkpoints at ../shared/golden/detectors")
    sizes = {**SIZES, **OWN[name]}
    (original,) = (SHARED / name).glob("*.pth.tar")
    check_raw(load_detector(name, weights=original, **sizes), golden, video)
    (theirs,) = (SHARED / "opentad" / name).glob("*.pth")
    detector = load_detector(name, weights=theirs, **sizes)
    assert detector.config.rules == "opentad"
    assert detector.loss_normalizer.item() == 87.25
    check_raw(detector, golden, video, "opentad_")
