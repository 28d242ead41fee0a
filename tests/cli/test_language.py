"""`jostle eval` on answers and windows: output and refusals."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import jostle
from jostle.cli.app import _run as run_command

Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Call:
    monkeypatch.chdir(tmp_path)
    rows = [
        {"id": f"q{i}", "video": f"v{i}", "question": "Q?", "options": ["up", "down"], "answer": 0, "type": "way"}
        for i in range(4)
    ]
    Path("questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    Path("clean.json").write_text(json.dumps({"q0": "A", "q1": "up", "q2": "B", "q3": "I cannot tell."}))
    Path("noisy.json").write_text(json.dumps({"q0": "A", "q1": "", "q2": "A", "other": 1}))
    Path("sentences.txt").write_text("ABCDE 1.0 5.0##person sits.\nABCDE 7.0 9.0##person runs.\n")
    Path("windows.json").write_text(json.dumps({"ABCDE/0": [[1, 4, 0.9]], "ABCDE/1": []}))

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["jostle", *words])
        code = run_command()
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_answers_are_scored_without_naming_the_task(call: Call) -> None:
    code, out, _ = call("eval", "clean.json", "--truth", "questions.jsonl")
    assert code == 0
    assert "4 questions about 4 videos" in out
    assert out.splitlines()[2].split() == ["all", "4", "50.00", "[6.76,", "93.24]", "50.00", "1", "0"]


def test_changes_between_two_files(call: Call) -> None:
    code, out, err = call("eval", "clean.json", "--truth", "questions.jsonl", "--against", "noisy.json")
    assert code == 0, err
    assert "right ones that stay right     50.00" in out
    assert "wrong ones that become right   50.00" in out


@pytest.mark.fault("F153")
def test_moments_are_scored_without_naming_the_task(call: Call) -> None:
    code, out, _ = call("eval", "windows.json", "--truth", "sentences.txt")
    assert code == 0
    assert "2 sentences about 1 videos; 1 without windows and 0 missing count as 0" in out
    assert "R@1, IoU 0.5 50.00" in " ".join(out.split())
    _, out, _ = call("eval", "windows.json", "--truth", "sentences.txt", "--reproduce-bug", "empty-query")
    assert "R@1, IoU 0.5 100.00" in " ".join(out.split())


def test_options_of_detections_are_refused(call: Call) -> None:
    code, _, err = call("eval", "clean.json", "--truth", "questions.jsonl", "--tiou", "0.5")
    assert code == 2
    assert "--tiou goes with detections" in err
    code, _, err = call("eval", "clean.json", "--truth", "questions.jsonl", "--reproduce-bug", "empty-query")
    assert code == 2
    assert "--reproduce-bug goes with --task moments" in err


def test_errors_of_unknown_files(call: Call) -> None:
    Path("nothing.json").write_text('{"a": 1}')
    code, _, err = call("eval", "clean.json", "--truth", "nothing.json")
    assert code == 3
    assert "F28" in err
    code, _, err = call("eval", "clean.json", "--truth", "nothing.json", "--task", "questions")
    assert code == 3
    assert "no questions with options in any known layout" in err


def test_python_gives_the_same(call: Call) -> None:
    score = jostle.evaluate("clean.json", "questions.jsonl")
    assert score.to_dict() == json.loads(call("eval", "clean.json", "--truth", "questions.jsonl", "--json")[1])
    assert jostle.evaluate("windows.json", "sentences.txt").to_dict()["empty"] == 1


def test_run_prints_scores_without_the_video(call: Call) -> None:
    pytest.importorskip("torch")  # `jostle run` needs it
    from helpers.small_language import write_data

    write_data(Path("data"))
    words = ("run", "next-qa-c", "--model", "helpers.small_language:language_predictor", "--data", "data", "-o", "run")
    code, _, err = call(*words, "-j", "1", "--cells", "reverse_sampling:1")
    assert code == 0, err
    assert "on clean video it scores without video 0.00, with one frame" in err
    assert "clean frames read" in err
    code, _, err = call("report", "run", "-o", "page.html", "--bootstrap", "20")
    assert code == 0, err
    assert "Temporal sensitivity" in Path("page.html").read_text(encoding="utf-8")


def test_names_of_models_are_listed(call: Call) -> None:
    names = ["hf:ORG/NAME", "openai:http://HOST:PORT/v1#MODEL", "puppet_language"]
    assert call("names", "languagemodels") == (0, "\n".join([*names, ""]), "")
    assert json.loads(call("names", "languagemodels", "--json")[1]) == names
    pytest.importorskip("torch")
    lines = call("names", "languagemodels", "-v")[1].splitlines()
    assert [line.split()[0] for line in lines] == names
    assert lines[-1].endswith("clean or robust: with jostle")
