"""Fault F122: plugins and models that call `sys.exit(0)` must not end a command with success."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from helpers import small_recognition, small_run, small_serving, small_work
from jostle.core.types import Segments
from jostle.datasets.class_matching import ClassMatch
from jostle.errors import DataError, ForeignExit
from jostle.evaluation.inference import remote
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.inference.detection import WholeVideoPredictor
from jostle.evaluation.inference.recognition import RecognitionPredictor
from jostle.evaluation.recipes.selection import select_cells
from jostle.evaluation.runner.runner import run_benchmark
from jostle.features.deferred_corruption import DeferredCorruptions
from jostle.parallel.serving.processes import serving


def exit_program(*arguments: object, **options: object) -> None:
    sys.exit(0)


def exiting(frames: np.ndarray) -> Segments:
    sys.exit(0)


def exiting_predictor() -> WholeVideoPredictor:
    return WholeVideoPredictor(exiting)


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return small_run.write_videos(tmp_path_factory.mktemp("videos"))


@pytest.mark.fault("F122")
def test_f122_a_model_that_exits_is_reported_with_its_video(videos: dict[str, Path], tmp_path: Path) -> None:
    cells = select_cells(small_run.RECIPE, ["clean"])
    with pytest.raises(DataError, match=r"could be used: video a: the model failed \(SystemExit: 0 in"):
        run_benchmark(
            small_run.RECIPE,
            small_run.data_of(videos),
            BenchmarkModel(exiting_predictor, model="x"),
            tmp_path / "run",
            cells=cells,
        )
    lines = [json.loads(line) for line in (tmp_path / "run" / "failures.jsonl").read_text().splitlines()]
    assert [line["fault"] for line in lines] == ["F122"] * 4


@pytest.mark.fault("F122")
def test_f122_a_model_process_survives_code_that_exits() -> None:
    with serving(small_serving.adder, small_serving.FakeStreams(), [{}]) as served:
        with pytest.raises(ForeignExit, match=r"SystemExit: 0 in .*small_work.py, line \d+: code that"):
            served(small_work.leave)
        assert served(small_serving.add, np.array([2])).tolist() == [3]


@pytest.mark.fault("F122")
def test_f122_a_command_ended_by_foreign_code_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Foreign code may be a corruption, a metric or a file format."""
    main = importlib.import_module("jostle.cli.app")
    monkeypatch.setattr(main.api, "origins", exit_program)
    monkeypatch.setattr(sys, "argv", ["jostle", "names", "placements"])
    assert main._run() == 3
    message = capsys.readouterr().err
    assert "error[F122]: SystemExit: 0 in " in message
    assert "test_foreign_exits.py, line" in message


@pytest.mark.fault("F122")
def test_f122_a_batch_of_several_workers_survives_one_that_exits() -> None:
    """The server repeats requests one by one if a batch raises an Exception, and SystemExit is none."""
    predictor = RecognitionPredictor(exiting, small_recognition.SAMPLING, ClassMatch("by number", 3))  # type: ignore[arg-type]
    requests = [(np.zeros((1, 2, 4, 4, 3), np.uint8), DeferredCorruptions())] * 2
    with pytest.raises(ForeignExit, match="SystemExit: 0"):
        remote._predict.together(predictor, requests)  # type: ignore[attr-defined]
