"""Breaking points of the shipped detectors on the puppets: by kind and place, with FrameDrop weights, and mended.

    python -m studies.breaking_points WORK probe record --jobs 16

With `--footage FOOTAGE`, of three detectors on film that `studies.film_detection` trained in the same WORK.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import jostle
from jostle.evaluation.probing.probe import DEFAULT_KINDS, read_video_probe
from jostle.metrics.breaking_points import (
    BreakingComparison,
    BreakingDistribution,
    breaking_distribution,
    compare_breaking_points,
)
from studies import harness
from studies.feature_states import register_extractor

DETECTORS = ("actionformer_puppets", "tridet_puppets", "temporalmaxer_puppets", "vsgn_puppets")
MENDED = DETECTORS[0]
FIFTHS = ("first fifth", "second", "third", "fourth", "last fifth")
FILM_RUNS: dict[str, Any] = {"weights": "lite0 clean", "mend": "", "videos": 6, "step": 8}


@dataclass(frozen=True)
class ProbeRun(harness.GridRun):
    """One detector with one set of weights, as it is or with damaged frames mended."""

    detector: str
    weights: str
    mend: str
    videos: int
    step: int
    seed: int = 0


def study_runs(videos: int, step: int, footage: Path | None) -> list[ProbeRun]:
    """Return every run, on puppets or on film."""
    if footage is not None:
        return [ProbeRun(detector, **FILM_RUNS) for detector in DETECTORS[:3]]
    pairs = product(DETECTORS, ("clean", "robust"))
    runs = [ProbeRun(detector, weights, "", videos, step) for detector, weights in pairs]
    return [*runs, replace(runs[0], mend="jostle")]


def main() -> None:
    """Run the steps that are arguments."""
    harness.run_study(
        __doc__,
        "breaking_points",
        {"probe": harness.Grid(study_runs, measure_run, summarise)},
        lambda arguments: {} if arguments.footage is None else {"file": "film_breaking"},
        at_once=4,
        jobs=4,
        videos=8,
        step=4,
        device="cpu",
        footage=Path,
    )


def film_options(run: ProbeRun, work: Path, footage: Path) -> dict[str, Any]:
    """Return the data, the weights and the extractor of a detector on film."""
    from studies import film_detection

    register_extractor("film_lite0")
    features, treatment = run.weights.split()
    detector = run.detector.removesuffix("_puppets")
    trained = film_detection.FilmDetectorRun(detector, features, treatment, run.seed)
    return {
        "dataset": "joined-clips",
        "data": footage / "ucf10",
        "subset": "test",
        "weights": trained.weights_in(work),
        "extractor": "film_lite0",
        "extractor_weights": work / "film_lite0.safetensors",
        "kinds": DEFAULT_KINDS[:1],
        "model_processes": 0,
    }


def measure_run(run: ProbeRun, work: Path, jobs: int, device: str, footage: Path | None = None) -> harness.Record:
    """Probe a detector, and return every breaking point."""
    options = {"weights": run.weights} if footage is None else film_options(run, work, footage)
    probe = jostle.probe(
        "puppets-c" if footage is None else "thumos14-c",
        model=run.detector,
        **options,
        out=work / run.folder,
        mend=run.mend or None,
        videos=run.videos,
        step=run.step,
        seed=run.seed,
        jobs=jobs,
        device=device,
    )
    points = []
    for one in probe.breaking_points:
        item = read_video_probe(work / run.folder, one.video).items[one.item]
        middle = None if one.frames is None or one.position is None else one.position + one.frames / 2
        place = None if middle is None else round((middle - item.first) / one.length, 4)
        points.append([one.video, one.item, one.kind, one.frames, one.length, place, one.monotone])
    return {
        "items": probe.items,
        "kept": probe.kept,
        "trials": probe.trials,
        "threshold": probe.threshold,
        "points": points,
    }


def summarise(record: harness.Record) -> str:
    """Format what is printed of a record."""
    one = distribution(record, DEFAULT_KINDS[0])
    return f"{record['kept']} of {record['items']} items, {record['trials']} trials, median {one.median}"


def points_of(record: harness.Record, kind: str) -> list[list[Any]]:
    """Return the breaking points of a run by one kind."""
    return [point for point in record["points"] if point[2] == kind]


def distribution(record: harness.Record, kind: str) -> BreakingDistribution:
    """Return the distribution of the breaking points of a run by one kind."""
    points = points_of(record, kind)
    return breaking_distribution([one[0] for one in points], [one[3] for one in points], [one[6] for one in points])


def compare(first: harness.Record, second: harness.Record, kind: str) -> BreakingComparison:
    """Compare two runs item by item."""
    before, after = ({(one[0], one[1]): one[3] for one in points_of(record, kind)} for record in (first, second))
    both = [key for key in before if key in after]
    return compare_breaking_points(
        [key[0] for key in both], [before[key] for key in both], [after[key] for key in both]
    )


def find(records: Sequence[harness.Record], detector: str, weights: str, mend: str = "") -> harness.Record:
    """Return the record of one run."""
    return harness.select_records(records, detector=detector, weights=weights, mend=mend)[0]


@harness.table("detector", "weights", "actions found clean", *map(harness.words, DEFAULT_KINDS))
def kinds_table(results: harness.Results) -> Iterator[list[str]]:
    """Number of frames that lose an action, by detector, weights and kind."""
    for detector, weights in product(DETECTORS, ("clean", "robust")):
        record = find(results.breaking_points, detector, weights)
        cells = [_median(distribution(record, kind)) for kind in DEFAULT_KINDS]
        yield [_name(detector), weights, f"{record['kept']} of {record['items']}", *cells]


@harness.table("lost to black frames, %", "weights", "1", "at most 4", "at most 16", "never lost")
def shares_table(results: harness.Results) -> Iterator[list[str]]:
    """The share of actions lost to black frames, by their number."""
    for detector, weights in product(DETECTORS, ("clean", "robust")):
        one = distribution(find(results.breaking_points, detector, weights), DEFAULT_KINDS[0])
        yield [_name(detector), weights, *_shares(one)]


@harness.table("against clean weights as they are", *map(harness.words, DEFAULT_KINDS))
def paired_table(results: harness.Results) -> Iterator[list[str]]:
    """Effect of FrameDrop weights and mending, action by action."""
    changes = [(detector, "FrameDrop", "robust", "") for detector in DETECTORS]
    for detector, label, weights, mend in (*changes, (MENDED, "mended", "clean", "jostle")):
        plain = find(results.breaking_points, detector, "clean")
        changed = find(results.breaking_points, detector, weights, mend)
        cells = [_paired(plain, changed, kind) for kind in DEFAULT_KINDS]
        yield [f"{_name(detector)}, {label}", *cells]


@harness.table("breaking points, %, by place in the action", *FIFTHS)
def places_table(results: harness.Results) -> Iterator[list[str]]:
    """Position in an action of the damage that loses it, for clean weights."""
    for detector in DETECTORS:
        places = _places(find(results.breaking_points, detector, "clean"))
        yield [_name(detector), *places]


@harness.table(
    "black frames",
    "actions found clean",
    "frames of an action",
    "lose half",
    "lost to 1, %",
    "to at most 4",
    "to at most 16",
    "never lost",
    "middle fifth",
)
def film_table(results: harness.Results) -> Iterator[list[str]]:
    """Number and position of black frames that lose an action, on film and on puppets."""
    for detector in DETECTORS[:3]:
        film = find(results.film_breaking, detector, FILM_RUNS["weights"])
        for where, record in (("film", film), ("puppets", find(results.breaking_points, detector, "clean"))):
            one, points = distribution(record, DEFAULT_KINDS[0]), points_of(record, DEFAULT_KINDS[0])
            items = [f"{record['kept']} of {record['items']}", f"{np.median([point[4] for point in points]):.0f}"]
            label = f"{_name(detector)}, {where}"
            yield [label, *items, _median(one), *_shares(one), _places({"points": points})[2]]


def _name(detector: str) -> str:
    return harness.NAMES[detector.removesuffix("_puppets")]


def _places(record: harness.Record) -> list[str]:
    """Format the share of breaking points in each fifth of an action."""
    places = [one[5] for one in record["points"] if one[5] is not None]
    counts = np.histogram(places, bins=len(FIFTHS), range=(0, 1))[0]
    return [f"{100 * count / len(places):.0f}" for count in counts]


def _shares(one: BreakingDistribution) -> list[str]:
    """Format the share of actions that are lost to so many frames, and to none."""
    lost = [part for part in one.lost_to if part.frames in (1, 4, 16)]
    return [
        *(harness.with_interval(part.share, part.interval, ".0f", scale=100) for part in lost),
        f"{100 * one.unbroken / one.items:.0f}",
    ]


def _median(one: BreakingDistribution) -> str:
    ends = ["more" if end is None else f"{end:g}" for end in one.median_interval or ()]
    return f"{'more' if one.median is None else f'{one.median:g}'} [{', '.join(ends)}]"


def _paired(first: harness.Record, second: harness.Record, kind: str) -> str:
    one = compare(first, second, kind)
    ratio = "" if one.ratio is None else f", x{harness.with_interval(one.ratio, one.ratio_interval, '.2f')}"
    return f"{one.later} later, {one.earlier} earlier of {one.items}{ratio}"


TABLES = {
    "kinds": kinds_table,
    "shares": shares_table,
    "paired": paired_table,
    "places": places_table,
    "film": film_table,
}


if __name__ == "__main__":
    harness.run_module("studies.breaking_points")
