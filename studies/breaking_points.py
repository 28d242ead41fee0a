"""Breaking points of the shipped detectors on the puppets: by kind and place, with FrameDrop weights, and mended.

python -m studies.breaking_points WORK probe record --jobs 16
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

import jostle
from jostle.evaluation.probing.probe import DEFAULT_KINDS, read_video_probe
from jostle.metrics.breaking_points import (
    BreakingComparison,
    BreakingDistribution,
    breaking_distribution,
    compare_breaking_points,
)
from studies.harness import (
    STUDIES,
    GridRun,
    Record,
    fill_tables,
    finish,
    markdown_table,
    parse_arguments,
    read_records,
    run_grid,
)

STEPS = ("probe", "record")
RESULTS = STUDIES / "breaking_points.jsonl"
DETECTORS = ("actionformer_puppets", "tridet_puppets", "temporalmaxer_puppets", "vsgn_puppets")
NAMES = {
    "actionformer_puppets": "ActionFormer",
    "tridet_puppets": "TriDet",
    "temporalmaxer_puppets": "TemporalMaxer",
    "vsgn_puppets": "VSGN",
}
MENDED = DETECTORS[0]
FIFTHS = ("first fifth", "second", "third", "fourth", "last fifth")
read_results = partial(read_records, RESULTS)


@dataclass(frozen=True)
class ProbeRun(GridRun):
    """One detector with one set of weights, as it is or with damaged frames mended."""

    detector: str
    weights: str
    mend: str
    videos: int
    step: int
    seed: int = 0


def main() -> None:
    """Do the steps that are arguments for."""
    arguments = parse_arguments(__doc__, STEPS, at_once=4, jobs=4, videos=8, step=4, device="cpu")
    runs = [
        ProbeRun(detector, weights, "", arguments.videos, arguments.step)
        for detector in DETECTORS
        for weights in ("clean", "robust")
    ]
    runs.append(replace(runs[0], mend="jostle"))
    results = arguments.work / RESULTS.name
    if "probe" in arguments.steps:
        measure = partial(measure_run, work=arguments.work, jobs=arguments.jobs, device=arguments.device)
        finish(run_grid(runs, measure, results, at_once=arguments.at_once, summarise=summarise))
    if "record" in arguments.steps:
        shutil.copy(results, RESULTS)


def measure_run(run: ProbeRun, work: Path, jobs: int, device: str) -> Record:
    """Probe a detector, and return every breaking point."""
    begin = time.monotonic()
    probe = jostle.probe(
        "puppets-c",
        model=run.detector,
        weights=run.weights,
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
        "run": asdict(run),
        "items": probe.items,
        "kept": probe.kept,
        "trials": probe.trials,
        "threshold": probe.threshold,
        "points": points,
        "seconds": round(time.monotonic() - begin),
    }


def summarise(record: Record) -> str:
    """Format what is printed of a record."""
    one = distribution(record, DEFAULT_KINDS[0])
    return f"{record['kept']} of {record['items']} items, {record['trials']} trials, median {one.median}"


def points_of(record: Record, kind: str) -> list[list]:
    """Return the breaking points of a run by one kind."""
    return [point for point in record["points"] if point[2] == kind]


def distribution(record: Record, kind: str) -> BreakingDistribution:
    """Return the distribution of the breaking points of a run by one kind."""
    points = points_of(record, kind)
    return breaking_distribution([one[0] for one in points], [one[3] for one in points], [one[6] for one in points])


def compare(first: Record, second: Record, kind: str) -> BreakingComparison:
    """Compare two runs item by item."""
    before, after = ({(one[0], one[1]): one[3] for one in points_of(record, kind)} for record in (first, second))
    both = [key for key in before if key in after]
    return compare_breaking_points(
        [key[0] for key in both], [before[key] for key in both], [after[key] for key in both]
    )


def find(records: Sequence[Record], detector: str, weights: str, mend: str = "") -> Record:
    """Return the record of one run."""
    wanted = {"detector": detector, "weights": weights, "mend": mend}
    return next(record for record in records if wanted.items() <= record["run"].items())


def kinds_table(records: Sequence[Record]) -> str:
    """Format how many frames lose an action, by detector, weights and kind."""
    rows = []
    for detector in DETECTORS:
        for weights in ("clean", "robust"):
            record = find(records, detector, weights)
            cells = [_median(distribution(record, kind)) for kind in DEFAULT_KINDS]
            rows.append([NAMES[detector], weights, f"{record['kept']} of {record['items']}", *cells])
    return markdown_table(["detector", "weights", "actions found clean", *map(_short, DEFAULT_KINDS)], rows)


def shares_table(records: Sequence[Record]) -> str:
    """Format the share of actions lost to black frames, by their number."""
    rows = []
    for detector in DETECTORS:
        for weights in ("clean", "robust"):
            one = distribution(find(records, detector, weights), DEFAULT_KINDS[0])
            cells = [_share(*one.lost_to[frames]) for frames in (1, 4, 16)]
            rows.append([NAMES[detector], weights, *cells, f"{100 * one.unbroken / one.items:.0f}"])
    return markdown_table(["lost to black frames, %", "weights", "1", "at most 4", "at most 16", "never lost"], rows)


def paired_table(records: Sequence[Record]) -> str:
    """Format what FrameDrop weights and mending change, action by action."""
    pairs = [(NAMES[detector], find(records, detector, "robust"), detector) for detector in DETECTORS]
    rows = []
    for name, after, detector in pairs:
        rows.append(
            [f"{name}, FrameDrop", *(_paired(find(records, detector, "clean"), after, k) for k in DEFAULT_KINDS)]
        )
    mended, plain = find(records, MENDED, "clean", "jostle"), find(records, MENDED, "clean")
    rows.append([f"{NAMES[MENDED]}, mended", *(_paired(plain, mended, kind) for kind in DEFAULT_KINDS)])
    return markdown_table(["against clean weights as they are", *map(_short, DEFAULT_KINDS)], rows)


def places_table(records: Sequence[Record]) -> str:
    """Format where in an action the damage lies that loses it, for clean weights."""
    rows = []
    for detector in DETECTORS:
        places = [one[5] for one in find(records, detector, "clean")["points"] if one[5] is not None]
        counts = np.histogram(places, bins=len(FIFTHS), range=(0, 1))[0]
        rows.append([NAMES[detector], *(f"{100 * count / len(places):.0f}" for count in counts)])
    return markdown_table(["breaking points, %, by place in the action", *FIFTHS], rows)


def _median(one: BreakingDistribution) -> str:
    ends = ["more" if end is None else f"{end:g}" for end in one.median_interval or ()]
    return f"{'more' if one.median is None else f'{one.median:g}'} [{', '.join(ends)}]"


def _share(share: float, interval: tuple[float, float] | None) -> str:
    ends = "" if interval is None else f" [{100 * interval[0]:.0f}, {100 * interval[1]:.0f}]"
    return f"{100 * share:.0f}{ends}"


def _paired(first: Record, second: Record, kind: str) -> str:
    one = compare(first, second, kind)
    ratio = "" if one.ratio is None else f", x{one.ratio:.2f}"
    ends = "" if one.ratio_interval is None else f" [{one.ratio_interval[0]:.2f}, {one.ratio_interval[1]:.2f}]"
    return f"{one.later} later, {one.earlier} earlier of {one.items}{ratio}{ends}"


def _short(kind: str) -> str:
    return kind.rpartition("/")[2].replace("_", " ")


TABLES = {"kinds": kinds_table, "shares": shares_table, "paired": paired_table, "places": places_table}


def fill_page(page: str, records: Sequence[Record]) -> str:
    """Return the page with the tables of this study as the records have them."""
    return fill_tables("breaking", TABLES, page, records)


if __name__ == "__main__":
    main()
