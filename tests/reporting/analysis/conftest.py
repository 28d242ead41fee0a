"""Finished runs of every task, generated once per session."""

from __future__ import annotations

import pytest

from helpers.synthetic_runs import write_run
from jostle.evaluation.results.record import RunRecord


@pytest.fixture(scope="session")
def detection(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    return RunRecord.read(write_run(tmp_path_factory.mktemp("made") / "run"))


@pytest.fixture(scope="session")
def robust_detection(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    return RunRecord.read(write_run(tmp_path_factory.mktemp("made") / "run", weakness=0.3, model="firmer"))


@pytest.fixture(scope="session")
def recognition(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    return RunRecord.read(write_run(tmp_path_factory.mktemp("made") / "run", "recognition", videos=40))


@pytest.fixture(scope="session")
def frames(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    return RunRecord.read(write_run(tmp_path_factory.mktemp("made") / "run", "frames", videos=20))


LANGUAGE_CELLS = ("thumos14-c/black_frame:1", "thumos14-c/motion_blur:3", "ucf101-p/reverse_sampling:3")


@pytest.fixture(scope="session")
def questions(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    run = write_run(tmp_path_factory.mktemp("made") / "run", "questions", videos=20, cells=LANGUAGE_CELLS)
    return RunRecord.read(run)


@pytest.fixture(scope="session")
def moments(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    run = write_run(tmp_path_factory.mktemp("made") / "run", "moments", videos=20, cells=LANGUAGE_CELLS)
    return RunRecord.read(run)
