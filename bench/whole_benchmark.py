"""What a whole benchmark takes on cores, by a sample: `python -m bench.whole_benchmark`.

`jostle run kinetics400-p` on a few videos of ten seconds at 340 x 256, clean and in all 90 cells, to a model that
wants what VideoMAE-B wants and costs next to nothing; CPU seconds of one process, which other programs do not disturb.
What that makes for all videos of the set is a product, not a measurement, and is printed as such.
"""

from __future__ import annotations

import bench.one_thread  # noqa: F401  (first, before thread pools are loaded)

import platform
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

import jostle
from bench.clips import frames_for
from bench.running import Glance
from bench.timing import finish, hold_to_one_thread, make_parser
from jostle.io.video.encode import Writer
from jostle.models.input_spec import InputSpec

BENCHMARK, VIDEOS = "kinetics400-p", 17_963
FRAMES, HEIGHT, WIDTH, FPS = 300, 256, 340, 30
SHORT = 20  # frames
SPEC = InputSpec(frames=16, stride=4, resize=256, size=224)


def written(folder: Path, count: int, length: int) -> str:
    """A data set of so many videos; where their frames are from."""
    frames, source = frames_for(length, HEIGHT, WIDTH)
    for number in range(count):
        path = folder / "test" / ("still", "moving")[number % 2] / f"{number}.mp4"
        path.parent.mkdir(parents=True, exist_ok=True)
        with Writer(path, size=(HEIGHT, WIDTH), fps=FPS) as writer:
            for frame in np.roll(frames, number, 2):
                writer.write(frame)
    return source


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = make_parser(__doc__)
    parser.add_argument("--videos", type=int, default=3)
    given = parser.parse_args(arguments)
    hold_to_one_thread()
    with tempfile.TemporaryDirectory() as name:
        taken = []
        # Kernels are loaded, or compiled, by short videos in all cells.
        for part, count, length in (("warm", 2, SHORT), ("own", given.videos, FRAMES)):
            data = Path(name) / part
            source = written(data, count, length)
            ways = {"dataset": "folder", "subset": "test", "spec": SPEC, "jobs": 1, "device": "cpu"}
            begun = time.process_time()
            jostle.run(BENCHMARK, model=Glance(), data=data, out=Path(name) / f"{part}-run", **ways)
            taken.append(time.process_time() - begun)
    each = taken[1] / given.videos
    print(f"{platform.machine()}, {source}; {given.videos} videos of {FRAMES} frames, {WIDTH} x {HEIGHT}, {BENCHMARK}")
    print(f"{each:.2f} CPU seconds a video; {VIDEOS:,} of them would take {each * VIDEOS / 3600:.0f} core-hours")
    return finish(given, {"seconds_a_video": each, "videos": given.videos})


if __name__ == "__main__":
    sys.exit(main())
