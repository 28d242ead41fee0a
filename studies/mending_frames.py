"""Mending in front of detectors of frames: the shipped ones, as `jostle run puppets-c --mend` looks at all test films.

    python -m studies.mending_frames WORK [--jobs 12] [--device cuda]

A run folder for each of them lies in WORK; a line of `frames.jsonl` there is what one has come to. What is done
already is skipped, and a run that was stopped goes on.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import jostle
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.recipes.selection import select_cells
from studies.detection import RECIPE, SHIPPED, TIOUS
from studies.harness import CORES, GridRun, Record, finish, parse_arguments, run_grid
from studies.mending import draw_scores
from studies.mending_features import AS_IS, KNOWN, MENDED

DETECTORS = ("e2e_tad",)
CELLS = tuple(select_cells(RECIPE))
MEND = {AS_IS: None, MENDED: "jostle", KNOWN: "known"}


@dataclass(frozen=True)
class Run(GridRun):
    """A detector with its shipped weights, and what is done about struck frames."""

    detector: str
    weights: str
    way: str


def study() -> list[Run]:
    """Every run, clean weights first."""
    return [Run(name, weights, way) for name in DETECTORS for weights in SHIPPED for way in MEND]


def main() -> None:
    arguments = parse_arguments(__doc__, jobs=CORES, device="auto", data=Path)
    how = {"jobs": arguments.jobs, "device": arguments.device}
    if arguments.data is not None:
        how |= {"dataset": "folder", "data": arguments.data}
    look = partial(measure, work=arguments.work, how=how)
    finish(run_grid(study(), look, arguments.work / "frames.jsonl", at_once=1, summarise=summarise))


def summarise(record: Record) -> str:
    """Return the clean and the corrupted score of a run, to be printed."""
    struck = [value for cell, value in record["scores"].items() if cell != CLEAN]
    return f"clean {100 * record['scores'][CLEAN]:.2f} corrupted {100 * np.mean(struck):.2f}"


def measure(run: Run, work: Path, how: dict[str, Any]) -> Record:
    """What the benchmark says of one; and the draws of films that intervals are made of, from its predictions.

    Args:
        how: what else `jostle.run` is told.
    """
    begin = time.monotonic()
    model, out = f"{run.detector}_puppets", work / run.folder
    told = jostle.run(RECIPE.name, model=model, weights=run.weights, mend=MEND[run.way], out=out, **how)
    assert not told.failures, told.failures
    found = {cell.name: jostle.load_predictions(out / "predictions" / f"{cell.slug}.json") for cell in CELLS}
    films = sorted(set(found[CLEAN].videos))
    truth = jostle.load_truth(out / "truth.json", protocol="thumos14").of_videos(films)
    scored = {cell: jostle.score(one, truth, protocol="thumos14", tious=TIOUS) for cell, one in found.items()}
    values = {CLEAN: told.scores["clean"], **{cell["cell"]: cell["value"] for cell in told.scores["cells"]}}
    return {
        "run": asdict(run),
        "films": told.scores["coverage"]["videos"],
        "metric": told.scores["metric"],
        "scores": {cell: round(value, 5) for cell, value in values.items()},
        "drawn": draw_scores(scored, films),
        "inspector": jostle.load_inspector().fingerprint if run.way == MENDED else None,
        "seconds": round(time.monotonic() - begin, 1),
    }


if __name__ == "__main__":
    from studies import mending_frames  # by this name worker processes find it

    mending_frames.main()
