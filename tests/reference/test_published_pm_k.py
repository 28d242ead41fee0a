"""Metric pm-k against the authors' code on generated frames and ImageNet-Vid-Robust, and published intervals."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from golden.by_rule import stored
from jostle.metrics.class_projection import class_indices, class_names, project_classes
from jostle.metrics.pm_k import pm_k
from jostle.metrics.proportion import clopper_pearson

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "golden" / "diagnosis"
INPUTS = BESIDE / "inputs"
# sha256 of the authors' map from ImageNet's classes to the thirty of ImageNet-Vid-Robust, as sorted plain JSON.
CLASS_MAP = "d6d5e40e4c476c975c08460681f3fce95b0ee935323fd51e8a05dce328e360ca"


def load(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes())


@pytest.fixture(scope="module")
def gold() -> Any:
    if not BESIDE.is_dir():
        pytest.skip("the sets of ImageNet-Vid-Robust are not ours to give; none at ../shared/golden/diagnosis")
    return load(BESIDE / "out" / "pmk.json")


@pytest.fixture(scope="module")
def vid(gold: Any) -> tuple[Any, Any, Any]:
    """Scores, sets and labels of ImageNet-Vid-Robust."""
    stored = np.load(INPUTS / "pmk_vid_logits30.npz")
    scores = dict(zip(stored["frames"].tolist(), stored["logits"], strict=True))
    return scores, load(INPUTS / "pmk_vid_pmsets.json.gz"), load(INPUTS / "pmk_vid_labels.json.gz")


def test_pm_k_on_the_real_sets(vid: Any, gold: Any) -> None:
    scores, sets, labels = vid
    result = pm_k(scores, sets, labels)
    assert result.anchors == 1109 == gold["imagenet_vid_robust"]["anchors"]
    assert result.pairs == 21070 == gold["imagenet_vid_robust"]["pairs"]
    assert len(labels) == 22179 == gold["imagenet_vid_robust"]["frames"]
    assert result.neighbours_median == 20
    sizes = Counter(map(len, sets.values()))
    assert (sizes[20], sizes[0]) == (889, 1)
    assert [result.by_offset[i].frames for i in (-1, -10, 1, 10)] == [1101, 1009, 1100, 996]
    assert Counter(map(len, labels.values())) == {1: 20665, 2: 1463, 3: 51}
    assert sum(set(labels[n]) != set(labels[a]) for a, set_ in sets.items() for n in set_) == 11


def test_synthetic_scores_on_the_real_sets(vid: Any, gold: Any) -> None:
    expected = gold["imagenet_vid_robust"]["synthetic30"]
    result = pm_k(*vid)
    assert result.accuracy == expected["pm0"]
    assert result.pm_k == expected["pm10"]
    assert list(result.correct_by_radius) == list(expected["k_correct_by_radius"].values())
    assert (result.correct_by_radius[0], result.correct_by_radius[-1]) == (expected["k_pm0"], expected["k_pm10"])
    assert result.accuracy_interval == pytest.approx(expected["ci95_pm0"], abs=1e-9)
    assert result.pm_k_interval == pytest.approx(expected["ci95_pm10"], abs=1e-9)
    assert {str(offset): list(vars(count).values()) for offset, count in result.by_offset.items()} == {
        offset: list(counts.values()) for offset, counts in expected["per_offset"].items()
    }
    assert pm_k(*vid, include_anchor=False).pm_k == expected["pm10_anchor_excluded"]
    assert pm_k(*vid, labels_of="anchor").pm_k == expected["pm10_anchor_labels_for_neighbours"]
    for radius in range(11):
        assert pm_k(*vid, radius).pm_k == result.correct_by_radius[radius] / 1109


def test_generated_frames_with_labels_of_their_anchors() -> None:
    golden = stored("pm_k/frames.npz")
    sets, scores, labels = {}, {}, {}
    for video, (favoured, right) in enumerate(zip(golden["favoured"], golden["labels"], strict=True)):
        frames = {offset - 10: f"{video}/{100 + offset - 10}.jpg" for offset in np.flatnonzero(favoured >= 0).tolist()}
        scores |= {name: int(favoured[offset + 10]) for offset, name in frames.items()}
        anchor = frames.pop(0)
        sets[anchor], labels[anchor] = list(frames.values()), right[right >= 0].tolist()
    result = pm_k(scores, sets, labels, labels_of="anchor")
    assert (result.anchors, result.accuracy, result.pm_k) == (600, float(golden["pm_0"]), float(golden["pm_10"]))
    assert [result.correct_by_radius[0], result.correct_by_radius[-1]] == golden["correct"].tolist()
    errors = [[offset, count.errors_anchor_right] for offset, count in result.by_offset.items()]
    assert errors == golden["errors_by_offset"].tolist()


def test_intervals_of_all_released_models() -> None:
    """Compare the intervals of 335 models on two sets, each distinct share once."""
    golden = stored("pm_k/intervals.npz")
    assert len(golden["right"]) == 964
    for right, of, *interval in zip(*(golden[x].tolist() for x in ("right", "of", "low", "high")), strict=True):
        assert clopper_pearson(right, of) == pytest.approx(interval, abs=1e-9)


@pytest.mark.parametrize(
    ("right", "anchors", "printed"),
    [
        (749, 1109, "67.5 [64.7,70.3]"),
        (582, 1109, "52.5 [49.5,55.5]"),
        (1158, 2030, "57.0 [54.9,59.2]"),
        (890, 2030, "43.8 [41.7,46.0]"),
    ],
)
def test_printed_intervals(right: int, anchors: int, printed: str) -> None:
    low, high = (100 * end for end in clopper_pearson(right, anchors) or ())
    assert f"{100 * right / anchors:.1f} [{low:.1f},{high:.1f}]" == printed


def test_classes_of_imagenet_vid() -> None:
    actual = class_indices("imagenet-vid")
    plain = json.dumps({str(i): sorted(indices) for i, indices in enumerate(actual)}, separators=(",", ":"))
    assert hashlib.sha256(plain.encode()).hexdigest() == CLASS_MAP
    assert len({i for indices in actual for i in indices}) == sum(map(len, actual)) == 288


def test_projections() -> None:
    golden = stored("pm_k/projections.npz")
    for merge in ("max", "mean", "median", "sum"):
        projected = project_classes(golden["logits"], "imagenet-vid", merge=merge)
        np.testing.assert_array_equal(projected, golden[merge])


def test_maximum_over_classes_gives_the_published_pm_k(vid: Any, gold: Any) -> None:
    """The stored thirty scores are maxima over classes, so both inputs of pm-k agree."""
    stored = np.load(INPUTS / "pmk_vid_projection.npz")
    projected = project_classes(stored["logits1000"], "imagenet-vid")
    for frame, row in zip(stored["frames"].tolist(), projected, strict=True):
        np.testing.assert_array_equal(row, vid[0][frame])
    merged = gold["imagenet_vid_robust"]["merge_ops_on_synthetic_288"]["max"]
    result_of_all_scores = pm_k(*vid)
    assert (result_of_all_scores.accuracy, result_of_all_scores.pm_k) == (merged["pm0"], merged["pm10"])


def test_classes_of_ytbb() -> None:
    names, indices = class_names("ytbb"), class_indices("ytbb")
    assert len(names) == len(indices) == 24
    assert [names[i] for i, held in enumerate(indices) if not held] == [
        "cow",
        "giraffe",
        "skateboard",
        "toilet",
        "none",
    ]
    assert not set(class_names("imagenet-vid")) & {"", "none"}
