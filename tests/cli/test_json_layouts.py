"""The JSON of verbs is that of the page which documents it."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

import jostle
from helpers import tiny_run
from helpers.made_runs import made_run
from jostle.api.installation import Health
from jostle.cli.app import _run as run_command
from jostle.cli.app import app
from jostle.evaluation.inference.jobs import VideoAdaptation
from jostle.evaluation.run_folder.journal import WorkDone
from jostle.evaluation.runner.runner import Run
from jostle.features.extraction import Cost
from jostle.training.loop import TrainingResult

PAGE = Path(__file__).parents[2] / "docs" / "json.md"
Print = Callable[..., Any]


def documented() -> dict[str, list[str]]:
    """Keys of each row of the page's first table, by verb."""
    rows = {}
    for line in PAGE.read_text(encoding="utf-8").split("\n## ")[0].splitlines():
        if match := re.fullmatch(r"\| `([^`]+)`[^|]* \| (.*) \|", line):
            rows.setdefault(match[1], re.findall(r"`([a-z_0-9]+)`", match[2]))
    return rows


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Print:
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> Any:
        monkeypatch.setattr(sys, "argv", ["jostle", *words, "--json"])
        code = run_command()
        output = capsys.readouterr()
        assert code == 0, output.err
        return json.loads(output.out)

    return call


def test_every_verb_with_json_is_on_the_page() -> None:
    command: Any = typer.main.get_command(app)
    verbs = {name for name, verb in command.commands.items() if any("--json" in part.opts for part in verb.params)}
    assert {row.partition(" ")[0] for row in documented()} == verbs


def test_finished_runs(printed: Print) -> None:
    made_run(Path("a"))
    made_run(Path("b"), model="other", weakness=0.3)
    keys = documented()
    assert sorted(json.loads(Path("a/scores.json").read_text(encoding="utf-8"))) == sorted(
        set(keys["run"]) - {"mend", "adapt", "stopped_early", "adaptation", "work"}
    )
    assert [*printed("board", "a", "-o", "board", "--bootstrap", "0")] == keys["board"]
    assert [*printed("board", "--export", "a", "-o", "a.json", "--bootstrap", "0")] == keys["board --export"]
    assert [*printed("card", "a", "-o", "cards")] == keys["card"]
    assert [*printed("report", "a", "-o", "a.html", "--bootstrap", "0")] == keys["report"]
    assert sorted(printed("verify", "a")) == sorted(set(keys["verify"]) - {"whole"})


def test_a_probe_is_one_layout_for_both(printed: Print) -> None:
    pytest.importorskip("torch")
    tiny_run.write_folder(Path("made"))
    words = ["probe", "made/tiny-c.toml", "--data", "made/data", "-o", "probe", "--model", "helpers.tiny_run:lit"]
    words += ["-j", "1", "--device", "cpu", "--kind", "thumos14-c/black_frame", "--step", "8"]
    value = printed(*words)
    assert [*value] == [key for key in documented()["probe"] if key != "against"]
    assert value == json.loads(Path("probe/probe.json").read_text(encoding="utf-8"))
    section = PAGE.read_text(encoding="utf-8").split("## Of a probe")[1].split("\n## ")[0]
    assert all(f"`{key}`" in section for one in value["summary"] for key in one)
    assert all(f"`{key}`" in section for one in value["breaking_points"] for key in one)
    assert value["breaking_points"]
    against = printed(*words, "--against", "probe")
    assert all(f"`{key}`" in section for one in against["against"].values() for key in one)


def test_a_check_is_one_layout_for_both(printed: Print) -> None:
    made_run(Path("a"))
    found = jostle.check("a", "a")
    value = printed("check", "a", "--against", "a")
    assert value == json.loads(json.dumps(found.to_dict()))
    assert [*value] == documented()["check"]
    section = PAGE.read_text(encoding="utf-8").split("## Of a gate")[1].split("\n## ")[0]
    assert all(f"`{key}`" in section for key in value["conditions"][0])


def test_a_diff_is_one_layout_for_both(printed: Print) -> None:
    made_run(Path("a"))
    made_run(Path("b"), model="other", weakness=0.3)
    found = jostle.diff("a", "b", draws=20)
    value = printed("diff", "a", "b", "--bootstrap", "20")
    assert value == json.loads(json.dumps(found.to_dict()))
    assert [*value] == documented()["diff"]
    assert [row["what"] for row in value["rows"]] == [row.what for row in found.rows]
    section = PAGE.read_text(encoding="utf-8").split("## Of two runs")[1]
    assert all(f"`{key}`" in section for key in value["rows"][0])
    assert value["rows"][0]["difference"] == found.rows[0].difference.value


