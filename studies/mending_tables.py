"""Tables of docs/results/ about mending."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.recipes.thumos14_c import CORRUPTIONS, EXTRA, MIXES, PROFILE
from jostle.metrics.bootstrap import bias_corrected
from studies.detection import NETWORKS, PUPPETS_C, SHARES
from studies.detection_tables import ERRORS
from studies.feature_states import AS_IS, KNOWN, MENDED
from studies.harness import (
    NAMES,
    GridTable,
    Record,
    Reduction,
    Results,
    count_runs,
    over_runs,
    slashed,
    table,
    with_interval,
    words,
)
from studies.mending import (
    ALONE,
    BLANK,
    DETECTORS,
    EVERYTHING,
    GROUPS,
    LENGTHS,
    TREATMENTS,
    UNSEEN,
    length_cell,
    without,
)
from studies.mending_frames import study as frame_study
from studies.mending_recognition import KINDS, PLACES
from studies.mending_ways import WAYS as OTHER_WAYS

WAYS = (AS_IS, MENDED, KNOWN)
EXTRACTORS = ("shipped", "second")
# How a detector was trained, and what is done about damaged frames.
COMPARED = (*product(("clean", "drop", "drop + TRC"), (AS_IS,)), *product(TREATMENTS, (MENDED,)), ("clean", KNOWN))
# Lengths that are not the benchmark's own, which the main table has.
OTHER_LENGTHS = [percent for percent in LENGTHS if length_cell(BLANK, percent) not in PUPPETS_C]
LENGTH_HEADS = [f"{percent:g} %" for percent in OTHER_LENGTHS]


def runs_of(results: Results, group: str, treatment: str = "clean", network: int = 0) -> list[Record]:
    """Return the runs of all detectors in a group of cells."""
    return results.of("mending", group=group, treatment=treatment, network=network)


def with_rule(results: Results, group: str) -> list[Record]:
    """Return the runs of shipped weights in a group whose other runs were measured without the rule."""
    return results.of("mending_shipped", group=group)


def relative(record: Record, way: str, cells: Iterable[str], clean: str = "") -> float:
    """Return what is left of the clean score in the mean of some cells, in percent.

    Args:
        clean: the way whose clean score that is; by default the same.
    """
    scores = record["scores"]
    return 100 * float(np.mean([scores[way][cell] for cell in cells])) / float(scores[clean or way][CLEAN])


def left(records: Sequence[Record], way: str, cells: Sequence[str], clean: str = "") -> float:
    """Return the mean over runs of what is left."""
    return float(np.mean([relative(record, way, cells, clean) for record in records]))


def interval(records: Sequence[Record], way: str, clean: str = "") -> str:
    """Format the mean over runs of relative robustness, and where it lies in 95 % of draws of other films."""
    cells = [cell for cell in records[0]["scores"][way] if cell != CLEAN]
    corrupted, whole = (np.array([record["drawn"][one] for record in records]) for one in (way, clean or way))
    return with_ends(left(records, way, cells, clean), (corrupted[..., 1] / whole[..., 0]).mean(0) * 100)


def with_ends(measured: float, draws: Any) -> str:
    """Format a number, and the ends of its interval."""
    return with_interval(measured, bias_corrected(draws, measured, 0.95))


def costs(records: Sequence[Record], way: str = MENDED, clean: str = AS_IS) -> list[float]:
    """Return what a way of mending does to the clean score of each run, in points."""
    return [100 * (record["scores"][way][CLEAN] - record["scores"][clean][CLEAN]) for record in records]


def cells_of(kind: str) -> list[str]:
    """Return the cells of a kind of THUMOS14-C, by rising share."""
    return [f"{PROFILE}/{kind}:{level}" for level in SHARES]


def alarms(counts: Sequence[Sequence[int]]) -> float:
    """Return how many of the undamaged frames were taken for damaged ones, in percent."""
    return 100 * sum(one[2] for one in counts) / max(sum(one[3] for one in counts), 1)


def share_found(counts: Mapping[str, Sequence[int]], cells: Sequence[str]) -> float:
    """Return how many of the damaged frames were found, in percent."""
    return 100 * sum(counts[cell][0] for cell in cells) / sum(counts[cell][1] for cell in cells)


def clean_score(record: Record, way: str) -> float:
    """Return the clean score of a way, in percent."""
    return 100 * float(record["scores"][way][CLEAN])


MAIN: list[tuple[str, Reduction]] = [
    ("clean", over_runs(partial(clean_score, way=AS_IS))),
    ("clean, mended", over_runs(partial(clean_score, way=MENDED))),
    ("relative, as is", over_runs(partial(relative, way=AS_IS, cells=PUPPETS_C))),
    *((way, over_runs(partial(relative, way=way, cells=PUPPETS_C))) for way in (MENDED, KNOWN)),
    ("runs", count_runs),
]
INTERVALS: list[tuple[str, Reduction]] = [
    *((way, partial(interval, way=way)) for way in WAYS),
    ("clean mAP, mended - as is", lambda records: f"{np.mean(costs(records)):+.2f}"),
    ("of the worst run", lambda records: f"{min(costs(records)):+.2f}"),
    ("runs", count_runs),
]


@table("extractor", "trained", *(head for head, _ in INTERVALS))
def interval_table(results: Results) -> Iterator[list[str]]:
    """The mean over all detectors and seeds of an extractor, and its interval from drawing other films."""
    for network, treatment in product(NETWORKS, TREATMENTS):
        if records := runs_of(results, "main", treatment, network):
            yield [EXTRACTORS[network], treatment, *(column(records) for _, column in INTERVALS)]


@table("", "aim", "measured", "")
def aim_table(results: Results) -> Iterator[list[str]]:
    """Aims of the study, and measurements beside them."""
    clean, drop = (runs_of(results, "main", treatment) for treatment in ("clean", "drop"))
    cost = costs(clean)
    unseen = runs_of(results, UNSEEN)
    alone = {kind: left(unseen, without(kind) + ALONE, cells_of(kind), KNOWN) for kind in CORRUPTIONS}
    with_rules = alone | {BLANK: left(with_rule(results, UNSEEN), without(BLANK), cells_of(BLANK), KNOWN)}
    least, both, network = min(with_rules.values()), np.mean([*with_rules.values()]), np.mean([*alone.values()])
    verdict, by_network = (_met(mean >= 95) for mean in (both, network))
    yield ["relative robustness, trained clean", "at least 97", *_reached(clean, 97)]
    measured = f"{np.mean(cost):+.2f}, the worst run {min(cost):+.2f}"
    yield ["clean mAP, mended - as is", "within 0.3", measured, _met(min(cost) >= -0.3)]
    yield ["relative robustness, trained with drops", "at least 98", *_reached(drop, 98)]
    measured = f"{both:.1f}, the worst kind {least:.1f}; by the network alone {network:.1f}"
    verdict = verdict if verdict == by_network else f"{verdict}; by the network alone {by_network}"
    yield ["relative robustness, kind never met", "at least 95", measured, verdict]


def _reached(records: Sequence[Record], least: float) -> list[str]:
    each = [relative(record, MENDED, PUPPETS_C) for record in records]
    measured = f"{interval(records, MENDED)}, the lowest of {len(each)} runs {min(each):.1f}"
    return [measured, _met(np.mean(each) >= least)]


def _met(reached: bool | np.bool_) -> str:
    return "met" if reached else "missed"


@table("damaged frames", *map(words, CORRUPTIONS))
def kind_table(results: Results) -> Iterator[list[str]]:
    """Relative robustness of detectors trained clean, by kind and share."""
    records = runs_of(results, "main")
    for way in WAYS:
        yield [way, *(slashed(left(records, way, [cell]) for cell in cells_of(kind)) for kind in CORRUPTIONS)]


@table("", CLEAN, *map(words, CORRUPTIONS))
def frame_table(results: Results) -> Iterator[list[str]]:
    """Damaged frames that the inspector finds in the films, and false alarms."""
    counts = runs_of(results, "main")[0]["found"][MENDED]
    cells = [cells_of(kind) for kind in CORRUPTIONS]
    yield ["damaged frames found", "", *(slashed(share_found(counts, [cell]) for cell in own) for own in cells)]
    others = [f"{alarms([counts[cell] for cell in own]):.2f}" for own in ([CLEAN], *cells)]
    yield ["intact frames taken for damaged", *others]


@table("trained", "damaged frames", "video", *map(words, ERRORS))
def error_table(results: Results) -> Iterator[list[str]]:
    """DETAD's errors, the mean over detectors: the cost of each kind, and the share of missed actions."""
    states = (*product((AS_IS, MENDED), (CLEAN, "corrupted")), (KNOWN, "corrupted"))
    for treatment, (way, state) in product(TREATMENTS, states):
        own = [record["diagnosis"][way][state] for record in runs_of(results, "main", treatment)]
        yield [treatment, way, state, *(f"{np.mean([100 * one[error] for one in own]):.2f}" for error in ERRORS)]


