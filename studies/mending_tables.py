"""Tables of docs/results/ about mending."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from jostle.corruptions.engine.spec import Spec
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.recipes.thumos14_c import EXTRA, MIXES, PROFILE
from jostle.metrics.bootstrap import bias_corrected
from studies.detection import CORRUPTIONS, NETWORKS, PUPPETS_C, SHARES
from studies.detection_tables import NAMES
from studies.harness import STUDIES, Record, fill_tables, read_records, spread
from studies.harness import markdown_table as table
from studies.mending import DETECTORS, TREATMENTS
from studies.mending_features import (
    ALONE,
    AS_IS,
    BLANK,
    EVERYTHING,
    GROUPS,
    KNOWN,
    LENGTHS,
    MENDED,
    UNSEEN,
    length_cell,
    without,
)
from studies.mending_frames import study as frame_study
from studies.mending_recognition import KINDS, PLACES
from studies.mending_ways import WAYS as OTHER_WAYS

ERRORS = ("double_detection", "wrong_label", "localization", "confusion", "background", "missed")
EXTRACTORS = ("shipped", "second")
# How a detector was trained, and what is done about struck frames.
COMPARED = (
    ("clean", AS_IS),
    ("drop", AS_IS),
    ("drop + TRC", AS_IS),
    ("clean", MENDED),
    ("drop", MENDED),
    ("drop + TRC", MENDED),
    ("clean", KNOWN),
)


# Lengths that are not the benchmark's own, which the main table has.
OTHER_LENGTHS = [percent for percent in LENGTHS if length_cell(BLANK, percent) not in PUPPETS_C]
WAYS = (AS_IS, MENDED, KNOWN)


class Results:
    """Records of every part of the study; `shipped` are of the weights that come with jostle."""

    def __init__(self) -> None:
        names = ("", "_shipped", "_frames", "_recognition", "_ways", "_verdicts")
        every = (read_records(STUDIES / f"mending{name}.jsonl") for name in names)
        self.records, self.shipped, self.frames, self.recognition, self.ways, self.verdicts = every

    def of(self, group: str, treatment: str, detector: str | None = None, network: int = 0) -> list[Record]:
        """Return the runs of a group of cells, of one detector or of all."""
        wanted: Record = {"group": group, "treatment": treatment, "network": network}
        wanted |= {} if detector is None else {"detector": detector}
        return [record for record in self.records if wanted.items() <= record["run"].items()]

    def with_rule(self, group: str) -> list[Record]:
        """Return the runs of shipped weights in a group whose other runs were measured without the rule."""
        return [record for record in self.shipped if record["run"]["group"] == group]


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
    corrupted, whole = (np.array([record["drawn"][one] for record in records]) for one in (way, clean or way))
    return with_ends(left(records, way, cells, clean), (corrupted[..., 1] / whole[..., 0]).mean(0) * 100)


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


def main_table(results: Results) -> str:
    """Clean scores and relative robustness, by detector and training: mean and deviation over seeds."""
    rows = []
    for detector in DETECTORS:
        for treatment in TREATMENTS:
            records = results.of("main", treatment, detector)
            row = [NAMES[detector], treatment]
            row += [spread(100 * r["scores"][way][CLEAN] for r in records) for way in (AS_IS, MENDED)]
            row += [spread(relative(r, way, PUPPETS_C) for r in records) for way in WAYS]
            rows.append([*row, str(len(records))])
    head = ["detector", "trained", "clean", "clean, mended", "relative, as is", "mended", "known", "runs"]
    return table(head, rows)


def interval_table(results: Results) -> str:
    """The mean over all detectors and seeds of an extractor, and its interval from drawing other films."""
    rows = []
    for network in NETWORKS:
        for treatment in TREATMENTS:
            records = results.of("main", treatment, network=network)
            if records:
                rows.append([EXTRACTORS[network], treatment, *_intervals(records)])
    return table(["extractor", "trained", *INTERVALS], rows)


def verdict_table(results: Results) -> str:
    """The same of runs that are mended by rules and network together."""
    rows = []
    for treatment in TREATMENTS:
        records = [record for record in results.verdicts if record["run"]["treatment"] == treatment]
        if records:
            rows.append([treatment, *_intervals(records)])
    return table(["trained", *INTERVALS], rows)


INTERVALS = ("as is", "mended", "known", "clean mAP, mended - as is", "of the worst run", "runs")


def _intervals(records: Sequence[Record]) -> list[str]:
    cost = costs(records)
    robustness = [interval(records, way) for way in WAYS]
    return [*robustness, f"{np.mean(cost):+.2f}", f"{min(cost):+.2f}", str(len(records))]


def aim_table(results: Results) -> str:
    """What was aimed at, and what was measured."""
    clean, drop = (results.of("main", treatment) for treatment in ("clean", "drop"))
    cost = costs(clean)
    alone = {
        kind: left(results.of(UNSEEN, "clean"), without(kind) + ALONE, cells_of(kind), KNOWN) for kind in CORRUPTIONS
    }
    never = [*(alone | {BLANK: left(results.with_rule(UNSEEN), without(BLANK), cells_of(BLANK), KNOWN)}).values()]
    said = (
        f"{np.mean(never):.1f}, the worst kind {min(never):.1f}; by the network alone {np.mean([*alone.values()]):.1f}"
    )
    rows = [
        ["relative robustness, trained clean", "at least 97", *_reached(clean, 97)],
        ["clean mAP, mended - as is", "within 0.3", f"{np.mean(cost):+.2f}, the worst run {min(cost):+.2f}"],
        ["relative robustness, trained with drops", "at least 98", *_reached(drop, 98)],
        ["relative robustness, kind never met", "at least 95", said],
    ]
    rows[1].append("met" if min(cost) >= -0.3 else "missed")
    with_rule, by_network = ("met" if np.mean([*each]) >= 95 else "missed" for each in (never, alone.values()))
    rows[3].append(with_rule if with_rule == by_network else f"{with_rule}; by the network alone {by_network}")
    return table(["", "aim", "measured", ""], rows)


def _reached(records: Sequence[Record], least: float) -> list[str]:
    each = [relative(record, MENDED, PUPPETS_C) for record in records]
    told = f"{interval(records, MENDED)}, the lowest of {len(each)} runs {min(each):.1f}"
    return [told, "met" if np.mean(each) >= least else "missed"]


def kind_table(results: Results) -> str:
    """What is left under each kind and share, of detectors trained clean."""
    rows, records = [], results.of("main", "clean")
    for way in WAYS:
        row = [way]
        for kind in CORRUPTIONS:
            shares = [left(records, way, [cell]) for cell in cells_of(kind)]
            row.append(" / ".join(f"{share:.1f}" for share in shares))
        rows.append(row)
    return table(["struck frames", *map(words, CORRUPTIONS)], rows)


def frame_table(results: Results) -> str:
    """What the inspector found in the films."""
    found = results.of("main", "clean")[0]["found"][MENDED]
    cells = {kind: [found[cell] for cell in cells_of(kind)] for kind in CORRUPTIONS}
    hits = [" / ".join(f"{100 * one[0] / one[1]:.1f}" for one in some) for some in cells.values()]
    others = [f"{alarms([found[CLEAN]]):.2f}", *(f"{alarms(some):.2f}" for some in cells.values())]
    rows = [["struck frames found", "", *hits], ["others taken for struck ones", *others]]
    return table(["", CLEAN, *map(words, CORRUPTIONS)], rows)


def error_table(results: Results) -> str:
    """DETAD's errors, the mean over detectors: what each kind costs, and the share of actions that are missed."""
    rows = []
    states = ((AS_IS, CLEAN), (AS_IS, "corrupted"), (MENDED, CLEAN), (MENDED, "corrupted"), (KNOWN, "corrupted"))
    for treatment in TREATMENTS:
        records = results.of("main", treatment)
        for way, state in states:
            told = [np.mean([100 * r["diagnosis"][way][state][error] for r in records]) for error in ERRORS]
            rows.append([treatment, way, state, *(f"{value:.2f}" for value in told)])
    return table(["trained", "struck frames", "video", *(words(error) for error in ERRORS)], rows)


