"""The tables of docs/results.md on mending in features, from its records."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from experiments.cells import CORRUPTIONS, SHARES
from experiments.mending import RESULTS, WAYS
from experiments.mending_ways import WAYS as OTHER_WAYS
from experiments.treatments import DETECTORS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "results.md"
NAMES = {"actionformer": "ActionFormer", "tridet": "TriDet", "temporalmaxer": "TemporalMaxer"}
Row = dict[str, Any]


def read_records(path: Path = RESULTS) -> list[Row]:
    """A line a run."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _of(rows: Sequence[Row], study: str, **wanted: str) -> list[Row]:
    own = [row for row in rows if row["study"] == study]
    return [row for row in own if all(row["run"][key] == value for key, value in wanted.items())]


def _number(value: Sequence[float | None]) -> str:
    middle, low, high = value
    assert middle is not None
    return f"{100 * middle:.1f}" + ("" if low is None or high is None else f" [{100 * low:.1f}, {100 * high:.1f}]")


def main_table(rows: Sequence[Row]) -> Iterator[str]:
    """What is left of the clean score, by detector, training and way."""
    yield "| detector | trained | struck frames | clean | corrupted, mean | relative robustness | films |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for name in DETECTORS:
        for trained in ("clean", "robust"):
            for way in WAYS:
                for row in _of(rows, "main", detector=name, weights=trained, way=way):
                    figures = " | ".join(_number(row[key]) for key in ("clean", "corrupted", "relative"))
                    yield f"| {NAMES[name]} | {trained} | {way} | {figures} | {row['run']['films']} |"


def kind_table(rows: Sequence[Row]) -> Iterator[str]:
    """What is left under each kind, the mean over the three shares and the detectors that were trained clean."""
    kinds = list(CORRUPTIONS)
    yield "| struck frames | " + " | ".join(kind.replace("_", " ") for kind in kinds) + " |"
    yield "| --- " * (1 + len(kinds)) + "|"
    for way in WAYS:
        own = _of(rows, "main", weights="clean", way=way)
        shares = []
        for kind in kinds:
            left = [row["cells"][f"thumos14-c/{kind}:{level}"] / row["clean"][0] for row in own for level in SHARES]
            shares.append(sum(left) / len(left))
        yield f"| {way} | " + " | ".join(f"{100 * share:.1f}" for share in shares) + " |"


def frame_table(rows: Sequence[Row]) -> Iterator[str]:
    """What the inspector found in these films."""
    told = _of(rows, "main", way="mended")[0]["frames"]
    kinds = list(CORRUPTIONS)
    yield "| | clean | " + " | ".join(kind.replace("_", " ") for kind in kinds) + " |"
    yield "| --- " * (2 + len(kinds)) + "|"
    by_kind = [[told[f"thumos14-c/{kind}:{level}"] for level in SHARES] for kind in kinds]
    found = [100 * sum(one[0] for one in cells) / max(sum(one[1] for one in cells), 1) for cells in by_kind]
    every = ([told["clean"]], *by_kind)
    alarms = [100 * sum(one[2] for one in cells) / sum(one[3] for one in cells) for cells in every]
    yield "| struck frames found, % | | " + " | ".join(f"{share:.1f}" for share in found) + " |"
    yield "| false alarms, % of other frames | " + " | ".join(f"{share:.2f}" for share in alarms) + " |"


def way_table(rows: Sequence[Row]) -> Iterator[str]:
    """Ways to use the knowledge of struck frames, these being known: relative robustness."""
    yield "| | " + " | ".join(NAMES[name] for name in DETECTORS) + " | mean |"
    yield "| --- " * (2 + len(DETECTORS)) + "|"
    for way in OTHER_WAYS:
        left = [_of(rows, "ways", detector=name, way=way)[0]["relative"][0] for name in DETECTORS]
        yield f"| {way} | " + " | ".join(f"{100 * value:.1f}" for value in (*left, sum(left) / len(left))) + " |"


TABLES = {"main": main_table, "kinds": kind_table, "frames": frame_table, "ways": way_table}


def filled(page: str, rows: Sequence[Row]) -> str:
    """The page with every `<!-- mending: NAME -->` ... `<!-- end -->` filled from the records."""

    def put(found: re.Match[str]) -> str:
        return f"<!-- mending: {found[1]} -->\n\n" + "\n".join(TABLES[found[1]](rows)) + "\n\n<!-- end -->"

    return re.sub(r"<!-- mending: (\w+) -->.*?<!-- end -->", put, page, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), read_records()), encoding="utf-8")
