"""The tables of docs/results.md on mending: `python -m experiments.mending_tables` puts them there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments.cells import CORRUPTIONS, PUPPETS_C, SHARES
from experiments.mending import DETECTORS, TREATMENTS
from experiments.mending_cells import EVERYTHING, GROUPS, LENGTHS, UNSEEN, length_cell, without
from experiments.mending_features import AS_IS, KNOWN, MENDED
from experiments.mending_recognition import KINDS, PLACES
from experiments.mending_ways import WAYS as OTHER_WAYS
from experiments.page import fill_page, with_tables
from experiments.tables import NAMES as THREE
from experiments.tables import ROOT, spread, table
from jostle.benchmarks.recipe import CLEAN
from jostle.benchmarks.thumos14_c import EXTRA, MIXES, PROFILE
from jostle.corrupting.spec import Spec
from jostle.metrics.bootstrap import bias_corrected

RESULTS = ROOT / "experiments" / "mending.jsonl"
SHIPPED = ROOT / "experiments" / "mending_shipped.jsonl"  # of the weights that come with jostle, on a few films
RECOGNITION = ROOT / "experiments" / "mending_recognition.jsonl"
OTHERS = ROOT / "experiments" / "mending_ways.jsonl"
NAMES = {**THREE, "vsgn": "VSGN"}
WAYS = (AS_IS, MENDED, KNOWN)
# How a detector was trained, and what is done about struck frames.
COMPARED = (("clean", AS_IS), ("drop", AS_IS), ("clean", MENDED), ("drop", MENDED), ("clean", KNOWN))
ERRORS = ("double_detection", "wrong_label", "localization", "confusion", "background", "missed")

Record = dict[str, Any]


class Results:
    """All measured runs."""

    def __init__(self) -> None:
        self.records, self.shipped = _read(RESULTS), _read(SHIPPED)
        self.recognition, self.ways = _read(RECOGNITION), _read(OTHERS)

    def of(self, group: str, treatment: str, detector: str | None = None, network: int = 0) -> list[Record]:
        """The runs of a group of cells, of one detector or of all."""
        wanted: Record = {"group": group, "treatment": treatment, "network": network}
        wanted |= {} if detector is None else {"detector": detector}
        return [record for record in self.records if wanted.items() <= record["run"].items()]

    def beside(self, group: str) -> list[Record]:
        """The runs of the main cells of the same trained detectors as those of a group, trained clean."""
        known = [(record["run"]["detector"], record["run"]["seed"]) for record in self.of(group, "clean")]
        main = self.of("main", "clean")
        return [record for record in main if (record["run"]["detector"], record["run"]["seed"]) in known]


def _read(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def relative(record: Record, way: str, cells: Iterable[str], clean: str = "") -> float:
    """What is left of the clean score in the mean of some cells, in percent.

    Args:
        clean: the way whose clean score that is; by default the same.
    """
    scores = record["scores"]
    return 100 * float(np.mean([scores[way][cell] for cell in cells])) / float(scores[clean or way][CLEAN])


def left(records: Sequence[Record], way: str, cells: Sequence[str], clean: str = "") -> float:
    """The mean of that over runs."""
    return float(np.mean([relative(record, way, cells, clean) for record in records]))


def interval(records: Sequence[Record], way: str, clean: str = "") -> str:
    """The mean over runs of relative robustness, and where it lies in 95 % of draws of other films."""
    cells = [cell for cell in records[0]["scores"][way] if cell != CLEAN]
    measured = left(records, way, cells, clean)
    struck, whole = (np.array([record["drawn"][one] for record in records]) for one in (way, clean or way))
    ends = bias_corrected((struck[..., 1] / whole[..., 0]).mean(0) * 100, measured, 0.95)
    return f"{measured:.1f}" + ("" if ends is None else f" [{ends[0]:.1f}, {ends[1]:.1f}]")


def main_table(results: Results) -> str:
    """Clean scores and relative robustness, by detector and training: mean and deviation over seeds."""
    rows = []
    for detector in DETECTORS:
        for treatment in TREATMENTS:
            records = results.of("main", treatment, detector)
            if not records:
                continue
            row = [NAMES[detector], treatment]
            row += [spread(100 * r["scores"][way][CLEAN] for r in records) for way in (AS_IS, MENDED)]
            row += [spread(relative(r, way, PUPPETS_C) for r in records) for way in WAYS]
            rows.append([*row, str(len(records))])
    head = ["detector", "trained", "clean", "clean, mended", "relative, as is", "mended", "known", "runs"]
    return table(head, rows)


def interval_table(results: Results) -> str:
    """The mean over all detectors and seeds, and its interval from drawing other films."""
    rows = []
    for treatment in TREATMENTS:
        records = results.of("main", treatment)
        if records:
            cost = [100 * (r["scores"][MENDED][CLEAN] - r["scores"][AS_IS][CLEAN]) for r in records]
            told = [interval(records, way) for way in WAYS]
            rows.append([treatment, *told, f"{np.mean(cost):+.2f}", f"{min(cost):+.2f}", str(len(records))])
    head = ["trained", "as is", "mended", "known", "clean mAP, mended - as is", "of the worst run", "runs"]
    return table(head, rows)


def aim_table(results: Results) -> str:
    """What was aimed at, and what was measured."""
    clean, drop = (results.of("main", treatment) for treatment in ("clean", "drop"))
    costs = [100 * (r["scores"][MENDED][CLEAN] - r["scores"][AS_IS][CLEAN]) for r in clean]
    never = [left(results.of(UNSEEN, "clean"), without(kind), _cells(kind), KNOWN) for kind in CORRUPTIONS]
    rows = [
        ["relative robustness, trained clean", "at least 97", *_reached(clean, 97)],
        ["clean mAP, mended - as is", "within 0.3", f"{np.mean(costs):+.2f}, the worst run {min(costs):+.2f}"],
        ["relative robustness, trained with drops", "at least 98", *_reached(drop, 98)],
        [
            "relative robustness, kind never met",
            "at least 95",
            f"{np.mean(never):.1f}, the worst kind {min(never):.1f}",
        ],
    ]
    rows[1].append("met" if min(costs) >= -0.3 else "missed")
    rows[3].append("met" if np.mean(never) >= 95 else "missed")
    return table(["", "aim", "measured", ""], rows)


def _reached(records: Sequence[Record], least: float) -> list[str]:
    each = [relative(record, MENDED, PUPPETS_C) for record in records]
    told = f"{interval(records, MENDED)}, the lowest of {len(each)} runs {min(each):.1f}"
    return [told, "met" if np.mean(each) >= least else "missed"]


def _cells(kind: str) -> list[str]:
    return [f"{PROFILE}/{kind}:{level}" for level in SHARES]


def kind_table(results: Results) -> str:
    """What is left under each kind and share, of detectors trained clean."""
    rows, records = [], results.of("main", "clean")
    for way in WAYS:
        row = [way]
        for kind in CORRUPTIONS:
            shares = [left(records, way, [cell]) for cell in _cells(kind)]
            row.append(" / ".join(f"{share:.1f}" for share in shares))
        rows.append(row)
    return table(["struck frames", *map(_words, CORRUPTIONS)], rows)


def frame_table(results: Results) -> str:
    """What the inspector found in the films."""
    found = results.of("main", "clean")[0]["found"][MENDED]
    cells = {kind: [found[cell] for cell in _cells(kind)] for kind in CORRUPTIONS}
    hits = [" / ".join(f"{100 * one[0] / one[1]:.1f}" for one in some) for some in cells.values()]
    alarms = [f"{_alarms([found[CLEAN]]):.2f}", *(f"{_alarms(some):.2f}" for some in cells.values())]
    rows = [["struck frames found", "", *hits], ["others taken for struck ones", *alarms]]
    return table(["", CLEAN, *map(_words, CORRUPTIONS)], rows)


def _alarms(counts: Sequence[Sequence[int]]) -> float:
    return 100 * sum(one[2] for one in counts) / max(sum(one[3] for one in counts), 1)


def error_table(results: Results) -> str:
    """DETAD's errors, the mean over detectors: what each kind costs, and the share of actions that are missed."""
    rows = []
    states = ((AS_IS, CLEAN), (AS_IS, "corrupted"), (MENDED, CLEAN), (MENDED, "corrupted"), (KNOWN, "corrupted"))
    for treatment in ("clean", "drop"):
        records = results.of("main", treatment)
        for way, state in states:
            told = [np.mean([100 * r["diagnosis"][way][state][error] for r in records]) for error in ERRORS]
            rows.append([treatment, way, state, *(f"{value:.2f}" for value in told)])
    return table(["trained", "struck frames", "video", *(_words(error) for error in ERRORS)], rows)