def unseen_table(results: Results) -> str:
    """Kinds that an inspector never met, all as shares of the clean score as it is."""
    rows, records = [], results.of(UNSEEN, "clean")
    everything = EVERYTHING + ALONE
    for kind in CORRUPTIONS:
        cells, lacking = cells_of(kind), without(kind) + ALONE
        row = [words(kind), f"{left(records, everything, cells, KNOWN):.1f}", interval(records, lacking, KNOWN)]
        row += [f"{left(records, KNOWN, cells):.1f}", f"{_share(records[0]['found'][lacking], cells):.1f}"]
        rows.append([*row, *_harm(records, lacking)])
    means = [f"{np.mean([float(row[i].split()[0]) for row in rows]):.1f}" for i in range(1, 4)]
    rows.append(["mean", *means, "", "", ""])
    rows.append(["all met", *[""] * 4, *_harm(records, everything)])
    head = ["kind", "met", "never met", "known"]
    return table([*head, "found, %", "false alarms, %", "clean mAP"], rows)


def rule_table(results: Results) -> str:
    """Black frames that an inspector never met, by its network alone and with the rule beside it."""
    rows, cells, records = [], cells_of(BLANK), results.with_rule(UNSEEN)
    for record in records:
        told = [f"{relative(record, way, cells, KNOWN):.1f}" for way in (without(BLANK) + ALONE, without(BLANK), KNOWN)]
        rows.append([NAMES[record["run"]["detector"]], *told])
    ways = (without(BLANK) + ALONE, without(BLANK))
    rows.append(["mean", *(interval(records, way, KNOWN) for way in (*ways, KNOWN))])
    found = [records[0]["found"][way] for way in ways]
    rows.append(["frames found, %", *(f"{_share(one, cells):.1f}" for one in found), ""])
    rows.append(["false alarms, %", *(f"{alarms([one[CLEAN]]):.2f}" for one in found), ""])
    return table(["black frames, never met", "the network alone", "with the rule", "known"], rows)


