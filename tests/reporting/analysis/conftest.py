"""Runs to read, made once."""

from __future__ import annotations

import pytest

from helpers.made_runs import made_run
from jostle.reporting.analysis.record import RunRecord


@pytest.fixture(scope="session")
def detection(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    return RunRecord.read(made_run(tmp_path_factory.mktemp("made") / "run"))


@pytest.fixture(scope="session")
def firmer(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    return RunRecord.read(made_run(tmp_path_factory.mktemp("made") / "run", weakness=0.3, model="firmer"))


@pytest.fixture(scope="session")
def recognition(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    return RunRecord.read(made_run(tmp_path_factory.mktemp("made") / "run", "recognition", videos=40))


@pytest.fixture(scope="session")
def frames(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    return RunRecord.read(made_run(tmp_path_factory.mktemp("made") / "run", "frames", videos=20))