def unseen_table(results: Results) -> str:
    """Kinds that an inspector never met, all as shares of the clean score as it is."""
    rows, main, records = [], results.beside(UNSEEN), results.of(UNSEEN, "clean")
    for kind in CORRUPTIONS:
        cells, lacking = _cells(kind), without(kind)
        found = records[0]["found"][lacking]
        hit, of = (sum(found[cell][i] for cell in cells) for i in (0, 1))
        told = [left(main, way, cells) for way in (AS_IS, MENDED)] + [left(records, EVERYTHING, cells, KNOWN)]
        row = [_words(kind), *(f"{value:.1f}" for value in told), interval(records, lacking, KNOWN)]
        row += [f"{left(main, KNOWN, cells):.1f}", f"{100 * hit / of:.1f}", f"{_alarms([found[CLEAN]]):.2f}"]
        rows.append([*row, _cost(records, lacking, KNOWN)])
    means = [f"{np.mean([float(row[i].split()[0]) for row in rows]):.1f}" for i in range(1, 6)]
    all_met = records[0]["found"][EVERYTHING][CLEAN]
    rows.append(["mean", *means, "", "", ""])
    rows.append(["all met", *[""] * 6, f"{_alarms([all_met]):.2f}", _cost(records, EVERYTHING, KNOWN)])
    head = ["kind", "as is", "shipped", "met, as many steps", "never met", "known"]
    return table([*head, "found, %", "false alarms, %", "clean mAP"], rows)


