"""Tables of docs/results/ about the shipped inspector."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from studies.harness import Record, Results, markdown_table, table, words

KINDS = ("black_frame", "motion_blur", "occlusion", "packet_loss", "overexposure")  # of THUMOS14-C
SIDES = {"both": "to both sides", "causal": "to the past"}


def films_of(results: Results, side: str) -> dict[str, list[Record]]:
    """Return the records of films that an inspector looking to a side was tried on, by set of films."""
    films: dict[str, list[Record]] = {}
    for row in results.inspector:
        if row["side"] == side and "film" in row:
            films.setdefault(row["set"], []).append(row)
    return dict(sorted(films.items()))


def alarms(rows: Sequence[Record]) -> float:
    """Return the share of clean frames that is taken for damaged ones."""
    return sum(row["alarms"] for row in rows) / max(sum(row["frames"] for row in rows), 1)


@table("looks", "films", *map(words, KINDS), "mean", "false alarms")
def found_table(results: Results) -> Iterator[list[str]]:
    """Share of five damaged frames in a row that is found."""
    for side, label in SIDES.items():
        for name, rows in films_of(results, side).items():
            if not any(set(row["found"]) & set(KINDS) for row in rows):
                continue
            counts = [[row["found"].get(kind, [0, 0]) for row in rows] for kind in KINDS]
            shares = [sum(hit for hit, _ in own) / max(sum(of for _, of in own), 1) for own in counts]
            values = (*shares, sum(shares) / len(shares), alarms(rows))
            yield [label, f"{len(rows)} {name}", *(f"{100 * value:.1f}" for value in values)]


def content_table(results: Results) -> str:
    """False alarms on what is no damage."""
    own = {side: films_of(results, side) for side in SIDES}
    named = [name for name, rows in own["both"].items() if any(row["found"] == {} for row in rows)]
    rows = [[label, *(f"{100 * alarms(own[side][name]):.1f}" for name in named)] for side, label in SIDES.items()]
    return markdown_table(["looks", *(name.removeprefix("drawn ") for name in named)], rows)


TABLES = {"found": found_table, "content": content_table}
