"""Trial before a run: whether the model fits, and an estimate of time, disk space and the bottleneck."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from helpers import small_run
from helpers.small_recognition import RECIPE, SAMPLING, Weigher, data_of, recognition_predictor
from helpers.small_run import TwoParts
from jostle.datasets.class_matching import ClassMatch
from jostle.errors import BadValue, DataError
from jostle.evaluation.inference.detection import FeatureDetectionPredictor
from jostle.evaluation.inference.jobs import VideoJob
from jostle.evaluation.inference.recognition import RecognitionPredictor
from jostle.evaluation.recipes.recipe import CLEAN_CELL
from jostle.evaluation.run_folder.folder import RunFolder
from jostle.evaluation.runner import estimate
from jostle.evaluation.runner.estimate import estimate_cost, run_trial
from jostle.evaluation.runner.state import Plan, State, plan_work
from jostle.evaluation.tasks.task import make_task
from jostle.features.options import Rule


@pytest.fixture
def plan(videos: dict[str, Path], tmp_path: Path) -> Plan:
    task = make_task(RECIPE, data_of(videos))
    return plan_work(RunFolder(tmp_path, task.suffix), State(), task, RECIPE.cells, seed=0, retry_failed=False)


def test_cost_of_a_plan_is_estimated(plan: Plan) -> None:
    trial = run_trial(recognition_predictor, plan.video_jobs, timed=True)
    assert (trial.frames, trial.bytes) == (48, 12)
    info = estimate_cost(plan, trial, 2).to_dict()
    cost = info["estimate"]
    assert info["looks"] == 4 * 7
    assert cost["clean_s"] == pytest.approx(4 * trial.seconds / 2)
    assert cost["all_s"] == pytest.approx(7 * cost["clean_s"])
    assert cost["disk_bytes"] == 2 * 28 * 12
    assert cost["windows"] is None  # clips are no windows
    assert estimate_cost(plan, None, 2).estimate is None


def test_the_bottleneck_is_predicted(plan: Plan) -> None:
    slow = run_trial(partial(recognition_predictor, 0.1), plan.video_jobs, timed=True)
    assert slow.parts is not None
    assert estimate_cost(plan, slow, 2).to_dict()["estimate"]["limit"] == "model"
    # A model in its own process is the bottleneck if its time exceeds the share of each worker.
    busy = iter((0.0, 300.0, 301.0, 401.0))
    separate = run_trial(recognition_predictor, plan.video_jobs, timed=True, busy_s=lambda: next(busy))
    assert separate.parts.model == pytest.approx(100.0)
    assert estimate_cost(plan, separate, 2, 1).to_dict()["estimate"]["limit"] == "model"
    quick = replace(separate, parts=replace(separate.parts, decoding=1.0, corrupting=9.0, model=4.0))
    assert estimate_cost(plan, quick, 2, 1).to_dict()["estimate"]["limit"] == "corrupting"
    assert estimate_cost(plan, quick, 4, 1).to_dict()["estimate"]["limit"] == "model"
    assert estimate_cost(plan, quick, 4, 2).to_dict()["estimate"]["limit"] == "corrupting"


def test_the_frame_count_of_many_videos_is_estimated_from_a_sample(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = run_trial(recognition_predictor, plan.video_jobs, timed=True)
    estimate_all = estimate_cost(plan, trial, 2).to_dict()
    assert (estimate_all["frames"], estimate_all["opened"]) == (4 * 48, 4)
    many = replace(plan, video_jobs=plan.video_jobs * 3)
    opened: list[Path] = []
    monkeypatch.setattr(estimate, "claimed_frames", lambda path: opened.append(path) or 48)
    monkeypatch.setattr(estimate, "OPENED", 5)
    info = estimate_cost(many, trial, 2).to_dict()
    assert len(opened) == info["opened"] == 5
    assert info["frames"] == 12 * 48
    assert info["estimate"]["all_s"] == pytest.approx(3 * estimate_all["estimate"]["all_s"])


@pytest.mark.parametrize(
    ("fps", "rule", "rows"), [(None, "all", 21), (None, "released", 20), (None, "released-json", 19), (50.0, "all", 45)]
)
def test_windows_are_counted_exactly(
    videos: dict[str, Path], tmp_path: Path, fps: float | None, rule: Rule, rows: int
) -> None:
    def job(name: str, path: Path) -> VideoJob:
        return VideoJob(name, path, (CLEAN_CELL,), 0)

    jobs = tuple(job(name, path) for name, path in videos.items())  # 48 frames at 25 a second
    predictor = FeatureDetectionPredictor(TwoParts(8, 2, fps), small_run.Leaning(), rule=rule)
    trial = run_trial(lambda: predictor, jobs, timed=True)
    assert trial.windows == 4 * rows == sum(predictor(job).clean.joined for job in jobs)
    (tmp_path / "d.mkv").write_bytes(b"not a video at all")
    jobs = (*jobs[:3], job("d", tmp_path / "d.mkv"))
    trial = run_trial(lambda: predictor, jobs, timed=True)
    assert trial.windows == 3 * rows
    assert run_trial(lambda: predictor, jobs).windows is None  # type: ignore[union-attr]


class FailingModel(Weigher):
    def __call__(self, clips: np.ndarray) -> np.ndarray:
        raise ZeroDivisionError("by nought")


def test_a_model_that_does_not_fit_is_refused_before_the_run(videos: dict[str, Path], tmp_path: Path) -> None:
    task = make_task(RECIPE, data_of(videos))
    jobs = tuple(task.make_job(name, path, (), 0) for name, path in videos.items())
    with pytest.raises(BadValue, match="returns 3 scores, and there are 4"):
        run_trial(lambda: RecognitionPredictor(Weigher(), SAMPLING, ClassMatch("by number", 4)), jobs)
    with pytest.raises(DataError, match="by nought"):
        run_trial(lambda: RecognitionPredictor(FailingModel(), SAMPLING, ClassMatch("by number", 3)), jobs)
    bad = tmp_path / "bad.mkv"
    bad.write_bytes(b"not a video at all")
    mixed = (task.make_job("a", bad, (), 0), *jobs[1:])
    assert run_trial(recognition_predictor, mixed) is not None
    assert run_trial(recognition_predictor, mixed[:1]) is None
