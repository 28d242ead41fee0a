"""Scores, diagnoses and other tables as lines of text: aligned columns, and a bar chart of severities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from jostle.cli import console
from jostle.core.formatting import between, percent, signed

if TYPE_CHECKING:
    from jostle.core.types.truth import Truth
    from jostle.metrics.answers import AnswerChange, AnswerScore
    from jostle.metrics.box_stability import BoxStability
    from jostle.metrics.diagnosis.diagnosis import Diagnosis
    from jostle.metrics.moments import MomentScore
    from jostle.metrics.pm_k import PmK
    from jostle.metrics.proposals import ProposalScore
    from jostle.metrics.score import Comparison, Score
    from jostle.metrics.video_classification import ClassificationScore

BARS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], low: float, high: float) -> str:
    """A bar a value, the lowest at `low` and the highest at `high`.

    >>> sparkline([0.8, 0.7, 0.4], 0.4, 0.8)
    '█▆▁'
    """
    span = high - low
    shares = [(value - low) / span if span > 0 else 1.0 for value in values]  # a tiny span makes them infinite
    return "".join(BARS[round(min(max(share, 0.0), 1.0) * (len(BARS) - 1))] for share in shares)


def summary_lines(scores: dict[str, Any]) -> list[str]:
    """The counted corruptions of a run, one line each: bars, the mean over severities, and what that is of clean.

    The highest bar is the clean value, the lowest half of it, or the worst cell where that is lower: so a small loss
    looks small.
    """
    from jostle.reporting.analysis.labels import grid_of

    value = {cell["cell"]: cell["value"] for cell in scores["cells"]}
    if not value:
        return []
    clean, low = scores["clean"], min(scores["clean"] / 2, *value.values())
    rows = [["", "", "mean", "of clean"]]
    for row in grid_of(list(value), list(value)).rows:
        means = scores["by_corruption"][row.corruption]
        bars = sparkline([clean, *(value[cell] for cell in row.cells.values())], low, clean)
        rows.append([console.escape(row.name), bars, percent(means["mean"]), percent(means["relative"])])
    wide = max(len(row[1]) for row in rows)
    rows = [[row[0], row[1].ljust(wide), *row[2:]] for row in rows]
    return [*lines_of(rows), f"bars: clean and each severity, from {percent(low)} to {percent(clean)}"]


def lines_of(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as aligned lines: the first column to the left, the others to the right.

    >>> lines_of([["tIoU", "mAP"], ["0.5", "61.53"]])
    ['tIoU    mAP', '0.5   61.53']
    """
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if not i else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def variant(truth: Truth) -> str | None:
    """The known variant of a data set that this is, if any."""
    from jostle.io.files.truth_table import variant_of

    return variant_of(truth)


def truth_line(counted: Truth, whole: Truth) -> str:
    """Return one line on ground truth and protocol of a score."""
    known = variant(whole)
    subset = f", subset {counted.subset}" if counted.subset else ""
    return (
        f"{len(counted.videos)} videos, {len(counted)} instances, {sum(counted.counts > 0)} classes{subset}"
        f"{f'; {known}' if known else ''}; truth {counted.fingerprint[:19]}"
    )


def score_lines(score: Score) -> list[str]:
    """A score as a table: one line a threshold."""
    rows = [["tIoU", "mAP %"] + (["95 %"] if score.interval else [])]
    for i, (tiou, value) in enumerate(zip(score.tious, score.map, strict=True)):
        rows.append([f"{tiou:g}", percent(value)] + ([between(score.interval.map[i])] if score.interval else []))
    rows.append(
        ["average", percent(score.average_map)] + ([between(score.interval.average_map)] if score.interval else [])
    )
    counts = score.predictions
    return [f"{score.protocol} protocol, {counts['count']} predictions in {counts['videos']} videos", *lines_of(rows)]


def comparison_lines(names: Sequence[str], scores: list[Score], both: Comparison) -> list[str]:
    """Two scores and what lies between them."""
    rows = [["tIoU", *_heads(names), "change"] + (["95 %"] if both.interval else [])]
    for i, tiou in enumerate(both.tious):
        row = [f"{tiou:g}", percent(scores[0].map[i]), percent(scores[1].map[i]), signed(both.map[i])]
        rows.append(row + ([between(both.interval.map[i])] if both.interval else []))
    row = ["average", percent(scores[0].average_map), percent(scores[1].average_map), signed(both.average_map)]
    rows.append(row + ([between(both.interval.average_map)] if both.interval else []))
    of = "; the interval is of the change, over the same draws of videos" if both.interval else ""
    return [f"{both.protocol} protocol{of}", *lines_of(rows)]


