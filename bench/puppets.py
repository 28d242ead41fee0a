"""What films and FrameDrop cost: `python -m bench.puppets`.

How many frames a second one core draws and encodes, and what an epoch of training costs when frames are dropped anew,
beside one that drops the same frames every time and one that drops none.
"""

from __future__ import annotations

import bench.one_thread  # noqa: F401  (first, before thread pools are loaded)

import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import jostle
from bench.timing import finish, hold_to_one_thread, make_parser
from jostle.core.config import make_settings
from jostle.datasets.puppets.film import FPS, SIZE, untrimmed
from jostle.datasets.puppets.parameters import CASTS, video_id
from jostle.io.video.encode import Writer
from jostle.training.detection_config import TrainingConfig
from jostle.training.loop import Trainer

QUALITY = 20
WIDTH, SEEN = 128, 160
FRAMES, ACTIONS_S = 1560, ((5.0, 9.0), (20.0, 23.0), (33.0, 40.0), (51.0, 53.0), (58.0, 61.0))


def films(count: int) -> dict[str, float]:
    """Frames a second of one core: planned and drawn, and written as H.264 as well."""
    untrimmed(0, "warm", cast=CASTS["test"]).draw(0, 8)
    drawn = written = frames = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(1, count + 1):
            begun = time.process_time()
            film = untrimmed(0, video_id("test", number), cast=CASTS["test"])
            pictures = film.draw(0, film.frames)
            drawn += time.process_time() - begun
            begun = time.process_time()
            with Writer(Path(folder) / "film.mp4", size=SIZE, fps=FPS, quality=QUALITY) as writer:
                for tick, picture in enumerate(pictures):
                    writer.write(picture, tick)
            written += time.process_time() - begun
            frames += film.frames
    return {"films": count, "drawn": frames / drawn, "drawn and encoded": frames / (drawn + written)}


def epochs(videos: int) -> dict[str, float]:
    """Seconds of the fastest of four epochs, by what is dropped; features are made up, which changes no time."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_world(folder, videos)
        return {what: epoch(folder, folder / f"run {what}", drop) for what, drop in DROPS.items()}


DROPS: dict[str, dict[str, object]] = {
    "none": {},
    "fixed": {"corrupted": "black"},
    "fresh": {"drop": {"struck": "black"}},
}


def epoch(folder: Path, out: Path, changes: dict[str, object]) -> float:
    data: dict[str, object] = {"features": str(folder / "clean"), "truth": str(folder / "truth.json")}
    for key, value in changes.items():
        data[key] = str(folder / value) if isinstance(value, str) else {"struck": str(folder / "black")}
    content = {
        "detector": "temporalmaxer_puppets",
        "data": {**data, "train": "training"},
        "optimiser": {"warmup_epochs": 1, "epochs": 4, "batch": 8},
        "device": "cpu",
    }
    trainer = Trainer(make_settings(TrainingConfig, content), out)
    taken: list[float] = []
    trainer.run(lambda step, total: taken.append(time.process_time()))
    ends = taken[trainer.steps_an_epoch - 1 :: trainer.steps_an_epoch]
    return float(np.diff(ends).min())  # the first epoch warms up, and is not among them


def write_world(folder: Path, videos: int) -> None:
    """Features and sights of made-up videos as long as those of the data set."""
    rng = np.random.default_rng(0)
    rows = (FRAMES - 16) // 4 + 1
    database = {}
    for number in range(videos):
        name = f"video{number}"
        for which in ("clean", "black"):
            (folder / which / "frames").mkdir(parents=True, exist_ok=True)
            np.save(folder / which / f"{name}.npy", rng.standard_normal((rows, WIDTH), np.float32))
            np.save(folder / which / "frames" / f"{name}.npy", rng.standard_normal((FRAMES, SEEN), np.float32))
        annotations = [{"label": "bow", "label_id": 0, "segment": list(span)} for span in ACTIONS_S]
        database[name] = {"subset": "training", "fps": 24, "duration": FRAMES / 24, "annotations": annotations}
    (folder / "truth.json").write_text(json.dumps({"version": "1", "database": database}))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--films", type=int, default=5)
    parser.add_argument("--videos", type=int, default=48, help="of the epoch")
    given = parser.parse_args(arguments)
    hold_to_one_thread()
    made = films(given.films)
    print(f"{made['films']} films: {made['drawn']:,.0f} frames/s drawn, {made['drawn and encoded']:,.0f} with H.264")
    took = epochs(given.videos)
    for what, seconds in took.items():
        print(
            f"an epoch of {given.videos} videos, drop {what}: {seconds:.2f} s, {seconds / took['fixed']:.2f} of fixed"
        )
    finish(given, {"jostle": jostle.__version__, "films": made, "epochs": took})


if __name__ == "__main__":
    main()
