"""Train a detector clean and robust, in seconds and on a CPU: python examples/train_small_detector.py [FOLDER]

Generates a small set of features, trains one detector on clean features and another on features with blacked-out frames
too, and prints the scores of both on held-out videos. With a FOLDER all files are kept there: features, truth.json,
clean.toml and robust.toml for `jostle train`, the two runs and their predictions. Replace the features by your own.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

import jostle
from jostle.extend import write_predictions

CLASSES = ("Jump", "Run", "Throw")
FPS, STRIDE, WINDOW = 25.0, 4, 16  # a row every 4 frames, each of which has seen 16
STEPS, WIDTH = 128, 16
LEARN, TEST = 48, 16  # videos
Features = npt.NDArray[np.float32]

CLEAN = """\
detector = "temporalmaxer"
chosen_by = "map@0.5"
device = "cpu"

[settings]
input_dim = 16
dim = 32
classes = 3
max_length = 128
levels = 5
normaliser = 20

[data]
features = "clean"
truth = "truth.json"
train = "validation"
select = 0.2

[optimiser]
lr = 5e-3
warmup_epochs = 1
epochs = 9
batch = 4
average = 0.95
"""
ROBUST = (
    CLEAN.replace('features = "clean"\n', 'features = "clean"\ncorrupted = "dropped"\n')
    + """
[consistency]
weight = 0.3
"""
)


def black(features: Features, frame: int) -> None:
    """Black out a frame: every row whose window contains it becomes the feature of black frames."""
    first = np.arange(len(features)) * STRIDE
    features[(first <= frame) & (frame < first + WINDOW)] = -1.0


def make_video(rng: np.random.Generator) -> tuple[Features, list[tuple[int, int, int]]]:
    """Return features, and (first frame, last frame, class) of the actions; a class is a direction in feature space."""
    directions = np.linalg.qr(np.random.default_rng(7).standard_normal((WIDTH, WIDTH)))[0].astype(np.float32)
    features = 0.35 * rng.standard_normal((STEPS, WIDTH)).astype(np.float32)
    actions = []
    for part in range(3):
        label = int(rng.integers(len(CLASSES)))
        length = int(rng.integers(8, 30))
        start = part * 42 + int(rng.integers(2, 40 - length))
        features[start : start + length] += 1.5 * directions[label]
        first, last = (step * STRIDE + WINDOW // 2 for step in (start, start + length))
        actions.append((first, last, label))
    return features, actions


def write_dataset(folder: Path) -> None:
    """Write features: clean, with frames dropped at random, and with black frames in the middle of actions."""
    for state in ("clean", "dropped", "corrupted"):
        (folder / state).mkdir(parents=True, exist_ok=True)
    database = {}
    for i in range(LEARN + TEST):
        rng = np.random.default_rng(i)
        name = f"video{i:02d}"
        features, actions = make_video(rng)
        dropped, corrupted = features.copy(), features.copy()
        before = 0
        for first, last, _ in actions:
            black(dropped, int(rng.integers(before, last)))  # one frame of the background before and of the action
            black(corrupted, (first + last) // 2)
            before = last
        for state, array in (("clean", features), ("dropped", dropped), ("corrupted", corrupted)):
            np.save(folder / state / f"{name}.npy", array)
        database[name] = {
            "subset": "validation" if i < LEARN else "test",
            "duration": ((STEPS - 1) * STRIDE + WINDOW) / FPS,
            "fps": FPS,
            "annotations": [
                {"label": CLASSES[label], "label_id": label, "segment": [first / FPS, last / FPS]}
                for first, last, label in actions
            ],
        }
    (folder / "truth.json").write_text(json.dumps({"version": "1", "database": database}), encoding="utf-8")
    (folder / "clean.toml").write_text(CLEAN, encoding="utf-8")
    (folder / "robust.toml").write_text(ROBUST, encoding="utf-8")


def main(folder: str | None = None) -> None:
    """Print average mAP of both detectors on clean and on corrupted test videos."""
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(folder or temporary)
        write_dataset(work)
        with contextlib.chdir(work):  # paths in the settings are relative to it
            print("training   clean videos  corrupted videos")
            for name in ("clean", "robust"):
                print(f"{name:10} {'  '.join(train_and_score(name))}")


def train_and_score(name: str) -> list[str]:
    """Train with the settings of `name`.toml, and return the scores of its predictions on test videos."""
    truth = jostle.load_truth("truth.json", subset="test")
    run = jostle.train(f"{name}.toml", f"{name}-run")
    detector = jostle.load_detector("temporalmaxer", weights=run.weights)
    averages = []
    for state in ("clean", "corrupted"):
        predictions = jostle.detect(state, detector, truth=truth)
        write_predictions(predictions, f"{name}-on-{state}.json")
        averages.append(f"{100 * jostle.score(predictions, truth, protocol='thumos14').average_map:12.1f}")
    return averages


if __name__ == "__main__":
    torch.set_num_threads(1)  # more threads slow down a network this small
    main(*sys.argv[1:])
