"""Tables of docs/results/ about the shipped inspector."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from studies.harness import STUDIES, fill_tables, read_records

KINDS = ("black_frame", "motion_blur", "occlusion", "packet_loss", "overexposure")  # of THUMOS14-C
SIDES = {"both": "to both sides", "causal": "to the past"}

Row = dict[str, Any]  # one film, as `validate` of studies.inspector wrote it
read_results = partial(read_records, STUDIES / "inspector.jsonl")


def share(rows: Sequence[Row], kind: str) -> float | None:
    """Of the frames that a kind struck, the share that is found; None where it struck none."""
    hit, of = (sum(row["found"].get(kind, [0, 0])[i] for row in rows) for i in range(2))
    return hit / of if of else None


def found_table(rows: Sequence[Row]) -> Iterator[str]:
    """What is found of five frames in a row."""
    yield "| looks | films | " + " | ".join(kind.replace("_", " ") for kind in KINDS) + " | mean | false alarms |"
    yield "| --- " * (4 + len(KINDS)) + "|"
    for side, said in SIDES.items():
        own = [row for row in rows if row["side"] == side and "film" in row]
        for name in sorted({row["set"] for row in own if set(row["found"]) & set(KINDS)}):
            here = [row for row in own if row["set"] == name]
            shares = [share(here, kind) or 0.0 for kind in KINDS]
            yield f"| {said} | {len(here)} {name} | " + " | ".join(
                f"{100 * value:.1f}" for value in (*shares, sum(shares) / len(shares), alarms(here))
            ) + " |"  # fmt: skip


def content_table(rows: Sequence[Row]) -> Iterator[str]:
    """False alarms on what is no damage."""
    named = sorted({row["set"] for row in rows if row.get("found") == {}})
    yield "| looks | " + " | ".join(name.removeprefix("drawn ") for name in named) + " |"
    yield "| --- " * (1 + len(named)) + "|"
    for side, said in SIDES.items():
        own = [row for row in rows if row["side"] == side and "film" in row]
        shares = [alarms([row for row in own if row["set"] == name]) for name in named]
        yield f"| {said} | " + " | ".join(f"{100 * value:.1f}" for value in shares) + " |"


def alarms(rows: Sequence[Row]) -> float:
    """The share of clean frames that is taken for struck ones."""
    return sum(row["alarms"] for row in rows) / max(sum(row["frames"] for row in rows), 1)


def _lines(made: Callable[[Sequence[Row]], Iterator[str]], rows: Sequence[Row]) -> str:
    return "\n".join(made(rows))


TABLES = {"found": partial(_lines, found_table), "content": partial(_lines, content_table)}
fill_page = partial(fill_tables, "inspector", TABLES)
