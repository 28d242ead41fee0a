"""Cost of generating films and of FrameDrop: `python -m bench.puppets`.

The frames a second that one core draws and encodes, and the time of an epoch of training with a new random drop of
frames in every epoch, compared with a fixed drop and with none.
"""

from __future__ import annotations

import bench.one_thread  # noqa: F401  (first, before thread pools are loaded)

import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import jostle
from bench.timing import finish, limit_threads, make_parser
from jostle.core.settings import make_settings
from jostle.datasets.puppets.film import FPS, SIZE, untrimmed
from jostle.datasets.puppets.parameters import CASTS, video_id
from jostle.io.video.encode import Writer
from jostle.training.detection_config import TrainingConfig
from jostle.training.loop import Trainer

QUALITY = 20
WIDTH, FRAME_WIDTH = 128, 160  # dimensions of features of windows and of frames
FRAMES, ACTIONS_S = 1560, ((5.0, 9.0), (20.0, 23.0), (33.0, 40.0), (51.0, 53.0), (58.0, 61.0))


def measure_films(count: int) -> dict[str, float]:
    """Return the frames a second of one core: planned and drawn, and encoded as H.264 as well."""
    untrimmed(0, "warm", cast=CASTS["test"]).draw(0, 8)
    draw_s = encode_s = frames = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(1, count + 1):
            start = time.process_time()
            film = untrimmed(0, video_id("test", number), cast=CASTS["test"])
            pictures = film.draw(0, film.frames)
            draw_s += time.process_time() - start
            start = time.process_time()
            with Writer(Path(folder) / "film.mp4", size=SIZE, fps=FPS, quality=QUALITY) as writer:
                for t, picture in enumerate(pictures):
                    writer.write(picture, t)
            encode_s += time.process_time() - start
            frames += film.frames
    return {"films": count, "drawn": frames / draw_s, "drawn and encoded": frames / (draw_s + encode_s)}


def measure_epochs(videos: int) -> dict[str, float]:
    """Return the seconds of the fastest of four epochs for each kind of drop, on random features."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_features(folder, videos)
        black = str(folder / "black")
        drops: dict[str, dict[str, Any]] = {
            "none": {},
            "fixed": {"corrupted": black},
            "fresh": {"drop": {"struck": black}},
        }
        return {kind: time_epoch(folder, folder / f"run {kind}", drop) for kind, drop in drops.items()}


def time_epoch(folder: Path, out: Path, drop: dict[str, Any]) -> float:
    """Return the CPU seconds of the fastest epoch after the first, which warms up."""
    data = {"features": str(folder / "clean"), "truth": str(folder / "truth.json"), "train": "training"}
    content = {
        "detector": "temporalmaxer_puppets",
        "data": data | drop,
        "optimiser": {"warmup_epochs": 1, "epochs": 4, "batch": 8},
        "device": "cpu",
    }
    trainer = Trainer(make_settings(TrainingConfig, content), out)
    step_ends: list[float] = []
    trainer.run(lambda step, total: step_ends.append(time.process_time()))
    epoch_ends = step_ends[trainer.steps_an_epoch - 1 :: trainer.steps_an_epoch]
    return float(np.diff(epoch_ends).min())


def write_features(folder: Path, videos: int) -> None:
    """Write random features of windows and frames, of videos as long as those of the data set, and annotations."""
    rng = np.random.default_rng(0)
    rows = (FRAMES - 16) // 4 + 1
    database = {}
    for number in range(videos):
        name = f"video{number}"
        for state in ("clean", "black"):
            (folder / state / "frames").mkdir(parents=True, exist_ok=True)
            np.save(folder / state / f"{name}.npy", rng.standard_normal((rows, WIDTH), np.float32))
            np.save(folder / state / "frames" / f"{name}.npy", rng.standard_normal((FRAMES, FRAME_WIDTH), np.float32))
        annotations = [{"label": "bow", "label_id": 0, "segment": list(span)} for span in ACTIONS_S]
        database[name] = {"subset": "training", "fps": 24, "duration": FRAMES / 24, "annotations": annotations}
    (folder / "truth.json").write_text(json.dumps({"version": "1", "database": database}))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the rates of films and the times of epochs, and return the exit code."""
    parser = make_parser(__doc__)
    parser.add_argument("--films", type=int, default=5)
    parser.add_argument("--videos", type=int, default=48, help="videos of an epoch")
    options = parser.parse_args(arguments)
    limit_threads()
    films = measure_films(options.films)
    print(f"{films['films']} films: {films['drawn']:,.0f} frames/s drawn, {films['drawn and encoded']:,.0f} with H.264")
    epochs = measure_epochs(options.videos)
    for kind, seconds in epochs.items():
        ratio = seconds / epochs["fixed"]
        print(f"an epoch of {options.videos} videos, drop {kind}: {seconds:.2f} s, {ratio:.2f} of fixed")
    return finish(options, {"jostle": jostle.__version__, "films": films, "epochs": epochs})


if __name__ == "__main__":
    sys.exit(main())
