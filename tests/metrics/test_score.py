"""Scores: by hand, by protocol, with intervals, and against a second run."""

from __future__ import annotations

import json

import numpy as np
import pytest

from jostle.core.types import Predictions, Truth
from jostle.errors import BadValue, DataError, UnknownName
from jostle.metrics.alignment import align
from jostle.metrics.bootstrap import Resamples
from jostle.metrics.protocol import protocols
from jostle.metrics.score import compare, score


def truth(videos: int = 12, *, seed: int = 0, **changes) -> Truth:
    """Two instances a video, of three classes."""
    rng = np.random.default_rng(seed)
    start = np.tile([2.0, 20.0], videos) + rng.random(2 * videos)
    facts = {
        "videos": tuple(f"v{i}" for i in range(videos)),
        "classes": ("Jump", "Run", "Throw"),
        "video": np.repeat(np.arange(videos), 2),
        "start": start,
        "end": start + 4,
        "label": np.arange(2 * videos) % 3,
    }
    return Truth(**(facts | changes))


def detections(real: Truth, *, noise: float = 0.5, extra: int = 20, seed: int = 1) -> Predictions:
    """A prediction near each instance, and some anywhere."""
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
def test_perfect_predictions_score_one_and_none_score_nought(name) -> None:
    real = truth()
    perfect = score(detections(real, noise=0, extra=0), real, protocol=name)
    assert perfect.average_map == pytest.approx(1)
    assert perfect.map.tolist() == pytest.approx([1] * len(perfect.tious))
    nothing = Predictions((), (), [], [], [], [], [])
    empty = score(nothing, real, protocol=name)
    assert empty.average_map == 0
    assert empty.predictions["count"] == 0
    assert "AP is 0 for classes without a prediction: Jump, Run, Throw" in empty.remarks


@pytest.mark.parametrize("name", protocols)
def test_the_order_of_rows_does_not_matter_where_scores_differ(name) -> None:
    real = truth()
    found = detections(real)
    order = np.random.default_rng(3).permutation(len(found))
    turned = Predictions(
        found.videos,
        found.classes,
        *(getattr(found, column)[order] for column in ("video", "start", "end", "label", "score")),
    )
    assert score(found, real, protocol=name).map.tolist() == score(turned, real, protocol=name).map.tolist()


def test_names_decide_not_indices() -> None:
    real = truth()
    found = detections(real)
    turned = Predictions(
        found.videos[::-1],
        found.classes[::-1],
        len(found.videos) - 1 - found.video,
        found.start,
        found.end,
        len(found.classes) - 1 - found.label,
        found.score,
    )
    assert score(found, real).map.tolist() == score(turned, real).map.tolist()


def test_the_json_is_the_contracts() -> None:
    made = score(detections(truth()), truth(), protocol="thumos14", bootstrap=50).to_dict()
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    assert {
        "format",
        "protocol",
        "tious",
        "map",
        "average_map",
        "per_class",
        "truth",
        "predictions",
        "interval",
    } <= set(made)
    assert made["format"] == 1
    assert set(made["per_class"]) == {"Jump", "Run", "Throw"}
    assert {"videos", "instances", "classes", "subset", "fingerprint"} <= set(made["truth"])
    assert {"videos", "count", "unknown_label", "outside_subset"} <= set(made["predictions"])
    assert set(made["interval"]) == {"level", "resamples", "seed", "average_map", "map"}
    low, high = made["interval"]["average_map"]
    assert low < made["average_map"] < high


def test_thresholds_are_the_protocols_unless_given() -> None:
    assert score(detections(truth()), truth(), protocol="thumos14").tious.tolist() == pytest.approx(
        [0.3, 0.4, 0.5, 0.6, 0.7]
    )
    assert score(detections(truth()), truth(), tious=[0.25]).tious.tolist() == [0.25]
    for wrong in ([], [0.0], [1.5], [np.nan]):
        with pytest.raises(BadValue, match="thresholds of tIoU lie above 0 and at most at 1"):
            score(detections(truth()), truth(), tious=wrong)


def test_an_unknown_protocol_is_answered_with_the_known() -> None:
    with pytest.raises(UnknownName, match="did you mean thumos14"):
        score(detections(truth()), truth(), protocol="thumos4")


def test_blocked_videos_count_on_neither_side() -> None:
    real = truth()
    made = score(detections(real), real, blocked=("v0", "v1"))
    assert made.predictions["blocked"] > 0
    assert made.truth.left_out == {"in a blocked video": 4}
    assert len(made.truth) == len(real) - 4
    assert len(made.truth.videos) == len(made.resamples.videos) == len(real.videos) - 2


