"""A task of a package outside jostle: run, scored, reported, gated, ranked and viewed, each in a process of its own."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any
from urllib.request import HTTPCookieProcessor, build_opener

import pytest

from helpers.examples import install, jostle_with
from helpers.served import served

MODEL = "jostle_counting.films:count_flashes"
BUDGET = """
[[condition]]
metric = "clean"
at_least = 0.5
[[condition]]
metric = "cell:brightness:5"
at_least = 0.5
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install("jostle-counting", tmp_path_factory.mktemp("site"))


def test_own_task_from_a_run_to_the_viewer(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "budget.toml").write_text(BUDGET)
    jostle_with("run", "flashes-c", "--model", MODEL, "-o", "run", "-j", "2", cwd=tmp_path, site=site)
    scores = json.loads((tmp_path / "run" / "scores.json").read_text())
    assert (scores["metric"], scores["clean"], len(scores["cells"])) == ("exact counts", 1.0, 5)
    facts = json.loads((tmp_path / "run" / "run.json").read_text())
    assert {"tasks", "metrics", "datasets", "benchmarks"} <= {part["shelf"] for part in facts["parts"]}

    jostle_with("report", "run", "-o", "report.html", cwd=tmp_path, site=site)
    page = (tmp_path / "report.html").read_text()
    assert "exact counts" in page
    assert "How many events?" in page  # the worst videos with their answers

    checked = jostle_with("check", "run", "--budget", "budget.toml", "--json", cwd=tmp_path, site=site, code=7)
    assert [one["decision"] for one in json.loads(checked.stdout)["conditions"]] == ["pass", "fail"]
    jostle_with("board", "run", "-o", "board", cwd=tmp_path, site=site)
    board = json.loads((tmp_path / "board" / "board.json").read_text())["boards"][0]
    assert board["metric"] == "exact counts"

    monkeypatch.setenv("PYTHONPATH", str(site))
    with served(tmp_path / "cache", tmp_path / "run") as viewer:
        opener = build_opener(HTTPCookieProcessor())
        opener.open(viewer.address).read()

        def read(path: str) -> Any:
            return json.loads(opener.open(f"{viewer.origin}/runs/run{path}.json").read())

        cells = {cell["cell"]: cell["key"] for row in read("")["rows"] for cell in row["cells"] if cell}
        while (listed := read(f"/cells/{cells['brightness:5']}"))["page"] == "waiting":
            time.sleep(0.1)
        video = read(f"/cells/{cells['brightness:5']}/videos/{listed['videos'][0]['key']}")
        (item,) = video["questions"]
        assert item["clean"]["right"]
        assert not item["corrupted"]["right"]

    # Goes on to the same bytes, and without the package says what to install.
    (tmp_path / "run" / "predictions" / "clean.json").unlink()
    kept = (tmp_path / "run" / "scores.json").read_bytes()
    jostle_with("run", "flashes-c", "--model", MODEL, "-o", "run", cwd=tmp_path, site=site)
    assert (tmp_path / "run" / "scores.json").read_bytes() == kept
    missing = jostle_with("report", "run", "-o", "again.html", cwd=tmp_path, site="", code=3).stderr
    assert "a run of counting, a task that is not here; to install it: pip install jostle-counting==0.1.0" in missing


def test_a_model_that_counts_nothing_is_refused(site: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def guess(frames):\n    return -1\n")
    jostle_with(
        "run", "flashes-c", "--model", "mine:guess", "-o", "run", cwd=tmp_path, site=f"{site}{os.pathsep}.", code=2
    )
    done = jostle_with("run", "flashes-c", "--model", "puppet_net", "-o", "run", cwd=tmp_path, site=site, code=2)
    assert "no model of counting has this name" in done.stderr
