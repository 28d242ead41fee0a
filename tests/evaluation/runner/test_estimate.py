"""A first look: does the model fit, and how long may it take."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from helpers import small_run
from helpers.small_recognition import RECIPE, SAMPLING, Weigher, data_of, recognising, write_videos
from helpers.small_run import TwoParts
from jostle.datasets.class_matching import ClassMatch
from jostle.errors import BadValue, DataError
from jostle.evaluation.inference.detection import DetectingByFeatures
from jostle.evaluation.inference.jobs import Order
from jostle.evaluation.inference.recognition import Recognising
from jostle.evaluation.recipes.recipe import CLEAN_CELL
from jostle.evaluation.run_folder.folder import RunFolder
from jostle.evaluation.runner import estimate
from jostle.evaluation.runner.estimate import estimated, first_look
from jostle.evaluation.runner.state import State, planned
from jostle.evaluation.tasks.task import task_of
from jostle.features.windows import Rule


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_videos(tmp_path_factory.mktemp("videos"))


def test_what_a_plan_may_cost(videos: dict[str, Path], tmp_path: Path) -> None:
    task = task_of(RECIPE, data_of(videos))
    plan = planned(RunFolder(tmp_path, task.suffix), State(), task, RECIPE.cells, seed=0, retry_failed=False)
    first = first_look(recognising, plan.orders, timed=True)
    assert first is not None
    assert (first.frames, first.bytes) == (48, 12)
    told = estimated(plan, first, 2)
    cost = told["estimate"]
    assert told["looks"] == 4 * 7
    assert cost["clean_s"] == pytest.approx(4 * first.seconds / 2)
    assert cost["all_s"] == pytest.approx(7 * cost["clean_s"])
    assert cost["disk_bytes"] == 2 * 28 * 12
    assert cost["windows"] is None  # clips are no windows
    assert estimated(plan, None, 2)["estimate"] is None


def test_what_will_limit_is_foretold(videos: dict[str, Path], tmp_path: Path) -> None:
    task = task_of(RECIPE, data_of(videos))
    plan = planned(RunFolder(tmp_path, task.suffix), State(), task, RECIPE.cells, seed=0, retry_failed=False)
    slow = first_look(partial(recognising, 0.5), plan.orders, timed=True)
    assert slow is not None
    assert slow.parts is not None
    assert estimated(plan, slow, 2)["estimate"]["limit"] == "model"
    # In a process of its own, a model limits if what it takes is more than what the workers share.
    busy = iter((0.0, 300.0, 301.0, 401.0))
    apart = first_look(recognising, plan.orders, timed=True, busy_s=lambda: next(busy))
    assert apart is not None
    assert apart.parts is not None
    assert apart.parts.model == pytest.approx(100.0)
    assert estimated(plan, apart, 2, 1)["estimate"]["limit"] == "model"
    quick = replace(apart, parts=replace(apart.parts, decoding=1.0, corrupting=9.0, model=4.0))
    assert estimated(plan, quick, 2, 1)["estimate"]["limit"] == "corrupting"
    assert estimated(plan, quick, 4, 1)["estimate"]["limit"] == "model"
    assert estimated(plan, quick, 4, 2)["estimate"]["limit"] == "corrupting"


def test_of_many_videos_some_are_opened_for_all(
    videos: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = task_of(RECIPE, data_of(videos))
    plan = planned(RunFolder(tmp_path, task.suffix), State(), task, RECIPE.cells, seed=0, retry_failed=False)
    first = first_look(recognising, plan.orders, timed=True)
    whole = estimated(plan, first, 2)
    assert (whole["frames"], whole["opened"]) == (4 * 48, 4)
    many = replace(plan, orders=plan.orders * 3)
    opened: list[Path] = []
    monkeypatch.setattr(estimate, "claimed_frames", lambda path: opened.append(path) or 48)
    monkeypatch.setattr(estimate, "OPENED", 5)
    told = estimated(many, first, 2)
    assert len(opened) == told["opened"] == 5
    assert told["frames"] == 12 * 48
    assert told["estimate"]["all_s"] == pytest.approx(3 * whole["estimate"]["all_s"])


@pytest.mark.parametrize(
    ("fps", "rule", "rows"), [(None, "all", 21), (None, "released", 20), (None, "released-json", 19), (50.0, "all", 45)]
)
def test_windows_are_counted_as_they_will_be_made(tmp_path: Path, fps: float | None, rule: Rule, rows: int) -> None:
    videos = small_run.write_videos(tmp_path)  # 48 frames at 25 a second
    orders = tuple(Order(name, path, (CLEAN_CELL,), 0) for name, path in videos.items())
    look = DetectingByFeatures(TwoParts(8, 2, fps), small_run.Leaning(), rule=rule)
    first = first_look(lambda: look, orders, timed=True)
    assert first is not None
    assert first.windows == 4 * rows == sum(look(order).clean.joined for order in orders)
    (tmp_path / "d.mkv").write_bytes(b"not a video at all")
    first = first_look(lambda: look, orders, timed=True)
    assert first is not None
    assert first.windows == 3 * rows
    assert first_look(lambda: look, orders).windows is None  # type: ignore[union-attr]


class Broken(Weigher):
    def __call__(self, clips: np.ndarray) -> np.ndarray:
        raise ZeroDivisionError("by nought")


def test_what_does_not_fit_is_known_before_the_work(videos: dict[str, Path], tmp_path: Path) -> None:
    task = task_of(RECIPE, data_of(videos))
    orders = tuple(task.order(name, path, (), 0) for name, path in videos.items())
    with pytest.raises(BadValue, match="gives 3 scores, and there are 4"):
        first_look(lambda: Recognising(Weigher(), SAMPLING, ClassMatch("by number", 4)), orders)
    with pytest.raises(DataError, match="by nought"):
        first_look(lambda: Recognising(Broken(), SAMPLING, ClassMatch("by number", 3)), orders)
    bad = tmp_path / "bad.mkv"
    bad.write_bytes(b"not a video at all")
    mixed = (task.order("a", bad, (), 0), *orders[1:])
    assert first_look(recognising, mixed) is not None
    assert first_look(recognising, mixed[:1]) is None
