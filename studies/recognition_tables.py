"""Tables of docs/results/ about recognisers and frame classifiers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product

import numpy as np

from studies.frames import START
from studies.frames import TREATMENTS as FRAME_TREATMENTS
from studies.harness import (
    NAMES,
    GridTable,
    Record,
    Reduction,
    Results,
    count_runs,
    mean_over_runs,
    over_runs,
    spread,
    table,
    words,
)
from studies.recognition import (
    CELLS,
    FAMILY,
    RECOGNISERS,
    SEVERITIES,
    SINGLE,
    SINGLES,
    TREATMENTS,
    WIDE,
    WIDE_TREATMENTS,
)

ALL, ORDERED, OTHERS, SWAPPED = range(4)  # what is counted in a cell
TEMPORAL = tuple(f"ucf101-p/{name}" for name in ("reverse_sampling", "jumble", "box_jumble", "freeze", "sampling"))
SETS = {
    "Kinetics-C": tuple(cell for cell in CELLS if cell.startswith("kinetics-c/")),
    "UCF101-P": tuple(cell for cell in CELLS if cell.startswith("ucf101-p/")),
}
KINETICS = tuple(name for family, names in FAMILY.items() if family.startswith("C ") for name in names)


def mean(record: Record, cells: Iterable[str], what: int = ALL) -> float:
    """Return the mean over cells, in percent."""
    return 100 * float(np.mean([record["cells"][cell][what] for cell in cells]))


def relative(record: Record, cells: Iterable[str]) -> float:
    """Return the share of the clean accuracy that is left in the mean over cells, in percent."""
    return 100 * mean(record, cells) / mean(record, ["clean"])


def cells_of(*names: str) -> list[str]:
    """Return the cells of some corruptions."""
    return [f"{name}:{level}" for name in names for level in SEVERITIES]


def _order(cells: Iterable[str]) -> Reduction:
    """Return a reduction to the accuracy on classes that differ by order, on others, and the share of swapped twins."""
    return mean_over_runs(*(partial(mean, cells=cells, what=what) for what in (ORDERED, OTHERS, SWAPPED)), digits=0)


CLEAN = ("clean", over_runs(partial(mean, cells=["clean"])))
BENCHMARKS = [
    (head, over_runs(partial(measure, cells=cells)))
    for name, cells in SETS.items()
    for head, measure in ((name, mean), ("relative", relative))
]
LEARNED = [
    cell for cell in SETS["UCF101-P"] if cell.rpartition(":")[0] in set(TREATMENTS["mix"]["corruptions"]["specs"])
]
TRANSFER = {
    "learned from, 1 to 3": [cell for cell in LEARNED if cell[-1] in "123"],
    "the same at 4 and 5": [cell for cell in LEARNED if cell[-1] in "45"],
    "others of UCF101-P": [cell for cell in SETS["UCF101-P"] if cell not in LEARNED],
    "Kinetics-C": SETS["Kinetics-C"],
}


def by_treatment(treatments: Iterable[str], columns: list[tuple[str, Reduction]]) -> GridTable:
    """Return a table of all recognisers, each under some treatments."""
    return GridTable("recognition", {"recogniser": RECOGNISERS, "treatment": tuple(treatments)}, columns)


@table("recogniser", "benchmark", *map(str, SEVERITIES))
def severity_table(results: Results) -> Iterator[list[str]]:
    """Trained clean: the mean over a benchmark's corruptions at each severity."""
    for recogniser, (name, cells) in product(RECOGNISERS, SETS.items()):
        records = results.of("recognition", recogniser=recogniser, treatment="clean")
        levels = [[cell for cell in cells if cell.endswith(f":{level}")] for level in SEVERITIES]
        yield [NAMES[recogniser], name, *(spread(mean(record, level) for record in records) for level in levels)]


@table("recogniser", "trained", *(head for head, _ in (CLEAN, *BENCHMARKS)))
def capacity_table(results: Results) -> Iterator[list[str]]:
    """TAM with four times the weights, beside the narrow one."""
    for treatment, recogniser in product(WIDE_TREATMENTS, (WIDE.removesuffix("_wide"), WIDE)):
        records = results.of("recognition", recogniser=recogniser, treatment=treatment)
        yield [NAMES[recogniser], treatment, *(column(records) for _, column in (CLEAN, *BENCHMARKS))]


@table("trained on", "clean", "Kinetics-C", "itself", "itself, trained clean")
def single_table(results: Results) -> Iterator[list[str]]:
    """Learned from one corruption: clean, the mean of all of Kinetics-C, and the corruption itself."""
    base = results.of("recognition", recogniser=SINGLE, treatment="clean")
    for treatment in ("clean", *SINGLES):
        records = results.of("recognition", recogniser=SINGLE, treatment=treatment)
        row = [words(treatment), *(column(records) for _, column in (CLEAN, BENCHMARKS[0]))]
        if treatment == "clean":
            yield [*row, "", ""]
        else:
            own = partial(mean, cells=cells_of(f"kinetics-c/{treatment.removeprefix('only ')}"))
            yield [*row, over_runs(own)(records), mean_over_runs(own, digits=2)(base)]


def within(record: Record, k: int) -> float:
    """Return the anchors that are right together with all similar frames within k, in percent."""
    return 100 * float(record["right_within"][k])


TABLES: dict[str, Callable[[Results], str]] = {
    "main": by_treatment(TREATMENTS, [CLEAN, *BENCHMARKS, ("runs", count_runs)]),
    "families": by_treatment(
        TREATMENTS, [(name, mean_over_runs(partial(mean, cells=cells_of(*names)))) for name, names in FAMILY.items()]
    ),
    "corruptions": by_treatment(
        ("clean", "noise"),
        [(words(name), mean_over_runs(partial(mean, cells=cells_of(name)), digits=0)) for name in KINETICS],
    ),
    "transfer": by_treatment(
        ("clean", "mix"), [(name, over_runs(partial(mean, cells=cells))) for name, cells in TRANSFER.items()]
    ),
    "order": by_treatment(
        ("clean", "temporal"),
        [("clean", _order(["clean"])), *((words(name), _order(cells_of(name))) for name in TEMPORAL)],
    ),
    "severities": severity_table,
    "capacity": capacity_table,
    "singles": single_table,
    "frames": GridTable(
        "frames",
        {"treatment": (START, *FRAME_TREATMENTS)},
        [
            ("anchors", over_runs(partial(within, k=0))),
            *((f"pm-{k}", over_runs(partial(within, k=k))) for k in (1, 5, 10)),
            ("drop", over_runs(lambda record: within(record, 0) - within(record, 10))),
            ("runs", count_runs),
        ],
    ),
}
