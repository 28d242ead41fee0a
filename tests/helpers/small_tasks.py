"""The small benchmark of every task, and what its run folder holds; also as a program, to be killed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from helpers import small_objects, small_recognition, small_run
from jostle.evaluation.results.run import Run
from jostle.evaluation.run_folder.journal import VideoKept, read_events

TASKS = ("detection", "recognition", "frames", "objects")
FINAL = ("run.json", "scores.json", "failures.jsonl", "predictions")


def run(videos: dict[str, Path], out: Path, task: str, **options: Any) -> Run:
    if task == "detection":
        return small_run.run(videos, out, **options)
    if task == "objects":
        return small_objects.run(videos, out, **options)
    return small_recognition.run(videos, out, task=task, **options)


def content(folder: Path) -> dict[str, bytes]:
    """Read the bytes of every final file of a run."""
    files = [file for name in FINAL for file in ([*(folder / name).rglob("*")] or [folder / name])]
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def predicted_videos(folder: Path) -> list[str]:
    return [event.video for event in read_events(folder / "journal.jsonl") if isinstance(event, VideoKept)]


if __name__ == "__main__":
    source, target, jobs, task = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    delay = {"detection": {"delay_s": 0.02}, "objects": {}}.get(task, {"delay_s": 0.003})
    from helpers import small_tasks  # so that worker processes find the same module

    films = {name: source / f"{name}.mkv" for name in small_run.NAMES}
    small_tasks.run(films, target, task, jobs=jobs, **delay)