def _harm(records: Sequence[Record], way: str) -> list[str]:
    """False alarms in clean video, in percent, and what they cost, in points."""
    return [f"{alarms([records[0]['found'][way][CLEAN]]):.2f}", f"{np.mean(costs(records, way, KNOWN)):+.2f}"]


def _share(found: Record, cells: Sequence[str]) -> float:
    """Struck frames that were found, in percent."""
    return 100 * sum(found[cell][0] for cell in cells) / sum(found[cell][1] for cell in cells)


def length_table(results: Results) -> str:
    """Stretches of other lengths than the benchmark's."""
    rows, records = [], results.of("lengths", "clean")
    for kind in CORRUPTIONS:
        rows += [[words(kind), *row] for row in _by_length(records, kind)]
    return table(["kind", "struck frames", *(f"{percent:g} %" for percent in OTHER_LENGTHS)], rows)


def black_table(results: Results) -> str:
    """The same of black frames, with the rule beside the network; and what was found."""
    records = results.with_rule("lengths")
    counts = [records[0]["found"][MENDED][length_cell(BLANK, percent)] for percent in OTHER_LENGTHS]
    found = ["found, %", *(f"{100 * hit / of:.1f}" for hit, of, _, _ in counts)]
    return table(
        ["black frames, with the rule", *(f"{percent:g} %" for percent in OTHER_LENGTHS)],
        [*_by_length(records, BLANK), found],
    )


def _by_length(records: Sequence[Record], kind: str) -> list[list[str]]:
    return [
        [way, *(f"{left(records, way, [length_cell(kind, percent)]):.1f}" for percent in OTHER_LENGTHS)] for way in WAYS
    ]


def background_table(results: Results) -> str:
    """Frames struck outside of actions: mAP of each detector, the mean over its seeds, and what was found."""
    records, rows = results.of("background", "clean"), []
    found = records[0]["found"][MENDED]
    for cell in (CLEAN, *(cell.name for cell in GROUPS["background"])):
        row = [words(cell.partition(":")[0]), *_each_detector(records, cell)]
        hit, of = found[cell][:2]
        rows.append([*row, f"{100 * hit / of:.1f}" if of else "", f"{alarms([found[cell]]):.2f}"])
    names = [NAMES[name] for name in DETECTORS]
    return table(["struck outside of actions", *names, "found, %", "false alarms, %"], rows)


def _each_detector(records: Sequence[Record], cell: str) -> list[str]:
    """mAP as is / mended / known, the mean over the seeds of each detector."""
    told = []
    for name in DETECTORS:
        own = [record["scores"] for record in records if record["run"]["detector"] == name]
        told.append(" / ".join(f"{100 * np.mean([scores[way][cell] for scores in own]):.1f}" for way in WAYS))
    return told


