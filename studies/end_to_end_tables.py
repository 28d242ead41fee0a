"""The tables of docs/results.md about detectors of frames: `python -m studies.end_to_end_tables` fills them."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

from studies.cells import CORRUPTIONS
from studies.end_to_end import FEATURES, FRAMES, ON_FEATURES, TREATMENTS
from studies.page import fill_page, with_tables
from studies.tables import NAMES as BESIDE
from studies.tables import Record, by_corruption, clean_and_corrupted, table
from studies.tables import Results as FeatureResults

RESULTS = Path(__file__).with_name("end_to_end.jsonl")
NAMES = {"afsd": "AFSD", "basictad": "BasicTAD", "e2e_tad": "E2E-TAD", "vsgn": "VSGN"}


class Results:
    """All measured runs."""

    def __init__(self, path: Path = RESULTS) -> None:
        self.records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def of(self, detector: str, treatment: str) -> list[Record]:
        """The runs of a detector under a treatment, by seed."""
        wanted = {"detector": detector, "treatment": treatment}
        found = [record for record in self.records if wanted.items() <= record["run"].items()]
        return sorted(found, key=lambda record: record["run"]["seed"])


def _row(name: str, treatment: str, records: list[Record]) -> list[str]:
    return [name, treatment, *clean_and_corrupted(records), str(len(records))]


def main_table(results: Results) -> str:
    """Every treatment of every detector."""
    rows = [_row(NAMES[name], how, results.of(name, how)) for name in FRAMES for how in TREATMENTS]
    rows += [_row(NAMES[name], how, results.of(name, how)) for name in FEATURES for how in ON_FEATURES]
    return table(["detector", "trained", "clean", "corrupted", "relative robustness", "runs"], rows)


def beside_table(results: Results) -> str:
    """Clean training of all seven: those on features of the shipped extractor, and those of frames."""
    features = FeatureResults()
    rows = [[*_row(said, "features", features.of(name, "clean", network=0))] for name, said in BESIDE.items()]
    rows += [_row(NAMES[name], "features", results.of(name, "clean")) for name in FEATURES]
    rows += [_row(NAMES[name], "frames, backbone frozen", results.of(name, "frozen, clean")) for name in FRAMES]
    rows += [_row(NAMES[name], "frames, end to end", results.of(name, "clean")) for name in FRAMES]
    return table(["detector", "looks at", "clean", "corrupted", "relative robustness", "runs"], rows)


def cell_table(results: Results) -> str:
    """Each corruption at its three shares."""
    rows = [[NAMES[name], how, *by_corruption(results.of(name, how))] for name in FRAMES for how in TREATMENTS]
    return table(["detector", "trained", *(name.replace("_", " ") for name in CORRUPTIONS)], rows)


TABLES: dict[str, Callable[[Results], str]] = {"main": main_table, "beside": beside_table, "cells": cell_table}
filled = partial(with_tables, "end to end", TABLES)

if __name__ == "__main__":
    fill_page(filled, Results())
