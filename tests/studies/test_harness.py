"""Studies of many runs: a failed run does not stop the others and is repeated by the same command."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from studies.harness import (
    Grid,
    GridRun,
    GridTable,
    Results,
    count_runs,
    finish,
    mean_over_runs,
    read_records,
    run_grid,
    run_study,
)

pytest.importorskip("torch")


@dataclass(frozen=True)
class Run:
    number: int


def measure(run: Run, broken: int) -> dict[str, Any]:
    if run.number == broken:
        raise ValueError("it broke")
    return {"run": asdict(run), "seconds": 0.0}


def test_a_failed_run_does_not_stop_the_others_and_is_repeated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results.jsonl"
    runs = [Run(0), Run(1), Run(2)]
    failed = run_grid(runs, partial(measure, broken=0), results, at_once=1, summarise=lambda record: "done")
    assert failed == [Run(0)]
    assert "ValueError: it broke" in capsys.readouterr().out
    with pytest.raises(SystemExit, match=r"1 runs failed; the same command tries them again:\nRun\(number=0\)"):
        finish(failed)
    still_failed = run_grid(runs, partial(measure, broken=9), results, at_once=1, summarise=lambda record: "done")
    finish(still_failed)
    assert [json.loads(line)["run"]["number"] for line in results.read_text().splitlines()] == [1, 2, 0]


def test_a_grid_table_has_a_row_for_each_combination_that_was_measured() -> None:
    results = Results()
    results.example = [
        {"run": {"detector": "tridet", "treatment": "clean", "seed": seed}, "score": seed} for seed in (2, 1)
    ]
    columns = [("score", mean_over_runs(lambda record: record["score"])), ("runs", count_runs)]
    rows = {"detector": ("tridet", "vsgn"), "treatment": ("clean", "drop")}
    lines = GridTable("example", rows, columns)(results).splitlines()
    assert lines[0] == "| detector | trained | score | runs |"
    assert lines[2:] == ["| TriDet | clean | 1.5 | 2 |"]


@dataclass(frozen=True)
class SeededRun(GridRun):
    way: str
    seed: int


def seeded_runs(ways: list[str]) -> list[SeededRun]:
    return [SeededRun(way, seed) for way in ways for seed in (0, 1)]


def measure_seeded(run: SeededRun, work: Path, scale: int) -> dict[str, Any]:
    return {"score": scale * run.seed, "prepared": (work / "prepared").read_text()}


def prepare(runs: list[SeededRun], work: Path) -> None:
    (work / "prepared").write_text(str(len(runs)))


def test_a_study_performs_the_named_steps_for_the_chosen_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studies.harness.STUDIES", tmp_path)
    monkeypatch.setattr("sys.argv", ["study", str(tmp_path / "work"), "study", "record", "--seeds", "1", "2"])
    steps = {"never": pytest.fail, "study": Grid(seeded_runs, measure_seeded, str, prepare)}
    also = ["unwritten"]  # records of an omitted step
    options = {"also": also, "ways": ("as is", "mended"), "seeds": [0, 1]}
    run_study("A study.", "example", steps, lambda arguments: {"scale": 3}, **options)
    records = read_records(tmp_path / "example.jsonl")
    assert [record["run"] for record in records] == [{"way": way, "seed": 1} for way in ("as is", "mended")]
    assert {(record["score"], record["prepared"]) for record in records} == {(3, "2")}
    assert all(record["seconds"] >= 0 for record in records)
    assert not (tmp_path / "unwritten.jsonl").exists()
