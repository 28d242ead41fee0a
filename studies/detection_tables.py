"""Tables of docs/results/ about detectors, feature-based and end-to-end."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from jostle.evaluation.recipes.thumos14_c import CORRUPTIONS, POSITIONS
from studies.detection import DETECTORS, PUPPETS_C, SHARES, TREATMENTS
from studies.end_to_end import FEATURES, FRAMES, ON_FEATURES
from studies.end_to_end import TREATMENTS as WAYS
from studies.harness import STUDIES, Record, fill_tables, read_records, select_records, spread
from studies.harness import markdown_table as table

AT_HALF = 2  # of the thresholds 0.3, 0.4, 0.5, 0.6, 0.7
NAMES = {
    "actionformer": "ActionFormer",
    "tridet": "TriDet",
    "temporalmaxer": "TemporalMaxer",
    "afsd": "AFSD",
    "basictad": "BasicTAD",
    "e2e_tad": "E2E-TAD",
    "vsgn": "VSGN",
}
MAIN = ("clean", "clean, two views", "drop", "drop + TRC")
COMPARED = ("clean", "drop", "drop + TRC")
HEAD = ["clean", "corrupted", "relative robustness"]


@dataclass(frozen=True)
class Results:
    """Records of both studies."""

    records: list[Record] = field(default_factory=partial(read_records, STUDIES / "results.jsonl"))
    end_to_end: list[Record] = field(default_factory=partial(read_records, STUDIES / "end_to_end.jsonl"))

    def of(self, detector: str, treatment: str, network: int | None = None) -> list[Record]:
        """Return the runs of a feature-based detector under a treatment."""
        return select_records(self.records, detector=detector, treatment=treatment, network=network)

    def whole(self, detector: str, treatment: str) -> list[Record]:
        """Return the runs of the study of end-to-end detectors."""
        return select_records(self.end_to_end, detector=detector, treatment=treatment)


def value(record: Record, cell: str) -> float:
    """mAP at 0.5 in a cell, in percent."""
    return 100 * float(record["cells"][cell][AT_HALF])


def corrupted(record: Record, cells: Iterable[str] = PUPPETS_C) -> float:
    """The mean over cells, in percent."""
    return float(np.mean([value(record, cell) for cell in cells]))


def relative(record: Record) -> float:
    """Relative robustness, in percent."""
    return 100 * corrupted(record) / value(record, "clean")


def clean_and_corrupted(records: list[Record]) -> list[str]:
    """Clean, corrupted and relative robustness, over runs."""
    return [
        spread(value(record, "clean") for record in records),
        spread(corrupted(record) for record in records),
        spread(relative(record) for record in records),
    ]


def main_table(results: Results) -> str:
    rows = []
    for detector in DETECTORS:
        for treatment in MAIN:
            records = results.of(detector, treatment)
            rows.append([NAMES[detector], treatment, *clean_and_corrupted(records), str(len(records))])
    return table(["detector", "trained", *HEAD, "runs"], rows)


def by_corruption(records: list[Record]) -> list[str]:
    """The mean over runs for each corruption, at its three shares."""
    columns = []
    for name in CORRUPTIONS:
        levels = [np.mean([value(record, f"thumos14-c/{name}:{level}") for record in records]) for level in SHARES]
        columns.append(" / ".join(f"{level:.1f}" for level in levels))
    return columns


def cell_table(results: Results) -> str:
    rows = []
    for detector in DETECTORS:
        for treatment in COMPARED:
            records = results.of(detector, treatment)
            rows.append([NAMES[detector], treatment, *by_corruption(records)])
    return table(["detector", "trained", *(name.replace("_", " ") for name in CORRUPTIONS)], rows)


def ablation_table(results: Results, detector: str = "tridet") -> str:
    rows = []
    for treatment in TREATMENTS:
        records = results.of(detector, treatment, network=0)
        if records and (treatment == "fixed drop" or not treatment.startswith("fixed ")):
            rows.append([treatment, *clean_and_corrupted(records), str(len(records))])
    return table(["trained", *HEAD, "runs"], rows)


def transfer_table(results: Results) -> str:
    rows = []
    columns = ["clean", *(f"fixed {name} + TRC" for name in CORRUPTIONS)]
    groups = {name.replace("_", " "): [c for c in PUPPETS_C if f"/{name}:" in c] for name in CORRUPTIONS}
    for tested, cells in [("clean video", ["clean"]), *groups.items(), ("mean of 15", list(PUPPETS_C))]:
        row = [tested]
        for treatment in columns:
            row.append(spread(corrupted(record, cells) for record in results.of("tridet", treatment, network=0)))
        rows.append(row)
    return table(["tested on", "trained clean", *(name.replace("_", " ") for name in CORRUPTIONS)], rows)


def position_table(results: Results) -> str:
    rows = []
    cells = {
        "clean video": "clean",
        "one black frame at 50 %": "one frame",
        **{f"five at {p} %": f"five at {p} %" for p in POSITIONS},
        "five in the background": "five in the background",
    }
    for name, cell in cells.items():
        row = [name]
        for detector in DETECTORS:
            for treatment in ("clean", "drop"):
                row.append(f"{np.mean([value(record, cell) for record in results.of(detector, treatment)]):.2f}")
        rows.append(row)
    head = [f"{NAMES[detector]}, {treatment}" for detector in DETECTORS for treatment in ("clean", "drop")]
    return table(["struck", *head], rows)


def diagnosis_table(results: Results) -> str:
    rows = []
    for detector in DETECTORS:
        for treatment in ("clean", "drop"):
            records = results.of(detector, treatment)
            for state in ("clean", "corrupted"):
                means = {
                    key: np.mean([record["diagnosis"][state][key] for record in records])
                    for key in records[0]["diagnosis"][state]
                }
                rows.append([NAMES[detector], treatment, state, *(f"{100 * mean:.2f}" for mean in means.values())])
    head = [key.replace("_", " ") for key in results.records[0]["diagnosis"]["clean"]]
    return table(["detector", "trained", "video", *head], rows)


def extractor_table(results: Results) -> str:
    rows = []
    for network in (0, 1):
        for detector in DETECTORS:
            for treatment in COMPARED:
                records = results.of(detector, treatment, network=network)
                rows.append([str(network), NAMES[detector], treatment, *clean_and_corrupted(records)])
    return table(["extractor", "detector", "trained", *HEAD], rows)


def paired_table(results: Results) -> str:
    """What one treatment has over another, run by run: the same seeds, so the luck of an extractor cancels."""
    pairs_of = [(detector, *pair) for pair in (("drop", "clean"), ("drop + TRC", "clean"), ("drop + TRC", "drop"),
             ("clean, two views", "clean")) for detector in DETECTORS]  # fmt: skip
    pairs_of += [("tridet", *pair) for pair in (("both + TRC", "both"), ("drop", "fixed drop"), ("drop x 8", "drop"))]
    rows = []
    for detector, one, other in pairs_of:
        found = {_seeds(record): record for record in results.of(detector, other)}
        pairs = [(record, found[_seeds(record)]) for record in results.of(detector, one) if _seeds(record) in found]
        changes = [
            spread(measure(a) - measure(b) for a, b in pairs)
            for measure in (lambda record: value(record, "clean"), corrupted, relative)
        ]
        rows.append([NAMES[detector], f"{one} over {other}", *changes, str(len(pairs))])
    return table(["detector", "", *HEAD, "pairs"], rows)


def _seeds(record: Record) -> tuple[int, int]:
    return record["run"]["network"], record["run"]["seed"]


def shortcut_table(results: Results) -> str:
    rows = []
    cells = ("clean", "one frame", "five at 50 %", "five in the background")
    for detector in ("tridet", "temporalmaxer"):
        for treatment in ("clean", "drop", "drop x 8", "drop in actions"):
            records = results.of(detector, treatment, network=0)
            row = [spread(value(record, cell) for record in records) for cell in cells]
            alarms = [spread(100 * record["diagnosis"][state]["background"] for record in records)
                      for state in ("clean", "corrupted")]  # fmt: skip
            rows.append([NAMES[detector], treatment, *row, *alarms])
    head = ["clean video", "one black frame", "five at 50 %", "five in the background"]
    return table(["detector", "trained", *head, "false alarms, clean", "false alarms, corrupted"], rows)


def _row(name: str, treatment: str, records: list[Record]) -> list[str]:
    return [name, treatment, *clean_and_corrupted(records), str(len(records))]


def whole_main_table(results: Results) -> str:
    """Every treatment of every detector."""
    rows = [_row(NAMES[name], how, results.whole(name, how)) for name in FRAMES for how in WAYS]
    rows += [_row(NAMES[name], how, results.whole(name, how)) for name in FEATURES for how in ON_FEATURES]
    return table(["detector", "trained", *HEAD, "runs"], rows)


def beside_table(results: Results) -> str:
    """Clean training of all seven: those on features of the shipped extractor, and those of frames."""
    rows = [_row(NAMES[name], "features", results.of(name, "clean", network=0)) for name in DETECTORS]
    rows += [_row(NAMES[name], "features", results.whole(name, "clean")) for name in FEATURES]
    rows += [_row(NAMES[name], "frames, backbone frozen", results.whole(name, "frozen, clean")) for name in FRAMES]
    rows += [_row(NAMES[name], "frames, end to end", results.whole(name, "clean")) for name in FRAMES]
    return table(["detector", "looks at", *HEAD, "runs"], rows)


def whole_cell_table(results: Results) -> str:
    """Each corruption at its three shares."""
    rows = [[NAMES[name], how, *by_corruption(results.whole(name, how))] for name in FRAMES for how in WAYS]
    return table(["detector", "trained", *(name.replace("_", " ") for name in CORRUPTIONS)], rows)


TABLES: dict[str, Callable[[Results], str]] = {
    "main": main_table,
    "cells": cell_table,
    "ablations": ablation_table,
    "transfer": transfer_table,
    "positions": position_table,
    "diagnosis": diagnosis_table,
    "extractors": extractor_table,
    "paired": paired_table,
    "shortcut": shortcut_table,
    "temporalmaxer": lambda results: ablation_table(results, "temporalmaxer"),
}
END_TO_END_TABLES: dict[str, Callable[[Results], str]] = {
    "main": whole_main_table,
    "beside": beside_table,
    "cells": whole_cell_table,
}


def fill_page(page: str, results: Results) -> str:
    """Return the page with the tables about detectors filled."""
    return fill_tables("end to end", END_TO_END_TABLES, fill_tables("table", TABLES, page, results), results)