def test_weights_are_repeats() -> None:
    """A video of weight k counts as k copies of it: scored as such, with copies ranked beside each other."""
    real, weight = truth(5), np.array([2, 0, 1, 3, 1], np.int16)
    found = detections(real, extra=9)
    for name in ("activitynet", "thumos14-official"):
        rules = protocols[name]
        made = score(found, real, protocol=name, tious=[0.4, 0.7])
        quick = Resamples.from_matches(align(found, real), made.matches, real, rules).weighted(weight[None])[0]

        copies = [(video, k) for video, count in enumerate(weight) for k in range(count)]

        def rows(column, copies=copies):
            return np.concatenate([np.flatnonzero(column == video) for video, _ in copies])

        def owners(column, copies=copies):
            return np.concatenate([np.full((column == video).sum(), i) for i, (video, _) in enumerate(copies)])

        names = tuple(f"{video}-{k}" for video, k in copies)
        t, p = rows(real.video), rows(found.video)
        again = Truth(names, real.classes, owners(real.video), real.start[t], real.end[t], real.label[t])
        # Copies of a hit share a rank; the score moves a hair apart, hits of one row first to last.
        repeated = Predictions(
            names, found.classes, owners(found.video), found.start[p], found.end[p], found.label[p], found.score[p]
        )
        slow = score(repeated, again, protocol=name, tious=[0.4, 0.7]).map
        if name == "activitynet":
            assert quick.tolist() == pytest.approx(slow.tolist(), abs=1e-12)
        else:
            assert quick.tolist() == pytest.approx(
                slow.tolist(), abs=0.1
            )  # within a tie, copies share the last precision


def test_all_weights_one_is_the_score_itself() -> None:
    real = truth()
    for name in protocols:
        made = score(detections(real), real, protocol=name)
        (again,) = made.resamples.weighted(np.ones((1, len(real.videos)), np.int16))
        assert again.tolist() == pytest.approx(made.map.tolist())


def test_the_interval_depends_on_the_seed_alone() -> None:
    real, found = truth(), detections(truth())
    one, same, other = (score(found, real, bootstrap=100, seed=seed).interval for seed in (0, 0, 1))
    assert one == same
    assert one != other
    wide = score(found, real, bootstrap=100, level=0.99).interval
    assert wide.average_map[0] <= one.average_map[0]
    assert wide.average_map[1] >= one.average_map[1]


def test_the_interval_covers_the_expected_score_about_as_often_as_it_says() -> None:
    """Many samples made by one rule: the mean of their scores lies in nearly all of their intervals."""
    made = []
    for i in range(60):
        small = truth(60, seed=100 + i)
        made.append(score(detections(small, seed=200 + i, extra=100), small, tious=[0.5], bootstrap=200))
    expected = np.mean([one.average_map for one in made])
    covered = [one.interval.average_map[0] <= expected <= one.interval.average_map[1] for one in made]
    assert 0.85 <= np.mean(covered) <= 1


def test_a_comparison_is_narrower_than_its_two_intervals() -> None:
    real = truth(40)
    found = detections(real, noise=0.8, extra=100)
    worse = Predictions(
        found.videos, found.classes, found.video, found.start + 0.4, found.end + 0.4, found.label, found.score
    )
    one, other = (score(p, real, bootstrap=300) for p in (found, worse))
    both = compare(one, other, bootstrap=300)
    assert both.average_map == pytest.approx(other.average_map - one.average_map)
    assert both.average_map < 0
    assert both.share_worse > 0.95
    low, high = both.interval.average_map
    assert low < both.average_map < high < 0
    assert high - low < one.interval.average_map[1] - one.interval.average_map[0]
    assert json.dumps(both.to_dict(), allow_nan=False)


def test_only_like_is_compared_with_like() -> None:
    real = truth()
    one = score(detections(real), real)
    with pytest.raises(DataError, match="different ground truths"):
        compare(one, score(detections(real), truth(seed=9)))
    with pytest.raises(DataError, match="different rules, activitynet at"):
        compare(one, score(detections(real), real, protocol="thumos14"))


def test_a_comparison_draws_from_the_videos_of_both() -> None:
    real = truth(20)
    found = detections(real)
    stray = Predictions(
        (*found.videos, "stray"),
        found.classes,
        np.append(found.video, 20),
        np.append(found.start, 1.0),
        np.append(found.end, 2.0),
        np.append(found.label, 0),
        np.append(found.score, 0.99),
    )
    both = compare(score(found, real), score(stray, real), bootstrap=50)
    assert both.average_map < 0
    assert both.interval is not None


def test_duplicates_are_counted_and_kept() -> None:
    real = truth()
    found = detections(real)
    twice = Predictions(
        found.videos,
        found.classes,
        *(np.append(getattr(found, c), getattr(found, c)[:5]) for c in ("video", "start", "end", "label", "score")),
    )
    assert score(found, real).predictions["duplicates"] == 0
    assert score(twice, real).predictions["duplicates"] == 5
    assert score(twice, real).average_map < score(found, real).average_map
