"""Faults 48 and 91 to 93 and 126: undefined numbers are reported as None, never as zero, infinity or NaN."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from helpers.refusals import refused
from jostle.errors import BadValue
from jostle.metrics.accuracy import top_k_accuracy
from jostle.metrics.pm_k import pm_k
from jostle.metrics.proportion import clopper_pearson
from jostle.metrics.robustness import mean_corruption_error, robustness


def numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for part in value for number in numbers(part)]
    return [value] if isinstance(value, float) else []


@pytest.mark.fault("F48")
def test_F48_means_are_over_complete_sets_or_not_at_all() -> None:
    result = robustness(0.8, {"fog:1": 0.4, "fog:2": None, "rain:1": 0.6, "rain:2": 0.2})
    assert result.missing == ("fog:2",)
    assert (result.mean_corrupted, result.relative, result.absolute, result.mpc, result.rpc) == (None,) * 5
    assert (result.by_corruption["fog"].mean, result.by_corruption["fog"].missing) == (None, 1)
    assert result.by_corruption["rain"].mean == pytest.approx(0.4)
    assert result.by_severity[1].mean == pytest.approx(0.5)
    assert result.by_severity[2].relative is None
    assert result.to_dict()["cells"][1] == {
        "cell": "fog:2",
        "value": None,
        "relative": None,
        "absolute": None,
        "above_clean": False,
    }


@pytest.mark.fault("F48")
def test_F48_a_missing_error_leaves_the_mean_out() -> None:
    result = mean_corruption_error({"fog:1": None, "rain:1": 0.2}, {"fog:1": 0.5, "rain:1": 0.4}, name="AlexNet")
    assert result.by_corruption == {"fog": None, "rain": 0.5}
    assert (result.mce, result.missing) == (None, ("fog:1",))


@pytest.mark.fault("F91")
@pytest.mark.parametrize("clean", [0, 0.0, None, 5e-324])
def test_F91_no_ratio_to_a_clean_score_of_nothing(clean: float | None) -> None:
    result = robustness(clean, {"fog:1": 0.4, "fog:2": 0.2})
    assert (result.relative, result.rpc, result.undefined) == (None, None, 2)
    assert result.mean_corrupted == result.mpc == pytest.approx(0.3)
    assert (result.absolute is None) == (clean is None)
    assert all(math.isfinite(number) for number in numbers(result.to_dict()))
    json.dumps(result.to_dict(), allow_nan=False)


@pytest.mark.fault("F91")
def test_F91_better_than_clean_is_allowed_and_flagged() -> None:
    result = robustness(0.5, {"fog:1": 0.6, "fog:2": 0.5})
    assert result.relative == pytest.approx(1.1)
    assert result.above_clean == ("fog:1",)
    assert robustness(0.0, {"fog:1": 0.1}).above_clean == ("fog:1",)


@pytest.mark.fault("F92")
def test_F92_a_baseline_without_the_cell_is_refused() -> None:
    for baseline in ({"fog:1": 0.5}, {"fog:1": 0.5, "fog:2": None}):
        with refused("F92", BadValue) as caught:
            mean_corruption_error({"fog:1": 0.2, "fog:2": 0.3}, baseline, name="AlexNet")
        assert str(caught.value) == "fog:2: baseline AlexNet has no error there, so nothing to divide by"


@pytest.mark.fault("F92")
def test_F92_a_baseline_without_error_is_refused() -> None:
    with refused("F92", BadValue, match="rain: baseline AlexNet has no error there, so nothing to divide by"):
        mean_corruption_error({"fog:1": 0.2, "rain:1": 0.3}, {"fog:1": 0.2, "rain:1": 0.0}, name="AlexNet")
    with pytest.raises(BadValue, match="fog: baseline AlexNet has no error above clean there"):
        mean_corruption_error({"fog:1": 0.2}, {"fog:1": 0.3}, name="AlexNet", clean=0.1, baseline_clean=0.3)


@pytest.mark.fault("F93")
@pytest.mark.parametrize(("successes", "trials"), [(0, 0), (0, 1), (1, 1)])
def test_F93_one_trial_has_no_interval(successes: int, trials: int) -> None:
    assert clopper_pearson(successes, trials) is None


@pytest.mark.fault("F93")
def test_F93_one_anchor_or_video_has_no_interval() -> None:
    result = pm_k({"v/1.jpg": 0}, {"v/1.jpg": []}, {"v/1.jpg": 0})
    assert (result.accuracy_interval, result.pm_k_interval) == (None, None)
    assert result.to_dict()["pm_k_interval"] is None
    assert top_k_accuracy([[0.2, 0.8]], [1]).interval is None


@pytest.mark.fault("F93")
def test_F93_equal_answers_still_have_a_wide_interval() -> None:
    assert top_k_accuracy([[0.2, 0.8]] * 5, [1] * 5).interval == pytest.approx((0.025**0.2, 1))


def clustered(videos: int, anchors: int) -> tuple[dict[str, int], dict[str, list[str]], dict[str, int]]:
    """Return scores, sets and labels of anchors that are all right in every other video and all wrong elsewhere."""
    sets: dict[str, list[str]] = {f"v{v}/{i}.jpg": [] for v in range(videos) for i in range(anchors)}
    return {name: int(name[1]) % 2 for name in sets}, sets, dict.fromkeys(sets, 0)


@pytest.mark.fault("F126")
def test_F126_anchors_of_one_video_are_not_independent() -> None:
    alone = pm_k(*clustered(5, 1))
    assert (alone.videos, alone.interval_method, alone.pm_k_interval) == (5, "exact", clopper_pearson(3, 5))
    many = pm_k(*clustered(5, 40))
    assert (many.anchors, many.videos, many.interval_method) == (200, 5, "bootstrap")
    low, high = many.pm_k_interval or (0.0, 0.0)
    assert high - low > 0.7  # as 5 videos have it, not as 200 answers, of which it is 0.14
    assert "5 videos, each with all its anchors" in many.interval_text


@pytest.mark.fault("F126")
def test_F126_equal_answers_within_videos_count_once_per_video() -> None:
    scores, sets, labels = clustered(5, 40)
    result = pm_k(dict.fromkeys(scores, 0), sets, labels)
    assert result.pm_k_interval == clopper_pearson(5, 5)
    assert pm_k(*clustered(1, 40)).pm_k_interval is None