def _cost(records: Sequence[Record], way: str, clean: str) -> str:
    """What a way of mending does to the clean score, in points."""
    return (
        f"{100 * np.mean([record['scores'][way][CLEAN] - record['scores'][clean][CLEAN] for record in records]):+.2f}"
    )


def length_table(results: Results) -> str:
    """Stretches of all lengths."""
    rows = []
    for kind in CORRUPTIONS:
        for way in WAYS:
            row = [_words(kind), way]
            for percent in LENGTHS:
                cell = length_cell(kind, percent)
                records = results.beside("lengths") if cell in PUPPETS_C else results.of("lengths", "clean")
                row.append(f"{left(records, way, [cell]):.1f}")
            rows.append(row)
    return table(["kind", "struck frames", *(f"{percent:g} %" for percent in LENGTHS)], rows)


def background_table(results: Results) -> str:
    """Frames struck outside of actions: mAP of each detector, and what was found."""
    records = [record for record in results.shipped if record["run"]["group"] == "background"]
    found, rows = records[0]["found"][MENDED], []
    for cell in (CLEAN, *(cell.name for cell in GROUPS["background"])):
        row = [_words(cell.partition(":")[0])]
        for record in records:
            row.append(" / ".join(f"{100 * record['scores'][way][cell]:.1f}" for way in WAYS))
        hit, of, alarms, others = found[cell]
        rows.append([*row, f"{100 * hit / of:.1f}" if of else "", f"{100 * alarms / others:.2f}"])
    names = [NAMES[record["run"]["detector"]] for record in records]
    return table(["struck outside of actions", *names, "found, %", "false alarms, %"], rows)


def time_table(results: Results) -> str:
    """Mixes and changes of time: relative robustness, the mean of the detectors."""
    named = {_words(kind): _cells(kind) for kind in (*MIXES, *EXTRA)}
    rows = []
    for name, cells in named.items():
        row = [name]
        for treatment, way in COMPARED:
            runs = [r for r in results.shipped if r["run"]["treatment"] == treatment and cells[0] in r["scores"][way]]
            row.append(f"{left(runs, way, cells):.1f}")
        rows.append(row)
    return table(["", *(f"{treatment}, {way}" for treatment, way in COMPARED)], rows)


def strength_table(results: Results) -> str:
    """Strengths that no table has, and kinds on top of each other: mAP of each detector, and what was found."""
    rows: list[list[str]] = []
    names: list[str] = []
    for group in ("strengths", "together"):
        records = [record for record in results.shipped if record["run"]["group"] == group]
        names = [NAMES[record["run"]["detector"]] for record in records]
        for cell in GROUPS[group]:
            alone = len(cell.specs) == 1
            said = [_words(cell.name), str(cell.specs[0].value)] if alone else [_all(cell.specs), ""]
            for record in records:
                said.append(" / ".join(f"{100 * record['scores'][way][cell.name]:.1f}" for way in WAYS))
            hit, of = records[0]["found"][MENDED][cell.name][:2]
            rows.append([*said, f"{100 * hit / of:.1f}"])
    return table(["the central 5 % of actions", "strength", *names, "found, %"], rows)


def _all(specs: Sequence[Spec]) -> str:
    return " and ".join(_words(spec.name) for spec in specs)


def recognition_table(results: Results) -> str:
    """Clips told right, and struck frames found, by kind and share of the clip."""
    run, found = results.recognition[0], results.recognition[1]["found"]
    rows = []
    for kind in KINDS:
        cells = [f"{kind} {word}" for word in PLACES]
        row = [_words(kind)]
        row += [" / ".join(f"{100 * run['scores'][way][cell]:.0f}" for way in WAYS) for cell in cells]
        rows.append([*row, " / ".join(f"{100 * found[cell][0] / found[cell][1]:.0f}" for cell in cells)])
    return table(["struck by", *(f"{word} of the clip" for word in PLACES), "found, %"], rows)


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


def _words(text: str) -> str:
    return text.rpartition("/")[2].replace("_", " ")


TABLES: dict[str, Callable[[Results], str]] = {
    "main": main_table,
    "intervals": interval_table,
    "aims": aim_table,
    "kinds": kind_table,
    "frames": frame_table,
    "errors": error_table,
    "unseen": unseen_table,
    "lengths": length_table,
    "background": background_table,
    "time": time_table,
    "strengths": strength_table,
    "recognition": recognition_table,
    "ways": way_table,
}
filled = partial(with_tables, "mending", TABLES)

if __name__ == "__main__":
    fill_page(filled, Results())