@table("kind", "met", "never met", "known", "found, %", "false alarms, %", "clean mAP")
def unseen_table(results: Results) -> Iterator[list[str]]:
    """Relative robustness under kinds that an inspector was not trained on."""
    rows, records = [], runs_of(results, UNSEEN)
    everything = EVERYTHING + ALONE
    for kind in CORRUPTIONS:
        cells, lacking = cells_of(kind), without(kind) + ALONE
        row = [words(kind), f"{left(records, everything, cells, KNOWN):.1f}", interval(records, lacking, KNOWN)]
        row += [f"{left(records, KNOWN, cells):.1f}", f"{share_found(records[0]['found'][lacking], cells):.1f}"]
        rows.append([*row, *_harm(records, lacking)])
    yield from rows
    yield ["mean", *(f"{np.mean([float(row[i].split()[0]) for row in rows]):.1f}" for i in range(1, 4)), "", "", ""]
    yield ["all met", *[""] * 4, *_harm(records, everything)]


def _harm(records: Sequence[Record], way: str) -> list[str]:
    """Format false alarms in clean video, in percent, and what they cost, in points."""
    return [f"{alarms([records[0]['found'][way][CLEAN]]):.2f}", f"{np.mean(costs(records, way, KNOWN)):+.2f}"]


@table("black frames, never met", "the network alone", "with the rule", "known")
def rule_table(results: Results) -> Iterator[list[str]]:
    """Black frames before an inspector that was not trained on them, by its network alone and with the rule."""
    cells, records = cells_of(BLANK), with_rule(results, UNSEEN)
    ways = (without(BLANK) + ALONE, without(BLANK))
    for record in records:
        shares = [f"{relative(record, way, cells, KNOWN):.1f}" for way in (*ways, KNOWN)]
        yield [NAMES[record["run"]["detector"]], *shares]
    yield ["mean", *(interval(records, way, KNOWN) for way in (*ways, KNOWN))]
    counts = [records[0]["found"][way] for way in ways]
    yield ["frames found, %", *(f"{share_found(one, cells):.1f}" for one in counts), ""]
    yield ["false alarms, %", *(f"{alarms([one[CLEAN]]):.2f}" for one in counts), ""]