def test_the_times_of_a_run() -> None:
    work = WorkDone(8, 2, 42.0, 10.0, 60.0, 4.0, 0.1, "corrupting")
    done = Run(Path("a"), {"format": 1}, (), Cost(), Cost(), work, "more cores would help")
    value = done.to_dict()
    assert [*value] == ["format", "work"]
    assert documented()["run"][-1] == "work"
    section = PAGE.read_text(encoding="utf-8").split("## Of a run")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    assert sorted(value["work"]) == sorted(re.findall(r"`(\w+)`", " ".join(rows)))
    assert dataclasses.replace(done, work=None).to_dict() == {"format": 1, "work": None}


def test_the_passes_of_adaptation() -> None:
    value = Run(Path("a"), {}, (), Cost(), Cost(), adaptation=VideoAdaptation(2, 4, 2)).to_dict()
    assert [*value] == ["adaptation", "work"] == documented()["run"][-2:]
    section = PAGE.read_text(encoding="utf-8").split("## Of adaptation")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    assert sorted(value["adaptation"]) == sorted(re.findall(r"`(\w+)`", " ".join(rows)))
    assert value["adaptation"]["forward_ratio"] == 2.0


def test_frame_classifiers(printed: Print) -> None:
    made_run(Path("frames"), "frames", cells=())
    assert sorted(printed("scatter", "frames", "-o", "figures")) == sorted(documented()["scatter"])
    for name, content in {"scores": {"v/1.jpg": [1, 0]}, "sets": {"v/1.jpg": []}, "labels": {"v/1.jpg": [0]}}.items():
        Path(f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    value = printed("pmk", "scores.json", "--sets", "sets.json", "--labels", "labels.json")
    assert [*value] == documented()["pmk"]


def test_scores_of_files(printed: Print) -> None:
    segments = [{"label": "jump", "segment": [1.0, 5.0]}, {"label": "run", "segment": [6.0, 9.0]}]
    truth = {"database": {name: {"subset": "test", "duration": 20.0, "annotations": segments} for name in "ab"}}
    found = {"results": {name: [one | {"score": 0.9 - i / 10} for i, one in enumerate(segments)] for name in "ab"}}
    Path("truth.json").write_text(json.dumps(truth), encoding="utf-8")
    Path("found.json").write_text(json.dumps(found), encoding="utf-8")
    keys, base = documented(), ("found.json", "--truth", "truth.json")
    assert [*printed("eval", *base)] == keys["eval"]
    assert [*printed("eval", *base, "--against", "found.json")][-2:] == keys["eval --against"][-2:]
    assert [*printed("eval", *base, "--task", "proposals")] == keys["eval --task proposals"]
    assert [*printed("diagnose", *base)] == keys["diagnose"]
    assert [*printed("diagnose", *base, "--against", "found.json")][-2:] == keys["diagnose --against"][-2:]
    assert [*printed("convert", "found.json", "found.csv")] == keys["convert"]
    assert isinstance(printed("names", "corruptions"), list)
    assert [*printed("names", "published", "mini-kinetics-c/table-2")] == keys["names published TABLE"]


def test_answers_and_moments(printed: Print) -> None:
    keys = documented()
    question = {"id": "q", "video": "v", "question": "Q?", "options": ["up", "down"], "answer": 0, "type": "way"}
    Path("questions.jsonl").write_text(json.dumps(question) + "\n")
    Path("answers.jsonl").write_text('{"id": "q", "text": "The answer is A."}\n')
    base = ("eval", "answers.jsonl", "--truth", "questions.jsonl")
    assert [*printed(*base)] == keys["eval --task questions"][:-2]
    assert [*printed(*base, "--against", "answers.jsonl")] == keys["eval --task questions"]
    assert printed(*base)["accuracy"] == 1.0
    Path("moments.csv").write_text("id,video,start,end,sentence\nm,v,1,3,he runs\n")
    Path("windows.csv").write_text("id,start,end,score\nm,1,3,0.5\n")
    base = ("eval", "windows.csv", "--truth", "moments.csv", "--task", "moments")
    assert [*printed(*base)] == keys["eval --task moments"][:-1]
    assert [*printed(*base, "--against", "windows.csv")] == keys["eval --task moments"]
    assert printed(*base, "--reproduce-bug", "empty-query")["reproduce_bugs"] == ["empty-query"]


def test_objects_that_take_long_to_make() -> None:
    keys = documented()
    assert {field.name for field in dataclasses.fields(TrainingResult)} == set(keys["train"]) - {"format"}
    assert {field.name for field in dataclasses.fields(Health)} == set(keys["doctor"]) - {"format", "well"}
