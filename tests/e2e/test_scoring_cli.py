"""`jostle eval`, `diagnose` and `convert` on the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import jostle
from helpers.started import run
from jostle import Predictions, Truth
from jostle.cli.app import _run
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


def test_eval_prints_the_table_and_its_protocol(folder: Path) -> None:
    result = run("eval", folder / "clean.json", "--truth", folder / "gt.json", "--protocol", "thumos14", "--per-class")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == "thumos14 protocol, 160 predictions in 12 videos"
    assert [line.split()[-2] for line in lines[2:8]] == ["0.3", "0.4", "0.5", "0.6", "0.7", "mAP"]
    assert lines[8].startswith("12 videos, 60 instances, 3 classes, subset Test; truth sha256:")
    assert [line.split()[2] for line in lines[-3:]] == ["Jump", "Run", "Throw"]


def test_eval_json_equals_the_python_score(folder: Path) -> None:
    result = run(
        "eval",
        folder / "clean.json",
        "--truth",
        folder / "gt.json",
        "--tiou",
        "0.5,0.75",
        "--bootstrap",
        "50",
        "--json",
        "-q",
    )
    payload = json.loads(result.stdout)
    truth = jostle.load_truth(folder / "gt.json", subset="test")
    expected = jostle.score(
        jostle.load_predictions(folder / "clean.json"), truth, tious=[0.5, 0.75], bootstrap=50
    ).to_dict()
    payload["truth"].pop("variant")
    assert payload == expected
    assert result.stderr == ""


def test_eval_against_gives_the_paired_difference_and_figures(folder: Path, tmp_path: Path) -> None:
    words = ("eval", folder / "clean.json", "--truth", folder / "gt.json", "--bootstrap", "50")
    result = run(*words, "--against", folder / "rough.json", "--figures", tmp_path / "figures")
    assert result.returncode == 0, result.stderr
    average = next(line for line in result.stdout.splitlines() if line.startswith("average mAP"))
    assert average.split()[4].startswith("-")
    assert {path.name for path in (tmp_path / "figures").glob("*.png")} == {"precision_recall.png", "class_drops.png"}
    payload = json.loads(run(*words, "--against", folder / "rough.json", "--json").stdout)
    assert payload["difference"]["average_map"] == pytest.approx(
        payload["against"]["average_map"] - payload["average_map"]
    )
    assert payload["difference"]["interval"]["resamples"] == 50


def test_diagnose_writes_figures_and_json(folder: Path, tmp_path: Path) -> None:
    result = run(
        "diagnose",
        folder / "clean.json",
        "--truth",
        folder / "gt.json",
        "--against",
        folder / "rough.json",
        "-o",
        tmp_path,
    )
    assert result.returncode == 0, result.stderr
    assert "What each kind of error costs" in result.stdout
    assert "Missed instances by length" in result.stdout
    names = {path.stem for path in tmp_path.glob("*.pdf")}
    assert names == {
        "false_positive_analysis",
        "sensitivity_analysis",
        "false_negative_analysis",
        "clean_against_corrupted",
    }
    stored = json.loads((tmp_path / "diagnosis.json").read_text())
    assert {"false_positives", "sensitivity", "false_negatives", "change"} <= set(stored)
    payload = json.loads(run("diagnose", folder / "clean.json", "--truth", folder / "gt.json", "--json").stdout)
    expected = jostle.diagnose(folder / "clean.json", folder / "gt.json").to_dict()
    assert payload == expected


def test_converted_files_score_the_same(folder: Path, tmp_path: Path) -> None:
    first = run("eval", folder / "clean.json", "--truth", folder / "gt.json", "--json").stdout
    for name in ("p.csv", "p.pkl", "p.json.gz"):
        result = run("convert", folder / "clean.json", tmp_path / name, "--truth", folder / "gt.json")
        assert result.returncode == 0, result.stderr
        assert "160 rows of predictions" in result.stderr
        assert run("eval", tmp_path / name, "--truth", folder / "gt.json", "--json").stdout == first
    again = run("convert", folder / "clean.json", tmp_path / "p.csv")
    assert again.returncode == 2
    assert "exists; pass --overwrite to replace it" in again.stderr


def test_pm_k_reads_files(tmp_path: Path) -> None:
    files = {
        "scores": {"v/1.jpg": [0.9, 0.1], "v/2.jpg": [0.2, 0.8], "w/1.jpg": [0.3, 0.7]},
        "sets": {"v/1.jpg": ["v/2.jpg"], "w/1.jpg": []},
        "labels": {"v/1.jpg": [0], "v/2.jpg": [0], "w/1.jpg": [1]},
    }
    for name, content in files.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    words = ("eval", "scores.json", "--sets", "sets.json", "--labels", "labels.json")
    payload = json.loads(run(*words, "--json", cwd=tmp_path).stdout)
    assert (payload["anchors"], payload["accuracy"], payload["pm_k"], payload["drop"]) == (2, 1.0, 0.5, 0.5)
    assert payload["error_by_offset"] == {"1": 1.0}
    text = run(*words, "-k", "1", cwd=tmp_path).stdout
    assert "pm-1" in text
    np.savez(tmp_path / "scores.npz", frames=list(files["scores"]), logits=np.array(list(files["scores"].values())))
    from_npz = run("eval", "scores.npz", *words[2:], "--json", cwd=tmp_path)
    assert json.loads(from_npz.stdout) == payload


def test_pm_k_reads_box_files(tmp_path: Path) -> None:
    files = {
        "sets.json": json.dumps({"v/1.jpg": ["v/2.jpg"]}),
        "boxes.json": json.dumps(
            {"classes": ["dog", "fox"], "boxes": {"v/1.jpg": [[0, 0, 0, 9, 9]], "v/2.jpg": [[0, 0, 0, 9, 9]]}}
        ),
        "frames.txt": "v/1\nv/2\n",
        "found.txt": "1 1 0.9 0 0 9 9\n2 2 0.8 0 0 9 9\n",
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    words = ("eval", "found.txt", "--sets", "sets.json", "--boxes", "boxes.json")
    payload = json.loads(run(*words, "--frames", "frames.txt", "--json", cwd=tmp_path).stdout)
    assert (payload["format"], payload["classes"], payload["of_classes"]) == (1, 2, 2)
    # The prediction of a fox is at the position of the dog.
    assert [payload["detection"][name] for name in ("mean_ap", "pm_k", "drop")] == [1, 0, 1]
    assert [payload["localisation"][name] for name in ("mean_ap", "pm_k", "drop")] == [1, 1, 0]
    text = run(*words, "--frames", "frames.txt", "-k", "1", cwd=tmp_path).stdout
    assert text.startswith("1 anchors, IoU 0.5\n")
    assert "pm-1 mAP" in text
    for more, message in (
        ((), "give the list of frames"),
        (("--labels", "sets.json"), "give one of them"),
        (("--project", "ytbb"), "are for frame classifiers"),
    ):
        refused = run(*words, *more, cwd=tmp_path)
        assert refused.returncode == 2
        assert message in " ".join(refused.stderr.split())
    refused = run(*words[:4], "--labels", "sets.json", "--frames", "frames.txt", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--frames goes with --boxes" in refused.stderr


def test_blocked_ids_from_a_file(folder: Path, tmp_path: Path) -> None:
    words = ("eval", folder / "clean.json", "--truth", folder / "gt.json", "--json", "--blocked", tmp_path / "ids")
    payloads = []
    for text in ('["v00", "v01"]', "v00\nv01\n"):
        (tmp_path / "ids").write_text(text)
        payloads.append(json.loads(run(*words).stdout))
    assert payloads[0] == payloads[1]
    assert payloads[0]["predictions"]["blocked"] > 0
    assert payloads[0]["truth"]["left_out"] == {"in a blocked video": 10}
    (tmp_path / "ids").write_text('{"a": 1}')
    assert "holds an object with keys 'a', not a list of video ids" in run(*words).stderr


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (
            ["eval", "gt.json", "--truth", "gt.json"],
            3,
            "error[F28]: gt.json: not predictions: it looks like ground truth",
        ),
        (["eval", "clean.json", "--truth", "clean.json"], 3, "error[F28]: clean.json: not ground truth"),
        (["eval", "clean.json", "--truth", "gt.json", "--subset", "val"], 3, "error[F29]"),
        (["eval", "clean.json", "--truth", "gt.json", "--tiou", "a"], 2, "--tiou takes numbers with commas"),
        (["eval", "clean.json", "--truth", "gt.json", "--protocol", "thumos15"], 2, "did you mean thumos14?"),
        (["diagnose", "clean.json", "--truth", "gt.json", "--style", "x"], 2, "no style is called 'x'"),
        (["eval", "none.json", "--truth", "gt.json"], 3, "none.json: cannot be read"),
        (["convert", "clean.json", "x.odd"], 2, "the suffix .odd is of no format"),
        (["eval", "clean.json"], 2, "say what PRED is scored by: --truth GT, or --sets SETS"),
        (["eval", "clean.json", "--truth", "gt.json", "-k", "3"], 2, "-k is about similar frames; say which by --sets"),
        (
            ["eval", "clean.json", "--truth", "gt.json", "--sets", "x.json", "--labels", "x.json"],
            2,
            "--truth is for files with a ground truth; leave it out beside --sets",
        ),
        (["eval", "clean.json", "--sets", "gt.json", "--labels", "gt.json"], 3, "error[F28]"),
    ],
)
def test_invalid_input_is_explained(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    code: int,
    message: str,
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["jostle", *words])
    assert _run() == code  # in this process: starting one for each case takes minutes
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


def test_several_subsets_need_a_choice(folder: Path, tmp_path: Path) -> None:
    content = json.loads((folder / "gt.json").read_text())
    content["database"]["v00"]["subset"] = "Validation"
    (tmp_path / "both.json").write_text(json.dumps(content))
    result = run("eval", folder / "clean.json", "--truth", tmp_path / "both.json")
    assert result.returncode == 3
    assert "holds several subsets: Validation (1 videos), Test (11 videos); name one with --subset" in result.stderr


def test_eval_of_proposals_and_video_classes(folder: Path, tmp_path: Path) -> None:
    words = ("--truth", folder / "gt.json", "--task")
    payload = json.loads(run("eval", folder / "clean.json", *words, "proposals", "--json").stdout)
    assert len(payload["average_recall"]) == 100
    assert 0 < payload["area"] < 1
    assert "area under the curve" in run("eval", folder / "clean.json", *words, "proposals").stdout
    labels = {
        f"v{i:02d}": [{"label": name, "score": 0.9 - 0.1 * j} for j, name in enumerate(CLASSES)] for i in range(12)
    }
    (tmp_path / "labels.json").write_text(json.dumps({"version": "1", "results": labels, "external_data": {}}))
    payload = json.loads(run("eval", tmp_path / "labels.json", *words, "classification", "--json").stdout)
    assert (payload["videos"], payload["hit_at_k"], payload["average_hit_at_k"]) == (12, 1.0, 1.0)
    assert "hit@3" in run("eval", tmp_path / "labels.json", *words, "classification").stdout


def test_pm_k_merges_the_classes_of_imagenet(tmp_path: Path) -> None:
    rows = np.zeros((2, 1000))
    rows[:, 404] = 1  # airplane, class 0 of ImageNet-Vid
    np.savez(tmp_path / "scores.npz", frames=["v/1.jpg", "v/2.jpg"], logits=rows)
    (tmp_path / "sets.json").write_text(json.dumps({"v/1.jpg": ["v/2.jpg"]}))
    (tmp_path / "labels.json").write_text(json.dumps({"v/1.jpg": [0], "v/2.jpg": [0]}))
    words = ("eval", "scores.npz", "--sets", "sets.json", "--labels", "labels.json", "--json")
    payload = json.loads(run(*words, "--project", "imagenet-vid", cwd=tmp_path).stdout)
    assert (payload["accuracy"], payload["pm_k"]) == (1.0, 1.0)
    assert json.loads(run(*words, cwd=tmp_path).stdout)["accuracy"] == 0.0
