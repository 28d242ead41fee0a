"""`jostle train` and `jostle detect` on the command line, from feature files to a score."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import jostle
from helpers.command_line import assert_refused, succeed
from helpers.small_world import write_world
from helpers.started import run
from jostle.evaluation.inference.feature_detection import FeatureGrid

CONFIG = """
detector = "temporalmaxer"
seed = 3
device = "cpu"
chosen_by = "map@0.5"

[settings]
input_dim = 8
dim = 16
classes = 2
max_length = 64
levels = 4
normaliser = 10

[data]
features = "clean"
truth = "truth.json"
train = "validation"
select = 0.2

[optimiser]
lr = 5e-3
warmup_epochs = 1
epochs = 12
average = 0.9
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with features, annotations and a detector trained on them."""
    folder = write_world(tmp_path_factory.mktemp("detecting") / "world")
    (folder / "run.toml").write_text(CONFIG)
    result = run("train", "run.toml", "-o", "run", "--json", cwd=folder)
    assert result.returncode == 0, result.stderr
    payload = json.loads(result.stdout)
    assert payload["weights"] == "run/best.safetensors"
    assert payload["score"] > 0.3
    return folder


def test_training_writes_its_files(trained: Path) -> None:
    names = {path.name for path in (trained / "run").iterdir()}
    assert names == {"best.safetensors", "last.safetensors", "checkpoint.safetensors", "log.jsonl", "train.json"}
    stored = json.loads((trained / "run" / "train.json").read_text())
    assert stored["config"]["optimiser"]["epochs"] == 12


DETECTOR = ("--detector", "temporalmaxer", "--weights", "run/best.safetensors")


def test_detect_and_evaluate(trained: Path) -> None:
    words = (*DETECTOR, "--truth", "truth.json", "--subset", "test")
    result = run("detect", "clean", *words, "-o", "found.json", cwd=trained)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == "found.json"
    assert "segments in 4 videos" in result.stderr
    score = ("eval", "found.json", "--truth", "truth.json", "--subset", "test", "--tiou", "0.5", "--json")
    assert succeed(*score, cwd=trained).json["average_map"] > 0.3
    succeed("detect", "rough", *words, "-o", "rough.csv", cwd=trained)


def test_single_feature_file_without_truth(trained: Path) -> None:
    words = ("detect", "clean/video13.npy", *DETECTOR)
    lines = succeed(*words, "--fps", 25, cwd=trained).out.splitlines()
    assert lines[0].split() == ["video", "start", "end", "score", "label"]
    assert lines[1].split()[0] == "video13"
    assert lines[1].split()[-1] in ("Jump", "Run")  # class names are stored with the weights
    payload = succeed(*words, "--fps", 25, "--json", cwd=trained).json
    assert len(payload["results"]["video13"]) == len(lines) - 1
    message = "video video13: its frame rate is not known; give --fps, or --truth"
    assert_refused(2, message, *words, cwd=trained)


def test_python_gives_the_same_detections(trained: Path) -> None:
    detector = jostle.load_detector("temporalmaxer", weights=trained / "run" / "best.safetensors")
    assert detector.config.class_names == ("Jump", "Run")
    predictions = jostle.detect(trained / "clean", detector, truth=trained / "truth.json", grid=FeatureGrid())
    assert len(predictions.videos) == 14
    features = np.load(trained / "clean" / "video13.npy")
    single = detector.detect(features, fps=25.0, duration=10.88)
    rows = predictions.video == predictions.videos.index("video13")
    assert predictions.start[rows].tolist() == single.start.tolist()
    assert {"cls", "offsets", "mask"} == set(detector.raw(features))


def test_video_scores_label_the_proposals(trained: Path) -> None:
    settings = ("settings.classes=1", "settings.resize=true", "optimiser.epochs=1")
    succeed("train", "run.toml", "-o", "agnostic", *settings, cwd=trained)
    scores = {f"video{i:02d}": [0.1, 0.9, 0.3] for i in range(14)}
    (trained / "scores.json").write_text(json.dumps({"results": scores, "class": ["Jump", "Run", "Throw"]}))
    words = ("detect", "clean", "--detector", "temporalmaxer", "--weights", "agnostic/best.safetensors")
    words += ("--fps", "25", "--video-scores", "scores.json", "--json")
    labels = {row["label"] for rows in succeed(*words, cwd=trained).json["results"].values() for row in rows}
    assert labels <= {"Run", "Throw"}  # the two best classes of the video


@pytest.mark.parametrize(
    ("code", "message", "words"),
    [
        (2, "none.toml: cannot be read", "train none.toml -o x"),
        (2, "optimizer: no such setting: did you mean optimiser?", "train run.toml -o x optimizer.lr=1"),
        (2, "would choose the model on the test set", "train run.toml -o x data.select=test"),
        (2, "did you mean tridet", "train run.toml -o x detector=tridett"),
        (6, "holds a run with other settings: seed was", "train run.toml -o run seed=9"),
        (3, "do not fit tridet", "detect clean --detector tridet --weights run/best.safetensors"),
        (3, "no such file or folder", "detect none --detector temporalmaxer --weights run/best.safetensors"),
        (3, "run.toml", "detect clean --detector temporalmaxer --weights run.toml"),
        (3, "error[F50]", "detect truth.json --detector temporalmaxer --weights run/best.safetensors --fps 25"),
    ],
)
def test_invalid_input_is_explained(trained: Path, code: int, message: str, words: str) -> None:
    assert_refused(code, message, *words.split(), cwd=trained)
