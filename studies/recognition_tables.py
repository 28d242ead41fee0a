"""Tables of docs/results/ about recognisers and frame classifiers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from studies.frames import START
from studies.frames import TREATMENTS as FRAME_TREATMENTS
from studies.harness import STUDIES, Record, fill_tables, read_records, select_records, spread
from studies.harness import markdown_table as table
from studies.recognition import (
    CELLS,
    FAMILY,
    RECOGNISERS,
    SEVERITIES,
    SINGLE,
    SINGLES,
    TREATMENTS,
    WIDE,
    WIDE_TREATMENTS,
)

NAMES = {
    "puppet_c3d": "3D",
    "puppet_r2plus1d": "(2+1)D",
    "puppet_x3d": "channels apart",
    "puppet_divided": "divided transformer",
    "puppet_slowfast": "SlowFast",
    "puppet_tam": "TAM",
    "puppet_tam_wide": "TAM, wide",
}
ALL, ORDERED, OTHERS, SWAPPED = range(4)  # what is counted in a cell
TEMPORAL = (
    "ucf101-p/reverse_sampling",
    "ucf101-p/jumble",
    "ucf101-p/box_jumble",
    "ucf101-p/freeze",
    "ucf101-p/sampling",
)
SETS = {
    "Kinetics-C": tuple(cell for cell in CELLS if cell.startswith("kinetics-c/")),
    "UCF101-P": tuple(cell for cell in CELLS if cell.startswith("ucf101-p/")),
}


@dataclass(frozen=True)
class Results:
    """Records of clips and of single frames."""

    records: list[Record] = field(default_factory=partial(read_records, STUDIES / "recognition.jsonl"))
    frames: list[Record] = field(default_factory=partial(read_records, STUDIES / "frames.jsonl"))

    def of(self, recogniser: str, treatment: str) -> list[Record]:
        """Return the runs of a recogniser under a treatment, by seed."""
        return select_records(self.records, recogniser=recogniser, treatment=treatment)


def mean(record: Record, cells: Iterable[str], what: int = ALL) -> float:
    """The mean over cells, in percent."""
    return 100 * float(np.mean([record["cells"][cell][what] for cell in cells]))


def cells_of(names: Iterable[str]) -> list[str]:
    """The cells of some corruptions."""
    return [f"{name}:{level}" for name in names for level in SEVERITIES]


def main_table(results: Results) -> str:
    """Clean accuracy, the mean over each benchmark's cells, and what share of the clean accuracy that is."""
    rows = []
    for recogniser in RECOGNISERS:
        for treatment in TREATMENTS:
            records = results.of(recogniser, treatment)
            if not records:
                continue
            row = [NAMES[recogniser], treatment, spread(mean(r, ["clean"]) for r in records)]
            for cells in SETS.values():
                row.append(spread(mean(r, cells) for r in records))
                row.append(spread(100 * mean(r, cells) / mean(r, ["clean"]) for r in records))
            rows.append([*row, str(len(records))])
    head = [part for name in SETS for part in (name, "relative")]
    return table(["recogniser", "trained", "clean", *head, "runs"], rows)


def family_table(results: Results) -> str:
    """The mean over each family of corruptions."""
    rows = []
    for recogniser in RECOGNISERS:
        for treatment in TREATMENTS:
            records = results.of(recogniser, treatment)
            if records:
                means = [np.mean([mean(r, cells_of(names)) for r in records]) for names in FAMILY.values()]
                rows.append([NAMES[recogniser], treatment, *(f"{value:.1f}" for value in means)])
    return table(["recogniser", "trained", *FAMILY], rows)


def corruption_table(results: Results) -> str:
    """Each corruption of Kinetics-C, learned clean and with noise."""
    names = [name for family, names in FAMILY.items() if family.startswith("C ") for name in names]
    rows = []
    for recogniser in RECOGNISERS:
        for treatment in ("clean", "noise"):
            records = results.of(recogniser, treatment)
            if records:
                means = [np.mean([mean(r, cells_of([name])) for r in records]) for name in names]
                rows.append([NAMES[recogniser], treatment, *(f"{value:.0f}" for value in means)])
    return table(["recogniser", "trained", *(_words(name) for name in names)], rows)


