"""CPU time of a whole benchmark, estimated from a sample: `python -m bench.whole_benchmark`.

`jostle run kinetics400-p` on a few videos of ten seconds at 340 x 256, clean and in all 90 cells, with a model that has
the input of VideoMAE-B and costs next to nothing; CPU seconds of one process. The time for all videos of the data set
is extrapolated, not measured.
"""

from __future__ import annotations

import bench.one_thread  # noqa: F401  (first, before thread pools are loaded)

import platform
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import jostle
from bench.clips import frames_for
from bench.running import BrightnessModel
from bench.timing import finish, limit_threads, make_parser, time_call
from jostle.io.video.encode import Writer
from jostle.models.input_spec import InputSpec

BENCHMARK, VIDEOS = "kinetics400-p", 17_963
FRAMES, HEIGHT, WIDTH, FPS = 300, 256, 340, 30
SHORT = 20  # frames
SPEC = InputSpec(frames=16, stride=4, resize=256, size=224)


def write_dataset(folder: Path, count: int, length: int) -> str:
    """Write a data set of `count` videos, and return a description of the source of their frames."""
    frames, source = frames_for(length, HEIGHT, WIDTH)
    for number in range(count):
        path = folder / "test" / ("still", "moving")[number % 2] / f"{number}.mp4"
        path.parent.mkdir(parents=True, exist_ok=True)
        with Writer(path, size=(HEIGHT, WIDTH), fps=FPS) as writer:
            for frame in np.roll(frames, number, 2):
                writer.write(frame)
    return source


def main(arguments: Sequence[str] | None = None) -> int:
    """Print CPU seconds a video and the extrapolation, and return the exit code."""
    parser = make_parser(__doc__)
    parser.add_argument("--videos", type=int, default=3)
    options = parser.parse_args(arguments)
    limit_threads()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def run(part: str) -> None:
            settings: dict[str, Any] = {"dataset": "folder", "subset": "test", "spec": SPEC}
            out, model = folder / f"{part}-run", BrightnessModel()
            jostle.run(BENCHMARK, model=model, data=folder / part, out=out, jobs=1, device="cpu", **settings)

        write_dataset(folder / "warm", 2, SHORT)
        run("warm")  # compiles or loads kernels
        source = write_dataset(folder / "own", options.videos, FRAMES)
        seconds = time_call(lambda: run("own")) / options.videos
    size = f"{options.videos} videos of {FRAMES} frames, {WIDTH} x {HEIGHT}"
    print(f"{platform.machine()}, {source}; {size}, {BENCHMARK}")
    print(f"{seconds:.2f} CPU seconds a video; {VIDEOS:,} of them would take {seconds * VIDEOS / 3600:.0f} core-hours")
    return finish(options, {"seconds_a_video": seconds, "videos": options.videos})


if __name__ == "__main__":
    sys.exit(main())
