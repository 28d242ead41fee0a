"""What the study of mending measured, and the numbers that its tables are made of."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.recipes.thumos14_c import PROFILE
from jostle.metrics.bootstrap import bias_corrected
from studies.cells import SHARES
from studies.mending_features import AS_IS, KNOWN, MENDED
from studies.tables import NAMES as THREE
from studies.tables import ROOT

RESULTS = ROOT / "studies" / "mending.jsonl"
SHIPPED = ROOT / "studies" / "mending_shipped.jsonl"  # of the weights that come with jostle
FRAMES = ROOT / "studies" / "mending_frames.jsonl"
RECOGNITION = ROOT / "studies" / "mending_recognition.jsonl"
OTHERS = ROOT / "studies" / "mending_ways.jsonl"
NAMES = {**THREE, "vsgn": "VSGN", "e2e_tad": "E2E-TAD"}
WAYS = (AS_IS, MENDED, KNOWN)

Record = dict[str, Any]


class Results:
    """All measured runs."""

    def __init__(self) -> None:
        self.records, self.shipped, self.frames = _read(RESULTS), _read(SHIPPED), _read(FRAMES)
        self.recognition, self.ways = _read(RECOGNITION), _read(OTHERS)

    def of(self, group: str, treatment: str, detector: str | None = None, network: int = 0) -> list[Record]:
        """The runs of a group of cells, of one detector or of all."""
        wanted: Record = {"group": group, "treatment": treatment, "network": network}
        wanted |= {} if detector is None else {"detector": detector}
        return [record for record in self.records if wanted.items() <= record["run"].items()]

    def with_rule(self, group: str) -> list[Record]:
        """The runs of shipped weights in a group that was else measured before the rule stood beside the network."""
        return [record for record in self.shipped if record["run"]["group"] == group]


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
    struck, whole = (np.array([record["drawn"][one] for record in records]) for one in (way, clean or way))
    return with_ends(left(records, way, cells, clean), (struck[..., 1] / whole[..., 0]).mean(0) * 100)


def with_ends(measured: float, drawn: Any) -> str:
    """A number, and the ends of its interval."""
    ends = bias_corrected(drawn, measured, 0.95)
    return f"{measured:.1f}" + ("" if ends is None else f" [{ends[0]:.1f}, {ends[1]:.1f}]")


def costs(records: Sequence[Record], way: str = MENDED, clean: str = AS_IS) -> list[float]:
    """What a way of mending does to the clean score of each run, in points."""
    return [100 * (record["scores"][way][CLEAN] - record["scores"][clean][CLEAN]) for record in records]


def cells_of(kind: str) -> list[str]:
    """The cells of a kind of THUMOS14-C, by rising share."""
    return [f"{PROFILE}/{kind}:{level}" for level in SHARES]


def alarms(counts: Sequence[Sequence[int]]) -> float:
    """Of frames that were not struck, how many were taken for struck ones, in percent."""
    return 100 * sum(one[2] for one in counts) / max(sum(one[3] for one in counts), 1)


def words(text: str) -> str:
    """A name as a table has it."""
    return text.rpartition("/")[2].replace("_", " ")
