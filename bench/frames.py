"""Cost of reading a folder of images as a video, compared with `cv2.imread`: `python -m bench.frames`.

The peer is a loop of `cv2.imread` over the sorted paths. Ours opens the folder, which lists it, reads every header and
computes timestamps, reads all frames by `Reader.block` in blocks of 32, and checks for changes of files at the end.
Both run on one thread, alternately, and the cached scan of the folder is dropped each time. Pixels are compared first.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from bench.clips import drawn_frames
from bench.timing import compare, finish, limit_threads, make_parser
from jostle.io.video import decode
from jostle.io.video.decode import Reader

FRAMES, BLOCK = 300, 32
SIZES = ((256, 340), (720, 1280))  # (height, width): of raw frames of data sets, and of cameras
MAX_RATIO = 1.3


def make_folder(folder: Path, ending: str, size: tuple[int, int]) -> list[str]:
    """Write images of moving discs with a little noise, and return their paths in order."""
    folder.mkdir()
    loop = drawn_frames(50, *size)
    noise = np.random.default_rng(0).integers(-6, 7, (*size, 3), np.int16)
    paths = []
    for number in range(FRAMES if size == SIZES[0] else FRAMES // 5):
        frame = np.clip(loop[number % len(loop)] + np.roll(noise, number, axis=1), 0, 255).astype(np.uint8)
        paths.append(str(folder / f"img_{number + 1:05d}{ending}"))
        cv2.imwrite(paths[-1], frame[..., ::-1])
    return paths


def read_images(paths: Sequence[str]) -> None:
    """Decode every file by OpenCV and drop it."""
    for path in paths:
        cv2.imread(path)


def read_video(folder: Path) -> None:
    """Read every frame of a folder as a video."""
    decode._scans.clear()
    with Reader(folder, threads=1, fps=30) as reader:
        for lo in range(0, len(reader), BLOCK):
            reader.block(lo, min(lo + BLOCK, len(reader)))


def check(folder: Path, paths: Sequence[str]) -> None:
    """Compare pixels of the two ways of reading."""
    with Reader(folder, fps=30) as reader:
        for number in (0, len(paths) // 2, len(paths) - 1):
            assert (reader.frame(number) == cv2.imread(paths[number])[..., ::-1]).all()


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the cost of each kind of folder, and return the exit code."""
    parser = make_parser(__doc__, strict=f"exit with 1 above {MAX_RATIO}")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--clock", choices=("cpu", "wall"), default="cpu")
    options = parser.parse_args(arguments)
    limit_threads()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as root:
        for size in SIZES:
            for ending in (".jpg", ".png"):
                folder = Path(root, f"{size[0]}{ending[1:]}")
                paths = make_folder(folder, ending, size)
                check(folder, paths)
                read_images(paths)
                times = compare(
                    partial(read_video, folder),
                    partial(read_images, paths),
                    repeats=options.repeats,
                    clock=options.clock,
                )
                per_frame = 1000 / len(paths)
                row = {"what": f"{size[1]}x{size[0]} {ending[1:]}", "frames": len(paths)}
                row |= {"bare_ms": per_frame * times.peer, "ours_ms": per_frame * times.ours, "ratio": 1 / times.ratio}
                rows.append(row)
                print(f"{row['what']}: cv2.imread {row['bare_ms']:.3f} ms a frame, as a video {row['ours_ms']:.3f} ms, "
                      f"{row['ratio']:.2f} times")  # fmt: skip
    numbers = {"format": 1, "most": MAX_RATIO, "rows": rows}
    return finish(options, numbers, missed=any(row["ratio"] > MAX_RATIO for row in rows))


if __name__ == "__main__":
    sys.exit(main())
