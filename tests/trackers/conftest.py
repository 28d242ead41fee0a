"""A run to log."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "findings"))

from made_runs import made_run

from jostle.findings.record import RunRecord


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    return RunRecord.read(made_run(tmp_path_factory.mktemp("made") / "my_run", videos=4))
