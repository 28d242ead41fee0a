"""Corrupt every video under a folder: python examples/corrupt_folder.py VIDEOS OUT SPEC [SEED]

Videos that exist already are skipped, so that an interrupted run continues. A video that cannot be used is reported and
set aside; the exit code is then 4.
"""

from __future__ import annotations

import sys
from pathlib import Path

import jostle
from jostle.extend import file_name_for, find_videos


def main(videos: str, out: str, spec: str, seed: str = "0") -> int:
    """Corrupt all videos; return 0 if none was set aside, otherwise 4."""
    target = Path(out)
    target.mkdir(parents=True, exist_ok=True)
    sources = find_videos(videos)
    set_aside = 0
    for video_id, path in sources.items():
        copy = target / file_name_for(video_id, ".mkv")
        if copy.exists():
            print(f"{video_id}: already there")
            continue
        try:
            result = jostle.corrupt_file(path, spec, copy, seed=int(seed), video_id=video_id, lossless=True)
        except jostle.JostleError as error:
            print(f"{video_id}: set aside: {error}", file=sys.stderr)
            set_aside += 1
        else:
            print(f"{video_id}: {result.damaged} of {result.frames} frames corrupted")
    for warning in sources.warnings:
        print(warning, file=sys.stderr)
    return 4 if set_aside else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