def class_lines(names: Sequence[str], scores: list[Score]) -> list[str]:
    """Return one line for each class."""
    head = ["class", *(["average AP %"] if len(scores) == 1 else [*_heads(names), "change"])]
    rows = [head]
    for name, values in scores[0].per_class.items():
        row = [console.escape(name), percent(float(values.mean()))]
        if len(scores) > 1:
            after = float(scores[1].per_class[name].mean())
            row += [percent(after), signed(after - float(values.mean()))]
        rows.append(row)
    return lines_of(rows)


def _heads(names: Sequence[str]) -> list[str]:
    return [f"{console.escape(name)} %" for name in names]


def proposal_lines(score: ProposalScore) -> list[str]:
    """Average recall at a few numbers of proposals, and the area under the curve."""
    rows = [["proposals a video", "average recall %"]]
    for j in (0, 4, 9, 49, 99):
        rows.append([f"{score.average_number[j]:.1f}", percent(score.average_recall[j])])
    facts = f"{score.proposals} proposals for {score.instances} instances in {score.videos} videos"
    return [facts, *lines_of(rows), f"area under the curve: {percent(score.area)} %"]


def classification_lines(score: ClassificationScore) -> list[str]:
    """Mean AP and hits of video-level predictions."""
    rows = [
        ["", "%"],
        ["mean AP", percent(score.mean_ap)],
        [f"hit@{score.k}", percent(score.hit_at_k)],
        [f"average hit@{score.k}", percent(score.average_hit_at_k)],
    ]
    ignored = f", {score.unknown_label} predictions of unknown classes" if score.unknown_label else ""
    return [f"{score.videos} videos, {score.pairs} labels{ignored}", *lines_of(rows)]


def answer_lines(score: AnswerScore, other: AnswerScore | None = None, change: AnswerChange | None = None) -> list[str]:
    """Accuracy of answers by type, with chance and unreadable answers, and what changed in other answers."""
    whole = score.overall
    rows = [["", "questions", "accuracy %", "95 %", "chance %", "unreadable", "missing"]]
    groups = [("all", whole), *score.by_type.items()]
    if score.order is not None:
        groups.append(("needs order", score.order))
    for name, share in groups:
        counts = [str(share.unreadable), str(share.missing)]
        text = [percent(share.accuracy), between(share.interval), percent(share.chance)]
        rows.append([console.escape(name), str(share.count), *text, *counts])
    lines = [f"{whole.count} questions about {score.videos} videos", *lines_of(rows)]
    if score.calibration is not None:
        sure = score.calibration
        lines.append(f"Brier {sure.brier:.4f}, ECE {sure.ece:.4f} over {sure.count} answers with probabilities")
    if other is not None and change is not None:
        lines += ["", *lines_of([["against", "%", "95 %"], *_change_rows(other, change)])]
    return [*lines, "intervals: 95 %, over videos; unreadable and missing answers are wrong"]


def _change_rows(other: AnswerScore, change: AnswerChange) -> list[list[str]]:
    return [
        ["accuracy", percent(other.overall.accuracy), between(other.overall.interval)],
        ["of the first", percent(change.relative), ""],
        ["right ones that stay right", percent(change.resist_rate), between(change.resist_interval)],
        ["wrong ones that become right", percent(change.corrective_flips), between(change.corrective_interval)],
    ]


def moment_lines(scores: Sequence[MomentScore]) -> list[str]:
    """R@1, mean IoU and mAP of one file of windows, or of two side by side."""
    first = scores[0]
    rows = [["", *(word for _ in scores for word in ("%", "95 %"))]]
    for tiou in first.recall:
        values = [(one.recall[tiou], one.recall_intervals[tiou]) for one in scores]
        rows.append(
            [f"R@1, IoU {tiou:g}", *(text for value, pair in values for text in (percent(value), between(pair)))]
        )
    rows.append(["mean IoU", *(t for s in scores for t in (percent(s.mean_iou), between(s.mean_iou_interval)))])
    maps = [(score.windows.average_map, score.average_map_interval) for score in scores]
    rows.append(["mAP, 0.5 to 0.95", *(text for value, pair in maps for text in (percent(value), between(pair)))])
    for name in first.by_length:
        values_of = [score.by_length[name].average_map for score in scores if name in score.by_length]
        rows.append([f"mAP, {name} windows", *(text for value in values_of for text in (percent(value), ""))])
    for level in first.highlights:
        hits = [score.highlights[level] for score in scores if level in score.highlights]
        name = level.replace("_", " ")
        rows.append([f"highlights mAP, {name}", *(text for one in hits for text in (percent(one.mean_ap), ""))])
        rows.append([f"highlights Hit@1, {name}", *(text for one in hits for text in (percent(one.hit_at_1), ""))])
    width = max(map(len, rows))
    lost = (
        f"; {first.empty} without windows and {first.missing} missing count as 0" if first.empty + first.missing else ""
    )
    bugs = f"; reproduced: {', '.join(first.reproduce_bugs)}" if first.reproduce_bugs else ""
    head = f"{first.count} sentences about {first.videos} videos{lost}{bugs}"
    return [head, *lines_of([[*row, *[""] * (width - len(row))] for row in rows])]