def single_table(results: Results) -> str:
    """One frame, and five in a row at places of an action: relative robustness, the mean of all runs."""
    return _compared(results, "single", {cell.name: [cell.name] for cell in GROUPS["single"]})


def time_table(results: Results) -> str:
    """Mixes and changes of time: relative robustness, the mean of all runs."""
    return _compared(results, "extra", {words(kind): cells_of(kind) for kind in (*MIXES, *EXTRA)})


def _compared(results: Results, group: str, named: dict[str, list[str]]) -> str:
    rows = []
    for name, cells in named.items():
        told = [left(results.of(group, treatment), way, cells) for treatment, way in COMPARED]
        rows.append([name, *(f"{value:.1f}" for value in told)])
    return table(["", *(f"{treatment}, {way}" for treatment, way in COMPARED)], rows)


def strength_table(results: Results) -> str:
    """Strengths that no table has, and kinds on top of each other: mAP of each detector, and what was found."""
    rows: list[list[str]] = []
    for group in ("strengths", "together"):
        records = results.of(group, "clean")
        for cell in GROUPS[group]:
            alone = len(cell.specs) == 1
            said = [words(cell.name), str(cell.specs[0].value)] if alone else [_all(cell.specs), ""]
            hit, of = records[0]["found"][MENDED][cell.name][:2]
            rows.append([*said, *_each_detector(records, cell.name), f"{100 * hit / of:.1f}"])
    names = [NAMES[name] for name in DETECTORS]
    return table(["the central 5 % of actions", "strength", *names, "found, %"], rows)


def _all(specs: Sequence[Spec]) -> str:
    return " and ".join(words(spec.name) for spec in specs)


def frame_detector_table(results: Results) -> str:
    """Detectors of frames, with the shipped weights: clean score and relative robustness, by kind and over all."""
    rows = []
    for run in frame_study():
        (record,) = (one for one in results.frames if one["run"] == vars(run))
        scores = {"scores": {"": record["scores"]}}
        drawn = np.array(record["drawn"])
        whole = with_ends(relative(scores, "", PUPPETS_C), drawn[:, 1] / drawn[:, 0] * 100)
        row = [NAMES[run.detector], run.weights, run.way, f"{100 * record['scores'][CLEAN]:.2f}", whole]
        rows.append([*row, *(f"{relative(scores, '', cells_of(kind)):.1f}" for kind in CORRUPTIONS)])
    head = ["detector", "weights", "struck frames", "clean", "relative"]
    return table([*head, *map(words, CORRUPTIONS)], rows)


def recognition_table(results: Results) -> str:
    """Clips told right by networks trained clean, the mean of these, and struck frames found."""
    *runs, found = results.recognition
    clean, rows = [run for run in runs if run["run"]["weights"] == "clean"], []
    for kind in KINDS:
        cells = [f"{kind} {word}" for word in PLACES]
        told = [_right(clean, [cell]) for cell in cells]
        counts = [found["found"][cell] for cell in cells]
        rows.append([words(kind), *told, " / ".join(f"{100 * one[0] / one[1]:.0f}" for one in counts)])
    return table(["struck by", *(f"{word} of the clip" for word in PLACES), "found, %"], rows)


def _right(runs: Sequence[Record], cells: Sequence[str]) -> str:
    """Clips told right as is / mended / known, in percent, the mean over networks and cells."""
    told = [np.mean([run["scores"][way][cell] for run in runs for cell in cells]) for way in WAYS]
    return " / ".join(f"{100 * value:.0f}" for value in told)


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


TABLES: dict[str, Callable[[Results], str]] = {
    "main": main_table,
    "intervals": interval_table,
    "verdicts": verdict_table,
    "aims": aim_table,
    "kinds": kind_table,
    "frames": frame_table,
    "errors": error_table,
    "single": single_table,
    "unseen": unseen_table,
    "rule": rule_table,
    "lengths": length_table,
    "black": black_table,
    "background": background_table,
    "time": time_table,
    "strengths": strength_table,
    "detectors": frame_detector_table,
    "recognition": recognition_table,
    "ways": way_table,
}
fill_page = partial(fill_tables, "mending", TABLES)
