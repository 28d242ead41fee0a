"""Tables of docs/results/ about detectors, feature-based and end-to-end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product

import numpy as np

from jostle.evaluation.recipes.thumos14_c import CORRUPTIONS, POSITIONS
from studies.detection import AT_HALF, DETECTORS, PUPPETS_C, SHARES, TREATMENTS
from studies.end_to_end import FEATURES, FRAMES
from studies.end_to_end import TREATMENTS as WAYS
from studies.harness import (
    NAMES,
    GridTable,
    Record,
    Results,
    count_runs,
    mean_over_runs,
    over_runs,
    spread,
    table,
    words,
)

MAIN = ("clean", "clean, two views", "drop", "drop + TRC")
COMPARED = ("clean", "drop", "drop + TRC")
ERRORS = ("double_detection", "wrong_label", "localization", "confusion", "background", "missed")
# Cells of black frames, by their names in tables.
PLACES = {"clean video": "clean", "one black frame at 50 %": "one frame"} | {
    name: name for name in (*(f"five at {percent} %" for percent in POSITIONS), "five in the background")
}


def value(record: Record, cell: str) -> float:
    """Return mAP at 0.5 in a cell, in percent."""
    return 100 * float(record["cells"][cell][AT_HALF])


def corrupted(record: Record, cells: Iterable[str] = PUPPETS_C) -> float:
    """Return the mean over cells, in percent."""
    return float(np.mean([value(record, cell) for cell in cells]))


def relative(record: Record) -> float:
    """Return relative robustness, in percent."""
    return 100 * corrupted(record) / value(record, "clean")


def error(record: Record, state: str, name: str) -> float:
    """Return what a kind of error costs in a state of the videos, in percent."""
    return 100 * float(record["diagnosis"][state][name])


clean = partial(value, cell="clean")
MEASURES: dict[str, Callable[[Record], float]] = {
    "clean": clean,
    "corrupted": corrupted,
    "relative robustness": relative,
}
ROBUSTNESS = [(head, over_runs(measure)) for head, measure in MEASURES.items()]
RUNS = ("runs", count_runs)
BY_CORRUPTION = [
    (words(name), mean_over_runs(*(partial(value, cell=f"thumos14-c/{name}:{level}") for level in SHARES)))
    for name in CORRUPTIONS
]


def ablations(detector: str) -> Callable[[Results], str]:
    """Return the table of every treatment of a detector but those by one corruption, which another table has."""
    treatments = [name for name in TREATMENTS if name == "fixed drop" or not name.startswith("fixed ")]
    where = {"detector": detector, "network": 0}
    return GridTable("results", {"treatment": treatments}, [*ROBUSTNESS, RUNS], where)


@table("tested on", "trained clean", *map(words, CORRUPTIONS))
def transfer_table(results: Results) -> Iterator[list[str]]:
    """Trained on one corruption, tested on each."""
    groups = {words(name): [cell for cell in PUPPETS_C if f"/{name}:" in cell] for name in CORRUPTIONS}
    trained = [
        results.of("results", detector="tridet", treatment=treatment, network=0)
        for treatment in ("clean", *(f"fixed {name} + TRC" for name in CORRUPTIONS))
    ]
    for tested, cells in {"clean video": ["clean"], **groups, "mean of 15": PUPPETS_C}.items():
        yield [tested, *(spread(corrupted(record, cells) for record in records) for records in trained)]


@table(
    "corrupted", *(f"{NAMES[detector]}, {treatment}" for detector, treatment in product(DETECTORS, ("clean", "drop")))
)
def position_table(results: Results) -> Iterator[list[str]]:
    """Black frames at different positions of each action."""
    runs = [
        results.of("results", detector=detector, treatment=treatment)
        for detector, treatment in product(DETECTORS, ("clean", "drop"))
    ]
    for name, cell in PLACES.items():
        mean = mean_over_runs(partial(value, cell=cell), digits=2)
        yield [name, *map(mean, runs)]


@table("detector", "trained", "video", *map(words, ERRORS))
def diagnosis_table(results: Results) -> Iterator[list[str]]:
    """Cost of each kind of error."""
    for detector, treatment, state in product(DETECTORS, ("clean", "drop"), ("clean", "corrupted")):
        records = results.of("results", detector=detector, treatment=treatment)
        costs = [mean_over_runs(partial(error, state=state, name=name), digits=2)(records) for name in ERRORS]
        yield [NAMES[detector], treatment, state, *costs]


@table("detector", "", *MEASURES, "pairs")
def paired_table(results: Results) -> Iterator[list[str]]:
    """Gain of one treatment over another, run by run with the same seeds, so that the luck of an extractor cancels."""
    pairs_of = (("drop", "clean"), ("drop + TRC", "clean"), ("drop + TRC", "drop"), ("clean, two views", "clean"))
    compared = [(detector, *pair) for pair in pairs_of for detector in DETECTORS]
    compared += [("tridet", *pair) for pair in (("both + TRC", "both"), ("drop", "fixed drop"), ("drop x 8", "drop"))]
    for detector, one, other in compared:
        first, second = (
            {_seeds(record): record for record in results.of("results", detector=detector, treatment=treatment)}
            for treatment in (one, other)
        )
        both = [seeds for seeds in first if seeds in second]
        changes = [
            spread(measure(first[seeds]) - measure(second[seeds]) for seeds in both) for measure in MEASURES.values()
        ]
        yield [NAMES[detector], f"{one} over {other}", *changes, str(len(both))]


def _seeds(record: Record) -> tuple[int, int]:
    return record["run"]["network"], record["run"]["seed"]


@table("detector", "looks at", *MEASURES, "runs")
def beside_table(results: Results) -> Iterator[list[str]]:
    """Clean training of all seven: those on features of the shipped extractor, and those of frames."""
    groups = (
        ("features", DETECTORS, "results", {"treatment": "clean", "network": 0}),
        ("features", FEATURES, "end_to_end", {"treatment": "clean"}),
        ("frames, backbone frozen", FRAMES, "end_to_end", {"treatment": "frozen, clean"}),
        ("frames, end to end", FRAMES, "end_to_end", {"treatment": "clean"}),
    )
    for inputs, detectors, file, where in groups:
        for detector in detectors:
            records = results.of(file, detector=detector, **where)
            yield [NAMES[detector], inputs, *(column(records) for _, column in (*ROBUSTNESS, RUNS))]


TABLES: dict[str, Callable[[Results], str]] = {
    "main": GridTable("results", {"detector": DETECTORS, "treatment": MAIN}, [*ROBUSTNESS, RUNS]),
    "cells": GridTable("results", {"detector": DETECTORS, "treatment": COMPARED}, BY_CORRUPTION),
    "ablations": ablations("tridet"),
    "transfer": transfer_table,
    "positions": position_table,
    "diagnosis": diagnosis_table,
    "extractors": GridTable(
        "results", {"network": (0, 1), "detector": DETECTORS, "treatment": COMPARED}, ROBUSTNESS
    ),
    "paired": paired_table,
    "shortcut": GridTable(
        "results",
        {"detector": ("tridet", "temporalmaxer"), "treatment": ("clean", "drop", "drop x 8", "drop in actions")},
        [
            ("clean video", over_runs(clean)),
            ("one black frame", over_runs(partial(value, cell="one frame"))),
            ("five at 50 %", over_runs(partial(value, cell="five at 50 %"))),
            ("five in the background", over_runs(partial(value, cell="five in the background"))),
            ("false alarms, clean", over_runs(partial(error, state="clean", name="background"))),
            ("false alarms, corrupted", over_runs(partial(error, state="corrupted", name="background"))),
        ],
        {"network": 0},
    ),
    "temporalmaxer": ablations("temporalmaxer"),
}  # fmt: skip
END_TO_END_TABLES: dict[str, Callable[[Results], str]] = {
    "main": GridTable("end_to_end", {"detector": (*FRAMES, *FEATURES), "treatment": tuple(WAYS)}, [*ROBUSTNESS, RUNS]),
    "beside": beside_table,
    "cells": GridTable("end_to_end", {"detector": FRAMES, "treatment": tuple(WAYS)}, BY_CORRUPTION),
}
