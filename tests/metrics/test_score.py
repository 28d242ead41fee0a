"""Scores by protocol, with bootstrap intervals, and comparisons of two runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from jostle.core.types import Predictions, Truth
from jostle.errors import BadValue, DataError, UnknownName
from jostle.metrics.alignment import align
from jostle.metrics.bootstrap import Resamples
from jostle.metrics.protocol import protocols
from jostle.metrics.score import compare, score

COLUMNS = ("video", "start", "end", "label", "score")


def make_truth(videos: int = 12, *, seed: int = 0, **changes) -> Truth:
    """Build ground truth with two instances per video, of three classes."""
    rng = np.random.default_rng(seed)
    start = np.tile([2.0, 20.0], videos) + rng.random(2 * videos)
    columns = {
        "videos": tuple(f"v{i}" for i in range(videos)),
        "classes": ("Jump", "Run", "Throw"),
        "video": np.repeat(np.arange(videos), 2),
        "start": start,
        "end": start + 4,
        "label": np.arange(2 * videos) % 3,
    }
    return Truth(**(columns | changes))


def make_predictions(real: Truth, *, noise: float = 0.5, extra: int = 20, seed: int = 1) -> Predictions:
    """Build predictions with one near each instance, and some at random positions."""
    rng = np.random.default_rng(seed)
    n = len(real)
    start = np.concatenate([np.clip(real.start + rng.normal(0, noise, n), 0, None), rng.uniform(0, 40, extra)])
    return Predictions(
        videos=real.videos,
        classes=real.classes,
        video=np.concatenate([real.video, rng.integers(0, len(real.videos), extra)]),
        start=start,
        end=start + 4,
        label=np.concatenate([real.label, rng.integers(0, 3, extra)]),
        score=rng.permutation(n + extra) / (n + extra),
    )


@pytest.mark.parametrize("name", protocols)
def test_perfect_predictions_score_one_and_no_predictions_zero(name) -> None:
    real = make_truth()
    perfect = score(make_predictions(real, noise=0, extra=0), real, protocol=name)
    assert perfect.average_map == pytest.approx(1)
    assert perfect.map.tolist() == pytest.approx([1] * len(perfect.tious))
    nothing = Predictions((), (), [], [], [], [], [])
    empty = score(nothing, real, protocol=name)
    assert empty.average_map == 0
    assert empty.predictions["count"] == 0
    assert "AP is 0 for classes without a prediction: Jump, Run, Throw" in empty.remarks


@pytest.mark.parametrize("name", protocols)
def test_order_of_rows_without_ties_does_not_matter(name) -> None:
    real = make_truth()
    predictions = make_predictions(real)
    order = np.random.default_rng(3).permutation(len(predictions))
    turned = replace(predictions, **{column: getattr(predictions, column)[order] for column in COLUMNS})
    assert score(predictions, real, protocol=name).map.tolist() == score(turned, real, protocol=name).map.tolist()


def test_videos_and_classes_are_matched_by_name() -> None:
    real = make_truth()
    predictions = make_predictions(real)
    turned = replace(
        predictions,
        videos=predictions.videos[::-1],
        classes=predictions.classes[::-1],
        video=len(predictions.videos) - 1 - predictions.video,
        label=len(predictions.classes) - 1 - predictions.label,
    )
    assert score(predictions, real).map.tolist() == score(turned, real).map.tolist()


def test_parts_of_a_score_have_the_documented_keys() -> None:
    content = score(make_predictions(make_truth()), make_truth(), protocol="thumos14", bootstrap=50).to_dict()
    assert set(content["per_class"]) == {"Jump", "Run", "Throw"}
    assert {"videos", "instances", "classes", "subset", "fingerprint"} <= set(content["truth"])
    assert {"videos", "count", "unknown_label", "outside_subset"} <= set(content["predictions"])
    assert set(content["interval"]) == {"level", "resamples", "seed", "average_map", "map"}
    low, high = content["interval"]["average_map"]
    assert low < content["average_map"] < high


def test_default_thresholds_are_those_of_the_protocol() -> None:
    assert score(make_predictions(make_truth()), make_truth(), protocol="thumos14").tious.tolist() == pytest.approx(
        [0.3, 0.4, 0.5, 0.6, 0.7]
    )
    assert score(make_predictions(make_truth()), make_truth(), tious=[0.25]).tious.tolist() == [0.25]
    for wrong in ([], [0.0], [1.5], [np.nan]):
        with pytest.raises(BadValue, match="thresholds of tIoU lie above 0 and at most at 1"):
            score(make_predictions(make_truth()), make_truth(), tious=wrong)


def test_unknown_protocol_suggests_a_known_one() -> None:
    with pytest.raises(UnknownName, match="did you mean thumos14"):
        score(make_predictions(make_truth()), make_truth(), protocol="thumos4")


def test_blocked_videos_are_left_out_of_truth_and_predictions() -> None:
    real = make_truth()
    result = score(make_predictions(real), real, blocked=("v0", "v1"))
    assert result.predictions["blocked"] > 0
    assert result.truth.left_out == {"in a blocked video": 4}
    assert len(result.truth) == len(real) - 4
    assert len(result.truth.videos) == len(result.resamples.videos) == len(real.videos) - 2


def test_weighted_score_equals_repeated_videos() -> None:
    """A video with weight k counts as k copies of it, with copies in adjacent ranks."""
    real, weight = make_truth(5), np.array([2, 0, 1, 3, 1], np.int16)
    predictions = make_predictions(real, extra=9)
    for name in ("activitynet", "thumos14-official"):
        rules = protocols[name]
        result = score(predictions, real, protocol=name, tious=[0.4, 0.7])
        resamples = Resamples.from_matches(align(predictions, real), result.matches, real, rules)
        weighted = resamples.weighted(weight[None])[0]

        copies = [(video, k) for video, count in enumerate(weight) for k in range(count)]

        def rows(column, copies=copies):
            return np.concatenate([np.flatnonzero(column == video) for video, _ in copies])

        def owners(column, copies=copies):
            return np.concatenate([np.full((column == video).sum(), i) for i, (video, _) in enumerate(copies)])

        names = tuple(f"{video}-{k}" for video, k in copies)
        t, p = rows(real.video), rows(predictions.video)
        repeated_truth = Truth(names, real.classes, owners(real.video), real.start[t], real.end[t], real.label[t])
        # Copies of a match are ranked next to each other, in the order of the rows.
        columns = {name: getattr(predictions, name)[p] for name in COLUMNS} | {"video": owners(predictions.video)}
        repeated = replace(predictions, videos=names, **columns)
        expected = score(repeated, repeated_truth, protocol=name, tious=[0.4, 0.7]).map
        if name == "activitynet":
            assert weighted.tolist() == pytest.approx(expected.tolist(), abs=1e-12)
        else:
            assert weighted.tolist() == pytest.approx(
                expected.tolist(), abs=0.1
            )  # within a tie, copies share the last precision


def test_interval_depends_only_on_the_seed() -> None:
    real, predictions = make_truth(), make_predictions(make_truth())
    one, same, other = (score(predictions, real, bootstrap=100, seed=seed).interval for seed in (0, 0, 1))
    assert one == same
    assert one != other
    wide = score(predictions, real, bootstrap=100, level=0.99).interval
    assert wide.average_map[0] <= one.average_map[0]
    assert wide.average_map[1] >= one.average_map[1]


def test_interval_has_about_its_nominal_coverage() -> None:
    """The mean score of many samples lies in nearly all of their intervals."""
    results = []
    for i in range(60):
        small = make_truth(60, seed=100 + i)
        results.append(score(make_predictions(small, seed=200 + i, extra=100), small, tious=[0.5], bootstrap=200))
    expected = np.mean([result.average_map for result in results])
    covered = [result.interval.average_map[0] <= expected <= result.interval.average_map[1] for result in results]
    assert 0.85 <= np.mean(covered) <= 1


def test_interval_of_a_comparison_is_narrower_than_those_of_the_scores() -> None:
    real = make_truth(40)
    predictions = make_predictions(real, noise=0.8, extra=100)
    worse = replace(predictions, start=predictions.start + 0.4, end=predictions.end + 0.4)
    one, other = (score(p, real, bootstrap=300) for p in (predictions, worse))
    both = compare(one, other, bootstrap=300)
    assert both.average_map == pytest.approx(other.average_map - one.average_map)
    assert both.average_map < 0
    assert both.share_worse > 0.95
    low, high = both.interval.average_map
    assert low < both.average_map < high < 0
    assert high - low < one.interval.average_map[1] - one.interval.average_map[0]


def test_comparison_of_different_truths_or_rules_is_refused() -> None:
    real = make_truth()
    one = score(make_predictions(real), real)
    with pytest.raises(DataError, match="different ground truths"):
        compare(one, score(make_predictions(real), make_truth(seed=9)))
    with pytest.raises(DataError, match="different rules, activitynet at"):
        compare(one, score(make_predictions(real), real, protocol="thumos14"))


def test_comparison_resamples_the_videos_of_both_scores() -> None:
    real = make_truth(20)
    predictions = make_predictions(real)
    row = {"video": 20, "start": 1.0, "end": 2.0, "label": 0, "score": 0.99}
    columns = {name: np.append(getattr(predictions, name), value) for name, value in row.items()}
    stray = replace(predictions, videos=(*predictions.videos, "stray"), **columns)
    both = compare(score(predictions, real), score(stray, real), bootstrap=50)
    assert both.average_map < 0
    assert both.interval is not None


def test_duplicate_predictions_are_counted_and_kept() -> None:
    real = make_truth()
    predictions = make_predictions(real)
    columns = {name: getattr(predictions, name) for name in COLUMNS}
    duplicated = replace(predictions, **{name: np.append(column, column[:5]) for name, column in columns.items()})
    assert score(predictions, real).predictions["duplicates"] == 0
    assert score(duplicated, real).predictions["duplicates"] == 5
    assert score(duplicated, real).average_map < score(predictions, real).average_map
