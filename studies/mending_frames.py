"""Mending in front of detectors of frames: the shipped ones, by `jostle run puppets-c --mend` on all test films.

    python -m studies.mending_frames WORK study record [--jobs 12] [--device cuda]

A run folder for each of them lies in WORK. What is done already is skipped, and a run that was stopped goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jostle
from jostle.evaluation.recipes.recipe import CLEAN
from studies.detection import RECIPE, SHIPPED
from studies.end_to_end import score_cells
from studies.feature_states import AS_IS, KNOWN, MENDED, WAYS
from studies.harness import CORES, Grid, GridRun, Record, list_runs, run_module, run_study, summarise_cells
from studies.mending import draw_scores

DETECTORS = ("e2e_tad",)


@dataclass(frozen=True)
class FrameDetectorRun(GridRun):
    """Detector with its shipped weights, and the treatment of damaged frames."""

    detector: str
    weights: str
    way: str


def study() -> list[FrameDetectorRun]:
    """Return every run, clean weights first."""
    return list_runs(FrameDetectorRun, detector=DETECTORS, weights=SHIPPED, way=(AS_IS, MENDED, KNOWN))


def main() -> None:
    """Run the steps that are arguments."""
    steps = {"study": Grid(study, measure, partial(summarise_cells, key="scores"))}
    run_study(__doc__, "mending_frames", steps, jobs=CORES, device="auto", data=Path)


def measure(run: FrameDetectorRun, work: Path, jobs: int, device: str, data: Path | None) -> Record:
    """Run the benchmark in one way, and resample its films for intervals.

    Args:
        data: folder of other films than those of the benchmark.
    """
    out = work / run.folder
    other: dict[str, Any] = {} if data is None else {"dataset": "folder", "data": data}
    done = jostle.run(
        RECIPE.name,
        model=f"{run.detector}_puppets",
        weights=run.weights,
        mend=WAYS[run.way],
        out=out,
        jobs=jobs,
        device=device,
        **other,
    )
    assert not done.failures, done.failures
    values = {CLEAN: done.scores["clean"], **{cell["cell"]: cell["value"] for cell in done.scores["cells"]}}
    scores = score_cells(out)
    return {
        "films": done.scores["coverage"]["videos"],
        "metric": done.scores["metric"],
        "scores": {cell: round(value, 5) for cell, value in values.items()},
        "drawn": draw_scores(scores, sorted(scores[CLEAN].resamples.videos)),
        "inspector": jostle.load_inspector().fingerprint if run.way == MENDED else None,
    }


if __name__ == "__main__":
    run_module("studies.mending_frames")
