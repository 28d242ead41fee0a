"""What reading a folder of images as a video costs beside decoding the same files bare: `python -m bench.frames`.

Bare is a loop of `cv2.imread` over the sorted paths. Ours is opening the folder, which lists it, reads every header and
works out the times, reading all frames by `Reader.block` in blocks of 32, and looking at the end for changes.
Both on one thread, by turns; each turn of ours forgets what it knew of the folder. Pixels are compared first.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

from bench.clips import drawn_frames
from bench.timing import by_turns, finish, hold_to_one_thread, make_parser
from jostle.io.video import decode
from jostle.io.video.decode import Reader

FRAMES, BLOCK = 300, 32
SIZES = ((256, 340), (720, 1280))  # (height, width): of rawframes as they are kept, and of what cameras give
MOST = 1.3


def make_folder(folder: Path, ending: str, size: tuple[int, int]) -> list[str]:
    """Write images of moving discs with a little noise; their paths, in order."""
    folder.mkdir()
    loop = drawn_frames(50, *size)
    grain = np.random.default_rng(0).integers(-6, 7, (*size, 3), np.int16)
    paths = []
    for number in range(FRAMES if size == SIZES[0] else FRAMES // 5):
        frame = np.clip(loop[number % len(loop)] + np.roll(grain, number, axis=1), 0, 255).astype(np.uint8)
        paths.append(str(folder / f"img_{number + 1:05d}{ending}"))
        cv2.imwrite(paths[-1], frame[..., ::-1])
    return paths


def read_bare(paths: Sequence[str]) -> None:
    """Decode every file and drop it."""
    for path in paths:
        cv2.imread(path)


def read_ours(folder: Path) -> None:
    """Read every frame of the folder as of a video."""
    decode._scans.clear()
    with Reader(folder, threads=1, fps=30) as reader:
        for lo in range(0, len(reader), BLOCK):
            reader.block(lo, min(lo + BLOCK, len(reader)))


def check(folder: Path, paths: Sequence[str]) -> None:
    """Fail unless both give the same pixels."""
    with Reader(folder, fps=30) as reader:
        for number in (0, len(paths) // 2, len(paths) - 1):
            assert (reader.frame(number) == cv2.imread(paths[number])[..., ::-1]).all()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and say what was found."""
    parser = make_parser(__doc__, strict=f"exit with 1 above {MOST}")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--clock", choices=("cpu", "wall"), default="cpu")
    asked = parser.parse_args(arguments)
    hold_to_one_thread()
    rows = []
    with tempfile.TemporaryDirectory() as place:
        for size in SIZES:
            for ending in (".jpg", ".png"):
                folder = Path(place, f"{size[0]}{ending[1:]}")
                paths = make_folder(folder, ending, size)
                check(folder, paths)
                read_bare(paths)
                found = by_turns(
                    lambda folder=folder: read_ours(folder),
                    lambda paths=paths: read_bare(paths),
                    repeats=asked.repeats,
                    clock=asked.clock,
                )
                assert found.peer is not None
                assert found.ratio is not None
                row = {"what": f"{size[1]}x{size[0]} {ending[1:]}", "frames": len(paths)}
                row |= {"bare_ms": 1000 * found.peer / len(paths), "ours_ms": 1000 * found.ours / len(paths)}
                rows.append(row | {"ratio": 1 / found.ratio})
                print(f"{row['what']}: bare {row['bare_ms']:.3f} ms a frame, as a video {row['ours_ms']:.3f} ms, "
                      f"{rows[-1]['ratio']:.2f} times")  # fmt: skip
    return finish(
        asked, {"format": 1, "most": MOST, "rows": rows}, missed=any(float(row["ratio"]) > MOST for row in rows)
    )


if __name__ == "__main__":
    raise SystemExit(main())