def _by_length(records: Sequence[Record], kind: str) -> Iterator[list[str]]:
    for way in WAYS:
        yield [way, *(f"{left(records, way, [length_cell(kind, percent)]):.1f}" for percent in OTHER_LENGTHS)]


@table("kind", "damaged frames", *LENGTH_HEADS)
def length_table(results: Results) -> Iterator[list[str]]:
    """Relative robustness under stretches of other lengths than the benchmark's."""
    for kind in CORRUPTIONS:
        yield from ([words(kind), *row] for row in _by_length(runs_of(results, "lengths"), kind))


@table("black frames, with the rule", *LENGTH_HEADS)
def black_table(results: Results) -> Iterator[list[str]]:
    """Relative robustness and detection of black frames of other lengths, with the rule beside the network."""
    records = with_rule(results, "lengths")
    counts = records[0]["found"][MENDED]
    yield from _by_length(records, BLANK)
    yield ["found, %", *(f"{share_found(counts, [length_cell(BLANK, percent)]):.1f}" for percent in OTHER_LENGTHS)]


def _each_detector(records: Sequence[Record], cell: str) -> list[str]:
    """Format mAP as is / mended / known, the mean over the seeds of each detector."""
    each = [[record["scores"] for record in records if record["run"]["detector"] == name] for name in DETECTORS]
    return [slashed(100 * np.mean([scores[way][cell] for scores in own]) for way in WAYS) for own in each]


@table("damaged outside of actions", *(NAMES[name] for name in DETECTORS), "found, %", "false alarms, %")
def background_table(results: Results) -> Iterator[list[str]]:
    """Damage outside of actions: mAP of each detector, the mean over its seeds, and the share of frames found."""
    records = runs_of(results, "background")
    counts = records[0]["found"][MENDED]
    for cell in (CLEAN, *(cell.name for cell in GROUPS["background"])):
        hits = f"{share_found(counts, [cell]):.1f}" if counts[cell][1] else ""
        yield [words(cell.partition(":")[0]), *_each_detector(records, cell), hits, f"{alarms([counts[cell]]):.2f}"]


