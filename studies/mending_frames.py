"""Mending in front of detectors of frames: the shipped ones, as `jostle run puppets-c --mend` looks at all test films.

    python -m studies.mending_frames WORK [--jobs 12] [--device cuda]

A run folder for each of them lies in WORK; a line of `frames.jsonl` there is what one has come to. What is done
already is skipped, and a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import jostle
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.recipes.selection import select_cells
from studies.cells import RECIPE
from studies.measuring import Record, end_with, measure_all
from studies.mending import drawn
from studies.mending_features import AS_IS, KNOWN, MENDED
from studies.puppets import SHIPPED
from studies.runs import TIOUS

DETECTORS = ("e2e_tad",)
CELLS = tuple(select_cells(RECIPE))
MEND = {AS_IS: None, MENDED: "jostle", KNOWN: "known"}


@dataclass(frozen=True)
class Run:
    """A detector with its shipped weights, and what is done about struck frames."""

    detector: str
    weights: str
    way: str

    @property
    def folder(self) -> str:
        return f"{self.detector} {self.weights} {self.way}".replace(" ", "-")


def study() -> list[Run]:
    """Every run, clean weights first."""
    return [Run(name, weights, way) for name in DETECTORS for weights in SHIPPED for way in MEND]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--data", type=Path, help="a folder with a few of the films, for a trial")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    how = {"jobs": given.jobs, "device": given.device}
    if given.data is not None:
        how |= {"dataset": "folder", "data": given.data}
    look = partial(measure, work=given.work, how=how)
    end_with(measure_all(study(), look, given.work / "frames.jsonl", at_once=1, said=said))


def said(record: Record) -> str:
    """The two numbers of a run that one looks at first."""
    struck = [value for cell, value in record["scores"].items() if cell != CLEAN]
    return f"clean {100 * record['scores'][CLEAN]:.2f} corrupted {100 * np.mean(struck):.2f}"


def measure(run: Run, work: Path, how: dict[str, Any]) -> Record:
    """What the benchmark says of one; and the draws of films that intervals are made of, from its predictions.

    Args:
        how: what else `jostle.run` is told.
    """
    begun = time.monotonic()
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
        "drawn": drawn(scored, films),
        "inspector": jostle.load_inspector().fingerprint if run.way == MENDED else None,
        "seconds": round(time.monotonic() - begun, 1),
    }


if __name__ == "__main__":
    from studies import mending_frames  # by this name worker processes find it

    mending_frames.main()
