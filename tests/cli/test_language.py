"""`jostle eval` on answers and windows: output and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import jostle
from helpers.command_line import assert_refused, call, succeed

ANSWERS = ("eval", "clean.json", "--truth", "questions.jsonl")
WINDOWS = ("eval", "windows.json", "--truth", "sentences.txt")


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A folder with questions, sentences and what models said of them."""
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
    Path("nothing.json").write_text('{"a": 1}')


def test_answers_are_scored_without_naming_the_task() -> None:
    out = succeed(*ANSWERS).out
    assert "4 questions about 4 videos" in out
    assert out.splitlines()[2].split() == ["all", "4", "50.00", "[6.76,", "93.24]", "50.00", "1", "0"]
    out = succeed(*ANSWERS, "--against", "noisy.json").out
    assert "right ones that stay right     50.00" in out
    assert "wrong ones that become right   50.00" in out
    assert jostle.evaluate("clean.json", "questions.jsonl").to_dict() == succeed(*ANSWERS, "--json").json


@pytest.mark.fault("F153")
def test_moments_are_scored_without_naming_the_task() -> None:
    out = succeed(*WINDOWS).out
    assert "2 sentences about 1 videos; 1 without windows and 0 missing count as 0" in out
    assert "R@1, IoU 0.5 50.00" in " ".join(out.split())
    assert "R@1, IoU 0.5 100.00" in " ".join(succeed(*WINDOWS, "--reproduce-bug", "empty-query").out.split())
    assert jostle.evaluate("windows.json", "sentences.txt").to_dict()["empty"] == 1


@pytest.mark.parametrize(
    ("code", "message", "words"),
    [
        (2, "--tiou goes with detections", (*ANSWERS, "--tiou", "0.5")),
        (2, "--reproduce-bug goes with --task moments", (*ANSWERS, "--reproduce-bug", "empty-query")),
        (3, "error[F28]", ("eval", "clean.json", "--truth", "nothing.json")),
        (3, "no questions with options in any known layout",
         ("eval", "clean.json", "--truth", "nothing.json", "--task", "questions")),
    ],
)  # fmt: skip
def test_what_does_not_belong_together_is_refused(code: int, message: str, words: tuple[str, ...]) -> None:
    assert_refused(code, message, *words)


def test_run_prints_scores_without_the_video() -> None:
    pytest.importorskip("torch")  # `jostle run` needs it
    from helpers.small_language import write_data

    write_data(Path("data"))
    words = ("run", "next-qa-c", "--model", "helpers.small_language:language_predictor", "--data", "data", "-o", "run")
    err = succeed(*words, "-j", 1, "--cells", "reverse_sampling:1").err
    assert "on clean video it scores without video 0.00, with one frame" in err
    assert "clean frames read" in err
    succeed("report", "run", "-o", "page.html", "--bootstrap", 20)
    assert "Temporal sensitivity" in Path("page.html").read_text(encoding="utf-8")


def test_names_of_models_are_listed() -> None:
    names = ["hf:ORG/NAME", "openai:http://HOST:PORT/v1#MODEL", "puppet_language"]
    assert call("names", "languagemodels") == (0, "\n".join([*names, ""]), "")
    assert succeed("names", "languagemodels", "--json").json == names
    pytest.importorskip("torch")
    lines = succeed("names", "languagemodels", "-v").out.splitlines()
    assert [line.split()[0] for line in lines] == names
    assert lines[-1].endswith("clean or robust: with jostle")
