"""Studies of many runs: one that fails does not stop the others, and is tried again by the same command."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from studies.harness import finish, run_grid

pytest.importorskip("torch")


@dataclass(frozen=True)
class Run:
    number: int


def measured(run: Run, broken: int) -> dict[str, Any]:
    if run.number == broken:
        raise ValueError("it broke")
    return {"run": asdict(run), "seconds": 0.0}


def test_one_failed_run_stops_no_other_and_is_tried_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "results.jsonl"
    runs = [Run(0), Run(1), Run(2)]
    failed = run_grid(runs, partial(measured, broken=0), results, at_once=1, summarise=lambda record: "done")
    assert failed == [Run(0)]
    assert "ValueError: it broke" in capsys.readouterr().out
    with pytest.raises(SystemExit, match=r"1 runs failed; the same command tries them again:\nRun\(number=0\)"):
        finish(failed)
    again = run_grid(runs, partial(measured, broken=9), results, at_once=1, summarise=lambda record: "done")
    finish(again)
    assert [json.loads(line)["run"]["number"] for line in results.read_text().splitlines()] == [1, 2, 0]