@table("", *(f"{treatment}, {way}" for treatment, way in COMPARED))
def compared_table(results: Results, group: str, named: Mapping[str, Sequence[str]]) -> Iterator[list[str]]:
    """Relative robustness in some cells of a group, the mean of all runs."""
    for name, cells in named.items():
        shares = [left(runs_of(results, group, treatment), way, cells) for treatment, way in COMPARED]
        yield [name, *(f"{share:.1f}" for share in shares)]


@table("the central 5 % of actions", "strength", *(NAMES[name] for name in DETECTORS), "found, %")
def strength_table(results: Results) -> Iterator[list[str]]:
    """Other strengths, and kinds on top of each other: mAP of each detector, and the share of frames found."""
    for group in ("strengths", "together"):
        records = runs_of(results, group)
        for cell in GROUPS[group]:
            label = [" and ".join(words(spec.name) for spec in cell.specs), ""]
            if len(cell.specs) == 1:
                label = [words(cell.name), str(cell.specs[0].value)]
            hits = share_found(records[0]["found"][MENDED], [cell.name])
            yield [*label, *_each_detector(records, cell.name), f"{hits:.1f}"]


@table("detector", "weights", "damaged frames", "clean", "relative", *map(words, CORRUPTIONS))
def frame_detector_table(results: Results) -> Iterator[list[str]]:
    """Detectors of frames, with the shipped weights: clean score and relative robustness, by kind and over all."""
    for run in frame_study():
        (record,) = (one for one in results.mending_frames if one["run"] == vars(run))
        scores = {"scores": {"": record["scores"]}}
        draws = np.array(record["drawn"])
        whole = with_ends(relative(scores, "", PUPPETS_C), draws[:, 1] / draws[:, 0] * 100)
        row = [NAMES[run.detector], run.weights, run.way, f"{100 * record['scores'][CLEAN]:.2f}", whole]
        yield [*row, *(f"{relative(scores, '', cells_of(kind)):.1f}" for kind in CORRUPTIONS)]


@table("damaged by", *(f"{word} of the clip" for word in PLACES), "found, %")
def recognition_table(results: Results) -> Iterator[list[str]]:
    """Right answers of networks trained clean as is / mended / known, the mean of these, and damaged frames found."""
    *runs, detections = results.mending_recognition
    clean = [run["scores"] for run in runs if run["run"]["weights"] == "clean"]
    for kind in KINDS:
        cells = [f"{kind} {word}" for word in PLACES]
        right = [slashed((100 * np.mean([scores[way][cell] for scores in clean]) for way in WAYS), 0) for cell in cells]
        yield [words(kind), *right, slashed((share_found(detections["found"], [cell]) for cell in cells), 0)]


@table("", *(NAMES[name] for name in DETECTORS[:3]), "mean")
def way_table(results: Results) -> Iterator[list[str]]:
    """Relative robustness by other ways to use known damaged frames."""
    shares = {(one["run"]["detector"], one["run"]["way"]): 100 * one["relative"] for one in results.mending_ways}
    for way in OTHER_WAYS:
        each = [shares[name, way] for name in DETECTORS[:3]]
        yield [way, *(f"{share:.1f}" for share in (*each, np.mean(each)))]


TABLES: dict[str, Callable[[Results], str]] = {
    "main": GridTable(
        "mending", {"detector": DETECTORS, "treatment": TREATMENTS}, MAIN, {"group": "main", "network": 0}
    ),
    "intervals": interval_table,
    "verdicts": GridTable("mending_verdicts", {"treatment": TREATMENTS}, INTERVALS),
    "aims": aim_table,
    "kinds": kind_table,
    "frames": frame_table,
    "errors": error_table,
    "single": partial(compared_table, group="single", named={cell.name: [cell.name] for cell in GROUPS["single"]}),
    "unseen": unseen_table,
    "rule": rule_table,
    "lengths": length_table,
    "black": black_table,
    "background": background_table,
    "time": partial(compared_table, group="extra", named={words(kind): cells_of(kind) for kind in (*MIXES, *EXTRA)}),
    "strengths": strength_table,
    "detectors": frame_detector_table,
    "recognition": recognition_table,
    "ways": way_table,
}