def diagnosis_lines(names: Sequence[str], diagnoses: list[Diagnosis]) -> list[str]:
    """A diagnosis, or two side by side."""
    contents = [one.to_dict() for one in diagnoses]

    def row(name: str, values: list[float | None]) -> list[str]:
        change = [signed(values[1] - values[0])] if len(values) > 1 and None not in values else [""] * (len(values) - 1)  # type: ignore[operator]
        return [name, *(percent(value) for value in values), *change]

    head = ["%"] if len(diagnoses) == 1 else [*_heads(names), "change"]
    facts = contents[0]
    lines = [
        f"{facts['style']} style at tIoU {', '.join(f'{t:g}' for t in facts['tious'])}; "
        f"{facts['truth']['instances']} instances, N = {facts['normaliser']:g}"
    ]
    rows: list[list[str]] = [["", *head]]
    rows.append(row("average mAP", [one["average_map"] for one in contents]))
    rows.append(row("average mAP_N", [one["average_map_n"] for one in contents]))
    rows.append(row("average mAP_N, top-10G", [one["top_10g"]["average_map_n"] for one in contents]))
    rows.append(row("missed instances", [one["false_negatives"]["overall"] for one in contents]))
    lines += [*lines_of(rows), "", "What each kind of error costs (points of average mAP_N)"]
    impact = [["", *head]]
    for kind in facts["false_positives"]["impact"]:
        impact.append(row(kind.replace("_", " "), [one["false_positives"]["impact"][kind] for one in contents]))
    lines += lines_of(impact)
    for title, section in (
        ("Sensitivity: average mAP_N by", "sensitivity"),
        ("Missed instances by", "false_negatives"),
    ):
        for name in diagnoses[0].instances.characteristics:
            rows = [["", *head]]
            rows += [row(bucket, [one[section][name][bucket] for one in contents]) for bucket in facts[section][name]]
            lines += ["", f"{title} {name}", *lines_of(rows)]
    return lines


def pm_k_lines(result: PmK) -> list[str]:
    """pm-k of a frame classifier: accuracy on anchors and within k frames, and the error by offset."""
    sizes = f"{result.neighbours_median:g} a set (median)"
    head = f"{result.anchors} anchors, {result.pairs} pairs within {result.k} frames, {sizes}"
    rows = [
        ["", "%", "95 %"],
        ["accuracy", percent(result.accuracy), between(result.accuracy_interval)],
        [f"pm-{result.k}", percent(result.pm_k), between(result.pm_k_interval)],
        ["drop", percent(result.drop), ""],
    ]
    rows_and_note = [*lines_of(rows), result.interval_text]
    if not result.error_by_offset:
        return [head, *rows_and_note]
    offsets = [[f"{offset:+d}", percent(error)] for offset, error in result.error_by_offset.items()]
    return [head, *rows_and_note, "", *lines_of([["offset", "error %"], *offsets])]


def stability_lines(both: BoxStability) -> list[str]:
    """pm-k of an object detector: detection and localisation, on anchors and on the worst frame near each."""
    from jostle.metrics.box_stability import DRAWS

    k = both.detection.k
    rows = [["", "mAP on anchors", "95 %", f"pm-{k} mAP", "95 %", "drop"]]
    for name, one in (("detection", both.detection), ("localisation", both.localisation)):
        sure = [between(interval) if interval else "" for interval in (one.mean_ap_interval, one.pm_k_interval)]
        rows.append([name, percent(one.mean_ap), sure[0], percent(one.pm_k), sure[1], percent(one.drop)])
    head = f"{both.detection.anchors} anchors, IoU {both.detection.iou:g}"
    if both.classes < both.of_classes:
        head += f", on {both.classes} of {both.of_classes} classes, which the detector knows"
    return [head, *lines_of(rows), f"intervals: 95 %, from {DRAWS} draws of the videos, each with all its anchors"]
