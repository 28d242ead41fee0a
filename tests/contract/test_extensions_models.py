"""Extensions of examples/extensions, by command line in processes of their own: a corruption, and networks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from safetensors.numpy import save_file

import jostle
from helpers.numpy_extractor import write_video

EXTENSIONS = Path(__file__).resolve().parents[2] / "examples" / "extensions"
TRAINING = """
detector = "pointwise"
chosen_by = "map@0.5"
device = "cpu"

[settings]
normaliser = 5

[data]
features = "features"
truth = "data/truth.json"
train = "test"
select = 0.4

[optimiser]
epochs = 2
warmup_epochs = 1
batch = 2
"""
RECIPE = """
name = "tiny-c"
version = 1
dataset = "folder"
subset = "test"
task = "{task}"
metric = "{metric}"
{more}

[[groups]]
name = "main"
cells = ["dim_rows:3", "freeze:3"]
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with short videos, with actions for detection, and in folders by class for recognition."""
    place = tmp_path_factory.mktemp("extensions")
    database = {}
    for i in range(5):
        (place / "clips" / "test" / "ab"[i % 2]).mkdir(parents=True, exist_ok=True)
        (place / "data").mkdir(exist_ok=True)
        write_video(place / "data" / f"v{i}.mkv", 60, seed=i)
        write_video(place / "clips" / "test" / "ab"[i % 2] / f"c{i}.mkv", 24, seed=i)
        actions = [{"label": label, "segment": [0.2 + k, 0.9 + k], "label_id": k} for k, label in enumerate("ab")]
        database[f"v{i}"] = {"subset": "test", "duration": 2.4, "fps": 25.0, "annotations": actions}
    (place / "data" / "truth.json").write_text(json.dumps({"database": database}))
    (place / "training.toml").write_text(TRAINING)
    detection = RECIPE.format(task="detection", metric="mean_ap", more='protocol = "thumos14"\ntious = [0.5]')
    (place / "detection.toml").write_text(detection)
    (place / "recognition.toml").write_text(RECIPE.format(task="recognition", metric="top_k_accuracy", more="k = 1"))
    return place


def run(place: Path, *words: object, imports: tuple[str, ...], code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command that has only the extensions to import from, and the modules that it names."""
    environment = os.environ | {"PYTHONPATH": str(EXTENSIONS)}
    options = [word for name in imports for word in ("--import", name)]
    command = [sys.executable, "-m", "jostle", *map(str, words), *options]
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done


def test_every_extension_imports_from_jostle_extend_alone() -> None:
    for path in EXTENSIONS.glob("*.py"):
        lines = [line for line in path.read_text().splitlines() if "jostle" in line and "import" in line.split('"')[0]]
        assert lines, path
        assert all(line.startswith("from jostle.extend import ") for line in lines), path


def test_own_corruption(place: Path) -> None:
    words = ("corrupt", "data/v0.mkv", "-c", "dim_rows:3", "--lossless", "-o", "dimmed.mkv")
    run(place, *words, imports=("dim_rows",))
    clean, dimmed = jostle.read(place / "data/v0.mkv").frames, jostle.read(place / "dimmed.mkv").frames
    assert np.array_equal(dimmed[:, 1::2], clean[:, 1::2])
    assert np.array_equal(dimmed[:, ::2], np.maximum(clean[:, ::2].astype(int) - 40, 0))


def test_own_extractor_and_detector_from_features_to_scores(place: Path) -> None:
    own = ("mean_features", "pointwise", "dim_rows")
    extracted = ("extract", "data", "--extractor", "mean_features", "--weights", "random", "-o", "features", "-j", 2)
    run(place, *extracted, imports=own)
    origin = json.loads((place / "features" / "features.json").read_text())
    assert "mean_features" in json.dumps(origin)
    run(place, "train", "training.toml", "-o", "trained", imports=own)
    weights = place / "trained" / "last.safetensors"
    model = ("--model", "pointwise", "--weights", weights)
    run(place, "detect", "features", "--detector", "pointwise", "--weights", weights, "-o", "found.json", imports=own)
    assert set(json.loads((place / "found.json").read_text())["results"]) == {f"v{i}" for i in range(5)}
    options = ("--extractor", "mean_features", "--extractor-weights", "random", "--data", "data", "-j", 2)
    run(place, "run", "detection.toml", *model, *options, "--device", "cpu", "-o", "detection", imports=own)
    scores = json.loads((place / "detection" / "scores.json").read_text())
    assert [cell["videos"] for cell in scores["cells"]] == [5, 5]
    by_whom = {part["name"]: part for part in json.loads((place / "detection" / "run.json").read_text())["parts"]}
    assert {"mean_features", "pointwise", "dim_rows"} <= set(by_whom)


def test_own_recogniser_in_a_run_of_two_workers(place: Path) -> None:
    rng = np.random.default_rng(0)
    tensors = {"2.weight": rng.normal(size=(2, 3)).astype("f4"), "2.bias": np.zeros(2, "f4")}
    save_file(tensors, place / "mean_colour.safetensors")
    model = ("--model", "mean_colour", "--weights", "mean_colour.safetensors", "--data", "clips", "-j", 2)
    run(place, "run", "recognition.toml", *model, "-o", "recognition", imports=("mean_colour", "dim_rows"))
    scores = json.loads((place / "recognition" / "scores.json").read_text())
    assert [cell["videos"] for cell in scores["cells"]] == [5, 5]


@pytest.mark.parametrize(
    ("load", "name"),
    [("load_recogniser", "puppet_c3d"), ("load_extractor", "puppet_net"), ("load_detector", "actionformer_puppets")],
)
def test_weights_that_mean_nothing_load_everywhere_and_are_the_same_every_time(load: str, name: str) -> None:
    first, second = (getattr(jostle, load)(name, weights="random") for _ in range(2))
    tensors = [getattr(model, "network", model).state_dict() for model in (first, second)]
    assert tensors[0].keys() == tensors[1].keys()
    assert all(np.array_equal(tensors[0][key], tensors[1][key]) for key in tensors[0])
