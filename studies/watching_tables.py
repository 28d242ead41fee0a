"""Tables of docs/results/ about watching a stream."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from statistics import median

from studies.harness import STUDIES, Record, fill_tables, markdown_table, read_records
from studies.watching import OPENED, SYSTEMS, poisson_interval
from studies.world_damage import KINDS, TABLE

STREAMS = tuple(name for name in SYSTEMS if name.startswith(("rules", "stream")))
BINS = (0.4, 0.74, 0.8, 0.92, 0.955, 0.965, 0.975, 0.985, 1.01)  # edges of confidences
read_results = partial(read_records, STUDIES / "watching.jsonl")


def found_share(records: Sequence[Record], kind: str, system: str) -> float | None:
    """Return the percentage of the damaged frames of a kind that a system finds; None where none was damaged."""
    own = [record for record in records if record["run"]["kind"] == kind and record["damaged"]]
    damaged = sum(record["damaged"] for record in own)
    return 100 * sum(record["systems"][system]["found"] for record in own) / damaged if damaged else None


def found_table(records: Sequence[Record]) -> str:
    """Format the share of damaged frames found, by kind."""
    rows = []
    for kind in (*KINDS, *OPENED):
        shares = [found_share(records, kind, system) for system in SYSTEMS]
        rows.append([kind, *("" if share is None else f"{share:.0f}" for share in shares)])
    means = [[found_share(records, kind, system) or 0.0 for kind in TABLE] for system in SYSTEMS]
    rows.append(["mean of the first ten", *(f"{sum(mean) / len(mean):.0f}" for mean in means)])
    return markdown_table(["found, % of frames", *SYSTEMS], rows)


def delay_table(records: Sequence[Record]) -> str:
    """Format the median delay in frames to the first frame found, and the share that is named rightly."""
    rows = []
    for kind in (*KINDS, *OPENED):
        own = [record for record in records if record["run"]["kind"] == kind and record["damaged"]]
        cells = []
        for system in STREAMS:
            scores = [record["systems"][system] for record in own]
            delays = [score["delay"] for score in scores if score["delay"] is not None]
            hits = sum(score["found"] for score in scores)
            right = f"{100 * sum(score['right'] for score in scores) / hits:.0f}" if hits else "-"
            # A stretch that is never found has an infinite delay.
            ordered = sorted([*delays, *[float("inf")] * (len(scores) - len(delays))])
            delay = median(ordered) if ordered else float("inf")
            cells.append(f"{'never' if delay == float('inf') else f'{delay:g}'}, {right}")
        rows.append([kind, *cells])
    return markdown_table(["delay in frames, right kind in %", *STREAMS], rows)


def false_table(records: Sequence[Record]) -> str:
    """Format the false events on clean footage, for ten minutes, with the exact interval of a Poisson count."""
    own = [record for record in records if record["run"]["kind"] == "clean"]
    minutes = sum(record["length"] for record in own) / 60
    rows = []
    for system in SYSTEMS:
        events = sum(record["systems"][system]["events"] for record in own)
        alarms = sum(record["systems"][system]["alarms"] for record in own)
        lo, hi = (10 * value / minutes for value in poisson_interval(events))
        frames = sum(record["frames"] for record in own)
        rows.append([system, f"{events}", f"{10 * events / minutes:.1f} ({lo:.1f} to {hi:.1f})",
                     f"{100 * alarms / frames:.2f}"])  # fmt: skip
    head = [f"{len(own)} clean clips, {minutes:.1f} minutes", "events", "in ten minutes (95 %)", "% of frames"]
    return markdown_table(head, rows)


def confidence_table(records: Sequence[Record]) -> str:
    """Format how often verdicts of a confidence are right, for the look-ahead of 5, on clean and damaged clips."""
    counts = [[0, 0, 0.0] for _ in BINS[1:]]
    for record in records:
        for value, right, count in record["confidences"].get("stream 5", ()):
            here = counts[sum(value >= edge for edge in BINS[1:-1])]
            here[0], here[1], here[2] = here[0] + count * right, here[1] + count, here[2] + count * value
    rows = [
        [f"{lo:g} to {min(hi, 1):g}", f"{total}", f"{100 * mean / total:.0f}", f"{100 * right / total:.0f}"]
        for (right, total, mean), lo, hi in zip(counts, BINS, BINS[1:], strict=False)
        if total
    ]
    return markdown_table(["confidence", "verdicts", "mean confidence, %", "right, %"], rows)


TABLES = {"found": found_table, "delay": delay_table, "false": false_table, "confidence": confidence_table}
fill_page = partial(fill_tables, "watching", TABLES)
