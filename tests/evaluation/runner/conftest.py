"""A finished run of every task, which tests read and copy."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.small_tasks import TASKS, run
from jostle.evaluation.results.run import Run


@pytest.fixture(scope="session")
def finished_runs(videos: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    root = tmp_path_factory.mktemp("runs")
    return {task: run(videos, root / task, task) for task in TASKS}
