"""`jostle eval`, `diagnose` and `convert` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import jostle
from helpers.command_line import assert_refused, call, succeed
from helpers.started import run
from jostle import Predictions, Truth
from jostle.io.files.annotations import write_predictions, write_truth

CLASSES = ("Jump", "Run", "Throw")


def random_truth() -> Truth:
    rng = np.random.default_rng(0)
    start = rng.uniform(0, 80, 60)
    return Truth(
        videos=tuple(f"v{i:02d}" for i in range(12)),
        classes=CLASSES,
        video=np.repeat(np.arange(12), 5),
        start=start,
        end=start + rng.uniform(2, 12, 60),
        label=np.arange(60) % 3,
        subsets=("Test",) * 12,
        duration=np.full(12, 100.0),
        label_ids=(0, 1, 2),
    )


def detections(truth: Truth, noise: float) -> Predictions:
    rng = np.random.default_rng(1)
    start = np.concatenate([truth.start + rng.normal(0, noise, 60), rng.uniform(0, 90, 100)])
    length = np.concatenate([truth.end - truth.start, rng.uniform(2, 12, 100)])
    return Predictions(
        videos=truth.videos,
        classes=CLASSES,
        video=np.concatenate([truth.video, rng.integers(0, 12, 100)]),
        start=np.maximum(start, 0),
        end=np.maximum(start, 0) + length,
        label=np.concatenate([truth.label, rng.integers(0, 3, 100)]),
        score=np.concatenate([rng.uniform(0.3, 1, 60), rng.uniform(0, 0.7, 100)]),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("scoring")
    truth = random_truth()
    write_truth(truth, root / "gt.json", format="thumos14")
    write_predictions(detections(truth, 0.5), root / "clean.json")
    write_predictions(detections(truth, 3.0), root / "rough.json")
    return root


@pytest.fixture(autouse=True)
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


EVAL = ("eval", "clean.json", "--truth", "gt.json")


def test_eval_prints_the_table_and_its_protocol(folder: Path) -> None:
    result = run(*EVAL, "--protocol", "thumos14", "--per-class", cwd=folder)
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == "thumos14 protocol, 160 predictions in 12 videos"
    assert [line.split()[-2] for line in lines[2:8]] == ["0.3", "0.4", "0.5", "0.6", "0.7", "mAP"]
    assert lines[8].startswith("12 videos, 60 instances, 3 classes, subset Test; truth sha256:")
    assert [line.split()[2] for line in lines[-3:]] == ["Jump", "Run", "Throw"]


def test_eval_json_equals_the_python_score() -> None:
    called = succeed(*EVAL, "--tiou", "0.5,0.75", "--bootstrap", 50, "--json", "-q")
    payload, truth = called.json, jostle.load_truth("gt.json", subset="test")
    score = jostle.score(jostle.load_predictions("clean.json"), truth, tious=[0.5, 0.75], bootstrap=50)
    payload["truth"].pop("variant")
    assert payload == score.to_dict()
    assert called.err == ""


def test_eval_against_gives_the_paired_difference_and_figures(tmp_path: Path) -> None:
    words = (*EVAL, "--bootstrap", 50, "--against", "rough.json")
    out = succeed(*words, "--figures", tmp_path / "figures").out
    average = next(line for line in out.splitlines() if line.startswith("average mAP"))
    assert average.split()[4].startswith("-")
    assert {path.name for path in (tmp_path / "figures").glob("*.png")} == {"precision_recall.png", "class_drops.png"}
    payload = succeed(*words, "--json").json
    difference = payload["against"]["average_map"] - payload["average_map"]
    assert payload["difference"]["average_map"] == pytest.approx(difference)
    assert payload["difference"]["interval"]["resamples"] == 50


def test_diagnose_writes_figures_and_json(tmp_path: Path) -> None:
    words = ("diagnose", *EVAL[1:])
    out = succeed(*words, "--against", "rough.json", "-o", tmp_path).out
    assert "What each kind of error costs" in out
    assert "Missed instances by length" in out
    analyses = {f"{kind}_analysis" for kind in ("false_positive", "sensitivity", "false_negative")}
    assert {path.stem for path in tmp_path.glob("*.pdf")} == analyses | {"clean_against_corrupted"}
    stored = json.loads((tmp_path / "diagnosis.json").read_text())
    assert {"false_positives", "sensitivity", "false_negatives", "change"} <= set(stored)
    assert succeed(*words, "--json").json == jostle.diagnose("clean.json", "gt.json").to_dict()


def test_converted_files_score_the_same(tmp_path: Path) -> None:
    first = succeed(*EVAL, "--json").out
    for name in ("p.csv", "p.pkl", "p.json.gz"):
        target = tmp_path / name
        assert "160 rows of predictions" in succeed("convert", "clean.json", target, "--truth", "gt.json").err
        assert succeed("eval", target, "--truth", "gt.json", "--json").out == first
    message = "exists; pass --overwrite to replace it"
    assert_refused(2, message, "convert", "clean.json", tmp_path / "p.csv")


def write_files(folder: Path, **files: object) -> None:
    for name, content in files.items():
        (folder / f"{name}.json").write_text(json.dumps(content))


def test_pm_k_reads_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    scores = {"v/1.jpg": [0.9, 0.1], "v/2.jpg": [0.2, 0.8], "w/1.jpg": [0.3, 0.7]}
    labels = {"v/1.jpg": [0], "v/2.jpg": [0], "w/1.jpg": [1]}
    write_files(tmp_path, scores=scores, labels=labels, sets={"v/1.jpg": ["v/2.jpg"], "w/1.jpg": []})
    words = ("eval", "scores.json", "--sets", "sets.json", "--labels", "labels.json")
    payload = succeed(*words, "--json").json
    assert (payload["anchors"], payload["accuracy"], payload["pm_k"], payload["drop"]) == (2, 1.0, 0.5, 0.5)
    assert payload["error_by_offset"] == {"1": 1.0}
    assert "pm-1" in succeed(*words, "-k", 1).out
    np.savez("scores.npz", frames=list(scores), logits=np.array(list(scores.values())))
    assert succeed("eval", "scores.npz", *words[2:], "--json").json == payload


def test_pm_k_reads_box_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    dogs = {name: [[0, 0, 0, 9, 9]] for name in ("v/1.jpg", "v/2.jpg")}
    write_files(tmp_path, sets={"v/1.jpg": ["v/2.jpg"]}, boxes={"classes": ["dog", "fox"], "boxes": dogs})
    Path("frames.txt").write_text("v/1\nv/2\n")
    Path("found.txt").write_text("1 1 0.9 0 0 9 9\n2 2 0.8 0 0 9 9\n")
    words = ("eval", "found.txt", "--sets", "sets.json", "--boxes", "boxes.json")
    payload = succeed(*words, "--frames", "frames.txt", "--json").json
    assert (payload["format"], payload["classes"], payload["of_classes"]) == (1, 2, 2)
    # The prediction of a fox is at the position of the dog.
    assert [payload["detection"][name] for name in ("mean_ap", "pm_k", "drop")] == [1, 0, 1]
    assert [payload["localisation"][name] for name in ("mean_ap", "pm_k", "drop")] == [1, 1, 0]
    text = succeed(*words, "--frames", "frames.txt", "-k", 1).out
    assert text.startswith("1 anchors, IoU 0.5\n")
    assert "pm-1 mAP" in text
    assert_refused(2, "give the list of frames", *words)
    assert_refused(2, "give one of them", *words, "--labels", "sets.json")
    assert_refused(2, "are for frame classifiers", *words, "--project", "ytbb")
    message = "--frames goes with --boxes"
    assert_refused(2, message, *words[:4], "--labels", "sets.json", "--frames", "frames.txt")


def test_blocked_ids_from_a_file(tmp_path: Path) -> None:
    words = (*EVAL, "--json", "--blocked", tmp_path / "ids")
    payloads = []
    for text in ('["v00", "v01"]', "v00\nv01\n"):
        (tmp_path / "ids").write_text(text)
        payloads.append(succeed(*words).json)
    assert payloads[0] == payloads[1]
    assert payloads[0]["predictions"]["blocked"] > 0
    assert payloads[0]["truth"]["left_out"] == {"in a blocked video": 10}
    (tmp_path / "ids").write_text('{"a": 1}')
    assert "holds an object with keys 'a', not a list of video ids" in call(*words).err


@pytest.mark.parametrize(
    ("code", "message", "words"),
    [
        (3, "error[F28]: gt.json: not predictions: it looks like ground truth", "eval gt.json --truth gt.json"),
        (3, "error[F28]: clean.json: not ground truth", "eval clean.json --truth clean.json"),
        (3, "error[F29]", "eval clean.json --truth gt.json --subset val"),
        (2, "--tiou takes numbers with commas", "eval clean.json --truth gt.json --tiou a"),
        (2, "did you mean thumos14?", "eval clean.json --truth gt.json --protocol thumos15"),
        (2, "no style is called 'x'", "diagnose clean.json --truth gt.json --style x"),
        (3, "none.json: cannot be read", "eval none.json --truth gt.json"),
        (2, "the suffix .odd is of no format", "convert clean.json x.odd"),
        (2, "say what PRED is scored by: --truth GT, or --sets SETS", "eval clean.json"),
        (2, "-k is about similar frames; say which by --sets", "eval clean.json --truth gt.json -k 3"),
        (2, "--truth is for files with a ground truth; leave it out beside --sets",
         "eval clean.json --truth gt.json --sets x.json --labels x.json"),
        (3, "error[F28]", "eval clean.json --sets gt.json --labels gt.json"),
        (3, "holds several subsets: Validation (1 videos), Test (11 videos); name one with --subset",
         "eval clean.json --truth both.json"),
    ],
)  # fmt: skip
def test_invalid_input_is_explained(code: int, message: str, words: str) -> None:
    content = json.loads(Path("gt.json").read_text())
    content["database"]["v00"]["subset"] = "Validation"
    Path("both.json").write_text(json.dumps(content))
    assert_refused(code, message, *words.split())


def test_eval_of_proposals_and_video_classes(tmp_path: Path) -> None:
    payload = succeed(*EVAL, "--task", "proposals", "--json").json
    assert len(payload["average_recall"]) == 100
    assert 0 < payload["area"] < 1
    assert "area under the curve" in succeed(*EVAL, "--task", "proposals").out
    rows = [{"label": name, "score": 0.9 - 0.1 * j} for j, name in enumerate(CLASSES)]
    labels = {f"v{i:02d}": rows for i in range(12)}
    write_files(tmp_path, labels={"version": "1", "results": labels, "external_data": {}})
    words = ("eval", tmp_path / "labels.json", "--truth", "gt.json", "--task", "classification")
    payload = succeed(*words, "--json").json
    assert (payload["videos"], payload["hit_at_k"], payload["average_hit_at_k"]) == (12, 1.0, 1.0)
    assert "hit@3" in succeed(*words).out


def test_pm_k_merges_the_classes_of_imagenet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = np.zeros((2, 1000))
    rows[:, 404] = 1  # airplane, class 0 of ImageNet-Vid
    np.savez("scores.npz", frames=["v/1.jpg", "v/2.jpg"], logits=rows)
    write_files(tmp_path, sets={"v/1.jpg": ["v/2.jpg"]}, labels={"v/1.jpg": [0], "v/2.jpg": [0]})
    words = ("eval", "scores.npz", "--sets", "sets.json", "--labels", "labels.json", "--json")
    payload = succeed(*words, "--project", "imagenet-vid").json
    assert (payload["accuracy"], payload["pm_k"]) == (1.0, 1.0)
    assert succeed(*words).json["accuracy"] == 0.0
