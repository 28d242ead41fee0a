"""The JSON output of every verb agrees with its documentation in docs/json.md."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer

import jostle
from helpers import tiny_run
from helpers.command_line import succeed
from helpers.synthetic_runs import write_run
from jostle.api.installation import Health
from jostle.cli.app import app
from jostle.evaluation.inference.jobs import VideoAdaptation
from jostle.evaluation.results.run import Run
from jostle.evaluation.run_folder.journal import WorkDone
from jostle.features.extraction import Cost
from jostle.training.loop import TrainingResult

PAGE = Path(__file__).parents[2] / "docs" / "json.md"


def documented_keys() -> dict[str, list[str]]:
    """Return the documented keys by verb, from the first table of the page."""
    rows = {}
    for line in PAGE.read_text(encoding="utf-8").split("\n## ")[0].splitlines():
        if match := re.fullmatch(r"\| `([^`]+)`[^|]* \| (.*) \|", line):
            rows.setdefault(match[1], re.findall(r"`([a-z_0-9]+)`", match[2]))
    return rows


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def run_json(*words: str) -> Any:
    return succeed(*words, "--json").json


def test_every_verb_with_json_is_documented() -> None:
    command: Any = typer.main.get_command(app)
    verbs = {name for name, verb in command.commands.items() if any("--json" in part.opts for part in verb.params)}
    assert {row.partition(" ")[0] for row in documented_keys()} == verbs


def test_finished_runs() -> None:
    write_run(Path("a"))
    write_run(Path("b"), model="other", weakness=0.3)
    keys = documented_keys()
    assert sorted(json.loads(Path("a/scores.json").read_text(encoding="utf-8"))) == sorted(
        set(keys["run"]) - {"mend", "adapt", "stopped_early", "adaptation", "work"}
    )
    assert [*run_json("board", "a", "-o", "board", "--bootstrap", "0")] == keys["board"]
    assert [*run_json("board", "--export", "a", "-o", "a.json", "--bootstrap", "0")] == keys["board --export"]
    assert [*run_json("report", "a", "--as", "card", "-o", "cards")] == keys["report --as card"]
    assert [*run_json("report", "a", "-o", "a.html", "--bootstrap", "0")] == keys["report"]
    assert sorted(run_json("check", "a")) == sorted(set(keys["check DIR"]) - {"whole"})


def test_probe_has_one_layout() -> None:
    pytest.importorskip("torch")
    tiny_run.write_folder(Path("made"))
    words = ["probe", "made/tiny-c.toml", "--data", "made/data", "-o", "probe", "-j", "1"]
    words += ["--model", "helpers.tiny_run:detect_brightness", "--device", "cpu"]
    words += ["--kind", "thumos14-c/black_frame", "--step", "8"]
    value = run_json(*words)
    assert [*value] == [key for key in documented_keys()["probe"] if key != "against"]
    assert value == json.loads(Path("probe/probe.json").read_text(encoding="utf-8"))
    section = PAGE.read_text(encoding="utf-8").split("## Of a probe")[1].split("\n## ")[0]
    assert all(f"`{key}`" in section for one in value["summary"] for key in one)
    assert all(f"`{key}`" in section for one in value["breaking_points"] for key in one)
    assert value["breaking_points"]
    against = run_json(*words, "--against", "probe")
    assert all(f"`{key}`" in section for one in against["against"].values() for key in one)


def test_check_has_one_layout() -> None:
    write_run(Path("a"))
    check = jostle.check("a", "a")
    value = run_json("check", "a", "--against", "a")
    assert value == json.loads(json.dumps(check.to_dict()))
    assert [*value] == documented_keys()["check --budget"]
    section = PAGE.read_text(encoding="utf-8").split("## Of a gate")[1].split("\n## ")[0]
    assert all(f"`{key}`" in section for key in value["conditions"][0])


def test_diff_has_one_layout() -> None:
    write_run(Path("a"))
    write_run(Path("b"), model="other", weakness=0.3)
    diff = jostle.diff("a", "b", draws=20)
    value = run_json("diff", "a", "b", "--bootstrap", "20")
    assert value == json.loads(json.dumps(diff.to_dict()))
    assert [*value] == documented_keys()["diff"]
    assert [row["what"] for row in value["rows"]] == [row.what for row in diff.rows]
    section = PAGE.read_text(encoding="utf-8").split("## Of two runs")[1]
    assert all(f"`{key}`" in section for key in value["rows"][0])
    assert value["rows"][0]["difference"] == diff.rows[0].difference.value


def test_times_of_a_run() -> None:
    work = WorkDone(8, 2, 42.0, 10.0, 60.0, 4.0, 0.1, "corrupting")
    run = Run(Path("a"), {"format": 1}, (), Cost(), Cost(), work, "more cores would help")
    value = run.to_dict()
    assert [*value] == ["format", "work"]
    assert documented_keys()["run"][-1] == "work"
    section = PAGE.read_text(encoding="utf-8").split("## Of a run")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    assert sorted(value["work"]) == sorted(re.findall(r"`(\w+)`", " ".join(rows)))
    assert dataclasses.replace(run, work=None).to_dict() == {"format": 1, "work": None}


def test_passes_of_adaptation() -> None:
    value = Run(Path("a"), {}, (), Cost(), Cost(), adaptation=VideoAdaptation(2, 4, 2)).to_dict()
    assert [*value] == ["adaptation", "work"] == documented_keys()["run"][-2:]
    section = PAGE.read_text(encoding="utf-8").split("## Of adaptation")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    assert sorted(value["adaptation"]) == sorted(re.findall(r"`(\w+)`", " ".join(rows)))
    assert value["adaptation"]["forward_ratio"] == 2.0


def test_frame_classifiers() -> None:
    write_run(Path("frames"), "frames", cells=())
    value = run_json("report", "frames", "-o", "page.html", "--figures", "figures", "--bootstrap", "0")
    assert [*value] == documented_keys()["report"]
    assert value["figures"] == "figures"
    assert sorted(path.suffix for path in Path("figures").glob("accuracy_against_pm_*")) == [".pdf", ".png", ".svg"]
    text = PAGE.read_text(encoding="utf-8").split("`stability` of `report` has")[1].split("\n\n")[0]
    assert all(f"`{key}`" in text for key in value["stability"] if key != "format")
    for name, content in {"scores": {"v/1.jpg": [1, 0]}, "sets": {"v/1.jpg": []}, "labels": {"v/1.jpg": [0]}}.items():
        Path(f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    value = run_json("eval", "scores.json", "--sets", "sets.json", "--labels", "labels.json")
    assert [*value] == documented_keys()["eval --sets --labels"]


def test_scores_of_files() -> None:
    segments = [{"label": "jump", "segment": [1.0, 5.0]}, {"label": "run", "segment": [6.0, 9.0]}]
    truth = {"database": {name: {"subset": "test", "duration": 20.0, "annotations": segments} for name in "ab"}}
    predictions = {
        "results": {name: [one | {"score": 0.9 - i / 10} for i, one in enumerate(segments)] for name in "ab"}
    }
    Path("truth.json").write_text(json.dumps(truth), encoding="utf-8")
    Path("found.json").write_text(json.dumps(predictions), encoding="utf-8")
    keys, base = documented_keys(), ("found.json", "--truth", "truth.json")
    assert [*run_json("eval", *base)] == keys["eval"]
    assert [*run_json("eval", *base, "--against", "found.json")][-2:] == keys["eval --against"][-2:]
    assert [*run_json("eval", *base, "--task", "proposals")] == keys["eval --task proposals"]
    assert [*run_json("diagnose", *base)] == keys["diagnose"]
    assert [*run_json("diagnose", *base, "--against", "found.json")][-2:] == keys["diagnose --against"][-2:]
    assert [*run_json("convert", "found.json", "found.csv")] == keys["convert"]
    assert isinstance(run_json("names", "corruptions"), list)
    assert [*run_json("names", "published", "mini-kinetics-c/table-2")] == keys["names published TABLE"]


def test_answers_and_moments() -> None:
    keys = documented_keys()
    question = {"id": "q", "video": "v", "question": "Q?", "options": ["up", "down"], "answer": 0, "type": "way"}
    Path("questions.jsonl").write_text(json.dumps(question) + "\n")
    Path("answers.jsonl").write_text('{"id": "q", "text": "The answer is A."}\n')
    base = ("eval", "answers.jsonl", "--truth", "questions.jsonl")
    assert [*run_json(*base)] == keys["eval --task questions"][:-2]
    assert [*run_json(*base, "--against", "answers.jsonl")] == keys["eval --task questions"]
    assert run_json(*base)["accuracy"] == 1.0
    Path("moments.csv").write_text("id,video,start,end,sentence\nm,v,1,3,he runs\n")
    Path("windows.csv").write_text("id,start,end,score\nm,1,3,0.5\n")
    base = ("eval", "windows.csv", "--truth", "moments.csv", "--task", "moments")
    assert [*run_json(*base)] == keys["eval --task moments"][:-1]
    assert [*run_json(*base, "--against", "windows.csv")] == keys["eval --task moments"]
    assert run_json(*base, "--reproduce-bug", "empty-query")["reproduce_bugs"] == ["empty-query"]


def test_objects_that_are_expensive_to_create() -> None:
    keys = documented_keys()
    assert {field.name for field in dataclasses.fields(TrainingResult)} == set(keys["train"]) - {"format"}
    assert {field.name for field in dataclasses.fields(Health)} == set(keys["doctor"]) - {"format", "well"}