def transfer_table(results: Results) -> str:
    """Learned from a mix at severities 1 to 3: the same cells, the same corruptions at 4 and 5, and all others."""
    learned = set(TREATMENTS["mix"]["corruptions"]["specs"])
    cells = [cell for cell in SETS["UCF101-P"] if cell.rpartition(":")[0] in learned]
    groups = (
        [cell for cell in cells if cell[-1] in "123"],
        [cell for cell in cells if cell[-1] in "45"],
        [cell for cell in SETS["UCF101-P"] if cell not in cells],
        SETS["Kinetics-C"],
    )
    rows = []
    for recogniser in RECOGNISERS:
        for treatment in ("clean", "mix"):
            records = results.of(recogniser, treatment)
            if records:
                rows.append([NAMES[recogniser], treatment, *(spread(mean(r, g) for r in records) for g in groups)])
    head = ["learned from, 1 to 3", "the same at 4 and 5", "others of UCF101-P", "Kinetics-C"]
    return table(["recogniser", "trained", *head], rows)


def _words(corruption: str) -> str:
    return corruption.partition("/")[2].replace("_", " ")


def order_table(results: Results) -> str:
    """Perturbations of time: classes that only the order tells apart, the others, and how often twins are swapped."""
    rows = []
    for recogniser in RECOGNISERS:
        for treatment in ("clean", "temporal"):
            records = results.of(recogniser, treatment)
            if not records:
                continue
            row = [NAMES[recogniser], treatment]
            for cells in (["clean"], *(cells_of([name]) for name in TEMPORAL)):
                parts = [np.mean([mean(r, cells, what) for r in records]) for what in (ORDERED, OTHERS, SWAPPED)]
                row.append(" / ".join(f"{part:.0f}" for part in parts))
            rows.append(row)
    return table(["recogniser", "trained", "clean", *map(_words, TEMPORAL)], rows)


def severity_table(results: Results) -> str:
    """Trained clean: the mean over a benchmark's corruptions at each severity."""
    rows = []
    for recogniser in RECOGNISERS:
        records = results.of(recogniser, "clean")
        for name, cells in SETS.items():
            levels = [[cell for cell in cells if cell.endswith(f":{level}")] for level in SEVERITIES]
            values = [spread(mean(r, level) for r in records) for level in levels]
            rows.append([NAMES[recogniser], name, *values])
    return table(["recogniser", "benchmark", *map(str, SEVERITIES)], rows)


def capacity_table(results: Results) -> str:
    """TAM with four times the weights, beside the narrow one."""
    rows = []
    for treatment in WIDE_TREATMENTS:
        for recogniser in (WIDE.removesuffix("_wide"), WIDE):
            records = results.of(recogniser, treatment)
            row = [NAMES[recogniser], treatment, spread(mean(r, ["clean"]) for r in records)]
            for cells in SETS.values():
                row.append(spread(mean(r, cells) for r in records))
                row.append(spread(100 * mean(r, cells) / mean(r, ["clean"]) for r in records))
            rows.append(row)
    head = [part for name in SETS for part in (name, "relative")]
    return table(["recogniser", "trained", "clean", *head], rows)


def single_table(results: Results) -> str:
    """Learned from one corruption: clean, the mean of all of Kinetics-C, and the corruption itself."""
    rows = []
    for treatment in ("clean", *SINGLES):
        records = results.of(SINGLE, treatment)
        if not records:
            continue
        own = cells_of([f"kinetics-c/{treatment.removeprefix('only ')}"]) if treatment != "clean" else []
        base = results.of(SINGLE, "clean")
        row = [treatment.replace("_", " "), spread(mean(r, ["clean"]) for r in records)]
        row.append(spread(mean(r, SETS["Kinetics-C"]) for r in records))
        row.append(spread(mean(r, own) for r in records) if own else "")
        row.append(f"{np.mean([mean(r, own) for r in base]):.2f}" if own and base else "")
        rows.append(row)
    return table(["trained on", "clean", "Kinetics-C", "itself", "itself, trained clean"], rows)


def frames_table(results: Results) -> str:
    """Anchors that are right, alone and together with all similar frames within 1, 5 and 10."""
    rows = []
    for treatment in (START, *FRAME_TREATMENTS):
        records = [record for record in results.frames if record["run"]["treatment"] == treatment]
        within = [[100 * value for value in record["right_within"]] for record in records]
        row = [spread(one[k] for one in within) for k in (0, 1, 5, 10)]
        rows.append([treatment, *row, spread(one[0] - one[10] for one in within), str(len(records))])
    return table(["trained", "anchors", "pm-1", "pm-5", "pm-10", "drop", "runs"], rows)


TABLES: dict[str, Callable[[Results], str]] = {
    "main": main_table,
    "families": family_table,
    "corruptions": corruption_table,
    "transfer": transfer_table,
    "order": order_table,
    "severities": severity_table,
    "capacity": capacity_table,
    "singles": single_table,
    "frames": frames_table,
}
fill_page = partial(fill_tables, "recognition", TABLES)
