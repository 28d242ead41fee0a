"""Tables of docs/results/ about watching a stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from statistics import median

from studies.harness import Record, Results, markdown_table, table
from studies.watching import OPENED, SYSTEMS, poisson_interval
from studies.world_damage import KINDS, TABLE

STREAMS = tuple(name for name in SYSTEMS if name.startswith(("rules", "stream")))
BINS = (0.4, 0.74, 0.8, 0.92, 0.955, 0.965, 0.975, 0.985, 1.01)  # edges of confidences


def damaged_clips(results: Results, kind: str) -> list[Record]:
    """Return the records of clips with damaged frames of a kind."""
    return [record for record in results.of("watching", kind=kind) if record["damaged"]]


def found_share(records: Sequence[Record], system: str) -> float | None:
    """Return the percentage of the damaged frames of some clips that a system finds; None without clips."""
    damaged = sum(record["damaged"] for record in records)
    return 100 * sum(record["systems"][system]["found"] for record in records) / damaged if damaged else None


@table("found, % of frames", *SYSTEMS)
def found_table(results: Results) -> Iterator[list[str]]:
    """Share of damaged frames found, by kind."""
    for kind in (*KINDS, *OPENED):
        records = damaged_clips(results, kind)
        shares = [found_share(records, system) for system in SYSTEMS]
        yield [kind, *("" if share is None else f"{share:.0f}" for share in shares)]
    first_ten = [damaged_clips(results, kind) for kind in TABLE]
    means = [[found_share(records, system) or 0.0 for records in first_ten] for system in SYSTEMS]
    yield ["mean of the first ten", *(f"{sum(mean) / len(mean):.0f}" for mean in means)]


@table("delay in frames, right kind in %", *STREAMS)
def delay_table(results: Results) -> Iterator[list[str]]:
    """Median delay in frames to the first frame found, and the share of frames found with the right kind."""
    for kind in (*KINDS, *OPENED):
        cells = []
        for system in STREAMS:
            scores = [record["systems"][system] for record in damaged_clips(results, kind)]
            hits = sum(score["found"] for score in scores)
            right = f"{100 * sum(score['right'] for score in scores) / hits:.0f}" if hits else "-"
            # A stretch that is never found has an infinite delay.
            delays = [inf if score["delay"] is None else score["delay"] for score in scores]
            delay = median(delays) if delays else inf
            cells.append(f"{'never' if delay == inf else f'{delay:g}'}, {right}")
        yield [kind, *cells]


def false_table(results: Results) -> str:
    """Format the false events on clean footage, for ten minutes, with the exact interval of a Poisson count."""
    records = results.of("watching", kind="clean")
    minutes = sum(record["length"] for record in records) / 60
    frames = sum(record["frames"] for record in records)
    rows = []
    for system in SYSTEMS:
        events, alarms = (sum(record["systems"][system][key] for record in records) for key in ("events", "alarms"))
        lo, hi = (10 * value / minutes for value in poisson_interval(events))
        rate = f"{10 * events / minutes:.1f} ({lo:.1f} to {hi:.1f})"
        rows.append([system, f"{events}", rate, f"{100 * alarms / frames:.2f}"])
    head = [f"{len(records)} clean clips, {minutes:.1f} minutes", "events", "in ten minutes (95 %)", "% of frames"]
    return markdown_table(head, rows)


@table("confidence", "verdicts", "mean confidence, %", "right, %")
def confidence_table(results: Results) -> Iterator[list[str]]:
    """Share of right verdicts by confidence, for the look-ahead of 5, on clean and damaged clips."""
    counts = [[0, 0, 0.0] for _ in BINS[1:]]
    for record in results.watching:
        for value, right, count in record["confidences"].get("stream 5", ()):
            here = counts[sum(value >= edge for edge in BINS[1:-1])]
            here[0], here[1], here[2] = here[0] + count * right, here[1] + count, here[2] + count * value
    for (right, total, mean), lo, hi in zip(counts, BINS, BINS[1:], strict=False):
        if total:
            yield [f"{lo:g} to {min(hi, 1):g}", f"{total}", f"{100 * mean / total:.0f}", f"{100 * right / total:.0f}"]


TABLES = {"found": found_table, "delay": delay_table, "false": false_table, "confidence": confidence_table}
