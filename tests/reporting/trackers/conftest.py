"""Fixture of a finished run to log."""

from __future__ import annotations

import pytest

from helpers.synthetic_runs import write_run
from jostle.evaluation.results.record import RunRecord


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    return RunRecord.read(write_run(tmp_path_factory.mktemp("made") / "my_run", videos=4))
