"""Breaking points of detectors on film: how many damaged frames lose an action of a video joined from clips.

    python -m studies.film_breaking WORK probe record --footage FOOTAGE

Takes the detectors and extractors that `studies.film_detection` made in the same WORK. Probes that are done already are
skipped, and one that was stopped goes on.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jostle
from studies.breaking_points import record_probe, summarise
from studies.film_detection import DETECTORS, FilmDetectorRun, load_film_extractor
from studies.harness import STUDIES, GridRun, Record, finish, parse_arguments, read_records, run_grid

STEPS = ("probe", "record")
RESULTS = STUDIES / "film_breaking.jsonl"
KIND = "thumos14-c/black_frame"
VIDEOS, STEP = 6, 8
read_results = partial(read_records, RESULTS)


@dataclass(frozen=True)
class FilmProbeRun(GridRun):
    """One trained detector, as it is or with damaged frames mended."""

    detector: str
    features: str
    treatment: str
    mend: str
    videos: int = VIDEOS
    step: int = STEP
    seed: int = 0


def study_runs() -> list[FilmProbeRun]:
    """Return every probe: on features of frames all detectors, on those of a network with time in it one."""
    return [
        *(FilmProbeRun(detector, "lite0", "clean", "") for detector in DETECTORS),
        FilmProbeRun("actionformer", "lite0", "drop", ""),
        FilmProbeRun("actionformer", "lite0", "clean", "jostle"),
        FilmProbeRun("actionformer", "shifted", "clean", ""),
    ]


def main() -> None:
    """Do the steps that are arguments."""
    arguments = parse_arguments(
        __doc__, STEPS, footage=Path, at_once=3, jobs=4, networks=("lite0", "shifted"), videos=VIDEOS, step=STEP
    )
    results = arguments.work / RESULTS.name
    if "probe" in arguments.steps:
        measure = partial(measure_run, work=arguments.work, footage=arguments.footage, jobs=arguments.jobs)
        runs = [run for run in study_runs() if run.features in arguments.networks]
        finish(run_grid(runs, measure, results, at_once=arguments.at_once, summarise=summarise))
    if "record" in arguments.steps:
        shutil.copy(results, RESULTS)


def measure_run(run: FilmProbeRun, work: Path, footage: Path, jobs: int) -> Record:
    """Probe a detector, and return every breaking point."""
    from studies import film_networks  # noqa: F401  # registers the extractor

    begin = time.monotonic()
    extractor: dict[str, Any] = {"extractor": "film_lite0", "extractor_weights": work / "film_lite0.safetensors"}
    if run.features != "lite0":
        extractor = {"extractor": load_film_extractor(run.features, work)}
    weights = FilmDetectorRun(run.detector, run.features, run.treatment, run.seed).folder
    probe = jostle.probe(
        "thumos14-c",
        dataset="joined-clips",
        data=footage / "ucf10",
        subset="test",
        model=f"{run.detector}_puppets",
        weights=work / "runs" / weights / "last.safetensors",
        **extractor,
        out=work / "probes" / run.folder,
        kinds=[KIND],
        mend=run.mend or None,
        videos=run.videos,
        step=run.step,
        seed=run.seed,
        jobs=jobs,
        model_processes=0,
    )
    return record_probe(run, probe, work / "probes" / run.folder, begin)


if __name__ == "__main__":
    from studies import film_breaking  # the name by which worker processes find the runs

    film_breaking.main()
