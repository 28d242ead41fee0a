"""What helps a recogniser on film: augmentation, test-time adaptation, mending, and some of them together.

    python -m studies.film_adaptation WORK study record --footage FOOTAGE

Takes the recognisers that `studies.film_recognition` trained in the same WORK. The benchmark is
`studies/film_adaptation.toml`: four corruptions of whole clips, and two in the central half of a clip.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jostle
from studies.film_recognition import OWN, FilmRun
from studies.harness import STUDIES, GridRun, Record, finish, parse_arguments, read_records, run_grid

STEPS = ("study", "record")
RECIPE = STUDIES / "film_adaptation.toml"
RESULTS = STUDIES / "film_adaptation.jsonl"
PUPPETS = STUDIES / "puppet_adaptation.jsonl"  # the same of `puppet_c3d` on 128 clips of puppets
SEEDS = (0, 1, 2)
SOURCE = "ucf10/train"  # clean videos whose statistics some methods need
WAYS: dict[str, dict[str, Any]] = {
    "as is": {},
    "bn, episodic": {"adapt": "bn"},
    "bn, online": {"adapt": "bn", "adapt_protocol": "online"},
    "tent, episodic": {"adapt": "tent"},
    "tent, online": {"adapt": "tent", "adapt_protocol": "online"},
    "eata, online": {"adapt": "eata", "adapt_protocol": "online", "adapt_source": SOURCE},
    "sar, online": {"adapt": "sar", "adapt_protocol": "online"},
    "vitta, online": {"adapt": "vitta", "adapt_protocol": "online", "adapt_source": SOURCE},
    "mended": {"mend": "jostle"},
    "mended, bn, episodic": {"mend": "jostle", "adapt": "bn"},
}
FEW = ("as is", "bn, episodic", "mended", "mended, bn, episodic")  # ways of the network that learned from corruptions
read_results = partial(read_records, RESULTS)
read_puppets = partial(read_records, PUPPETS)


@dataclass(frozen=True)
class AdaptationRun(GridRun):
    """A trained recogniser, run in a way."""

    treatment: str
    way: str
    seed: int


def ways() -> list[tuple[str, str]]:
    """Return every way of the clean network, and some of the one that learned from a mix of corruptions."""
    return [("clean", way) for way in WAYS] + [("mix", way) for way in FEW]


def study_runs() -> list[AdaptationRun]:
    """Return every run."""
    return [AdaptationRun(treatment, way, seed) for seed in SEEDS for treatment, way in ways()]


def main() -> None:
    """Do the steps that are arguments."""
    arguments = parse_arguments(__doc__, STEPS, footage=Path, at_once=4, jobs=4, seeds=list(SEEDS))
    results = arguments.work / RESULTS.name
    if "study" in arguments.steps:
        measure = partial(measure_run, work=arguments.work, footage=arguments.footage, jobs=arguments.jobs)
        runs = [run for run in study_runs() if run.seed in arguments.seeds]
        finish(run_grid(runs, measure, results, at_once=arguments.at_once, summarise=summarise))
    if "record" in arguments.steps:
        shutil.copy(results, RESULTS)


def measure_run(run: AdaptationRun, work: Path, footage: Path, jobs: int) -> Record:
    """Run the benchmark in one way."""
    begin = time.monotonic()
    options = dict(WAYS[run.way])
    if "adapt_source" in options:
        options["adapt_source"] = footage / options["adapt_source"]
    weights = work / "runs" / FilmRun("shifted", run.treatment, run.seed).folder / "last.safetensors"
    done = jostle.run(
        RECIPE, model=OWN["shifted"], weights=weights, data=footage / "ucf10", out=work / "adapted" / run.folder,
        jobs=1 if options.get("adapt_protocol") == "online" else jobs, **options,
    )  # fmt: skip
    passes = None if done.adaptation is None else done.adaptation.to_dict()
    return {
        "run": asdict(run),
        "clean": done.scores["clean"],
        "cells": {cell["cell"]: cell["value"] for cell in done.scores["cells"]},
        "passes": passes,
        "seconds": round(time.monotonic() - begin, 1),
    }


def summarise(record: Record) -> str:
    """Return the scores, to be printed."""
    return " ".join(f"{100 * value:.1f}" for value in (record["clean"], *record["cells"].values()))


if __name__ == "__main__":
    from studies import film_adaptation  # the name by which worker processes find the runs

    film_adaptation.main()
