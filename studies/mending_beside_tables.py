"""Tables of the study of mending beside its main ones: what else was struck, and what else was looked with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jostle.corruptions.engine.spec import Spec
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.recipes.thumos14_c import EXTRA, MIXES
from studies.cells import CORRUPTIONS, PUPPETS_C
from studies.mending import DETECTORS
from studies.mending_cells import BLANK, GROUPS, LENGTHS, length_cell
from studies.mending_features import AS_IS, KNOWN, MENDED
from studies.mending_frames import study as frame_study
from studies.mending_recognition import KINDS, PLACES
from studies.mending_records import (
    NAMES,
    WAYS,
    Record,
    Results,
    alarms,
    cells_of,
    left,
    relative,
    with_ends,
    words,
)
from studies.mending_ways import WAYS as OTHER_WAYS
from studies.tables import table

# How a detector was trained, and what is done about struck frames.
COMPARED = (
    ("clean", AS_IS),
    ("drop", AS_IS),
    ("drop + TRC", AS_IS),
    ("clean", MENDED),
    ("drop", MENDED),
    ("drop + TRC", MENDED),
    ("clean", KNOWN),
)


# Those that are not the benchmark's own, which the main table has.
OTHER_LENGTHS = [percent for percent in LENGTHS if length_cell(BLANK, percent) not in PUPPETS_C]


def length_table(results: Results) -> str:
    """Stretches of other lengths than the benchmark's."""
    rows, records = [], results.of("lengths", "clean")
    for kind in CORRUPTIONS:
        rows += [[words(kind), *row] for row in _by_length(records, kind)]
    return table(["kind", "struck frames", *(f"{percent:g} %" for percent in OTHER_LENGTHS)], rows)


def black_table(results: Results) -> str:
    """The same of black frames, with the rule beside the network; and what was found."""
    records = results.with_rule("lengths")
    counts = [records[0]["found"][MENDED][length_cell(BLANK, percent)] for percent in OTHER_LENGTHS]
    found = ["found, %", *(f"{100 * hit / of:.1f}" for hit, of, _, _ in counts)]
    return table(
        ["black frames, with the rule", *(f"{percent:g} %" for percent in OTHER_LENGTHS)],
        [*_by_length(records, BLANK), found],
    )


def _by_length(records: Sequence[Record], kind: str) -> list[list[str]]:
    return [
        [way, *(f"{left(records, way, [length_cell(kind, percent)]):.1f}" for percent in OTHER_LENGTHS)] for way in WAYS
    ]


def background_table(results: Results) -> str:
    """Frames struck outside of actions: mAP of each detector, the mean over its seeds, and what was found."""
    records, rows = results.of("background", "clean"), []
    found = records[0]["found"][MENDED]
    for cell in (CLEAN, *(cell.name for cell in GROUPS["background"])):
        row = [words(cell.partition(":")[0]), *_each_detector(records, cell)]
        hit, of = found[cell][:2]
        rows.append([*row, f"{100 * hit / of:.1f}" if of else "", f"{alarms([found[cell]]):.2f}"])
    names = [NAMES[name] for name in DETECTORS]
    return table(["struck outside of actions", *names, "found, %", "false alarms, %"], rows)


def _each_detector(records: Sequence[Record], cell: str) -> list[str]:
    """mAP as is / mended / known, the mean over the seeds of each detector."""
    told = []
    for name in DETECTORS:
        own = [record["scores"] for record in records if record["run"]["detector"] == name]
        told.append(" / ".join(f"{100 * np.mean([scores[way][cell] for scores in own]):.1f}" for way in WAYS))
    return told


def single_table(results: Results) -> str:
    """One frame, and five in a row at places of an action: relative robustness, the mean of all runs."""
    return _compared(results, "single", {cell.name: [cell.name] for cell in GROUPS["single"]})


def time_table(results: Results) -> str:
    """Mixes and changes of time: relative robustness, the mean of all runs."""
    return _compared(results, "extra", {words(kind): cells_of(kind) for kind in (*MIXES, *EXTRA)})


def _compared(results: Results, group: str, named: dict[str, list[str]]) -> str:
    rows = []
    for name, cells in named.items():
        told = [left(results.of(group, treatment), way, cells) for treatment, way in COMPARED]
        rows.append([name, *(f"{value:.1f}" for value in told)])
    return table(["", *(f"{treatment}, {way}" for treatment, way in COMPARED)], rows)


def strength_table(results: Results) -> str:
    """Strengths that no table has, and kinds on top of each other: mAP of each detector, and what was found."""
    rows: list[list[str]] = []
    for group in ("strengths", "together"):
        records = results.of(group, "clean")
        for cell in GROUPS[group]:
            alone = len(cell.specs) == 1
            said = [words(cell.name), str(cell.specs[0].value)] if alone else [_all(cell.specs), ""]
            hit, of = records[0]["found"][MENDED][cell.name][:2]
            rows.append([*said, *_each_detector(records, cell.name), f"{100 * hit / of:.1f}"])
    names = [NAMES[name] for name in DETECTORS]
    return table(["the central 5 % of actions", "strength", *names, "found, %"], rows)


def _all(specs: Sequence[Spec]) -> str:
    return " and ".join(words(spec.name) for spec in specs)


def frame_detector_table(results: Results) -> str:
    """Detectors of frames, with the shipped weights: clean score and relative robustness, by kind and over all."""
    rows = []
    for run in frame_study():
        (record,) = (one for one in results.frames if one["run"] == vars(run))
        scores = {"scores": {"": record["scores"]}}
        drawn = np.array(record["drawn"])
        whole = with_ends(relative(scores, "", PUPPETS_C), drawn[:, 1] / drawn[:, 0] * 100)
        row = [NAMES[run.detector], run.weights, run.way, f"{100 * record['scores'][CLEAN]:.2f}", whole]
        rows.append([*row, *(f"{relative(scores, '', cells_of(kind)):.1f}" for kind in CORRUPTIONS)])
    head = ["detector", "weights", "struck frames", "clean", "relative"]
    return table([*head, *map(words, CORRUPTIONS)], rows)


def recognition_table(results: Results) -> str:
    """Clips told right by networks trained clean, the mean of these, and struck frames found."""
    *runs, found = results.recognition
    clean, rows = [run for run in runs if run["run"]["weights"] == "clean"], []
    for kind in KINDS:
        cells = [f"{kind} {word}" for word in PLACES]
        told = [_right(clean, [cell]) for cell in cells]
        counts = [found["found"][cell] for cell in cells]
        rows.append([words(kind), *told, " / ".join(f"{100 * one[0] / one[1]:.0f}" for one in counts)])
    return table(["struck by", *(f"{word} of the clip" for word in PLACES), "found, %"], rows)


def _right(runs: Sequence[Record], cells: Sequence[str]) -> str:
    """Clips told right as is / mended / known, in percent, the mean over networks and cells."""
    told = [np.mean([run["scores"][way][cell] for run in runs for cell in cells]) for way in WAYS]
    return " / ".join(f"{100 * value:.0f}" for value in told)


def way_table(results: Results) -> str:
    """Ways to use the knowledge of struck frames, these being known: relative robustness."""
    rows = []
    names = list(dict.fromkeys(record["run"]["detector"] for record in results.ways))
    for way in OTHER_WAYS:
        (*each,) = (
            100 * record["relative"]
            for name in names
            for record in results.ways
            if (record["run"]["detector"], record["run"]["way"]) == (name, way)
        )
        rows.append([way, *(f"{value:.1f}" for value in (*each, np.mean(each)))])
    return table(["", *(NAMES[name] for name in names), "mean"], rows)
