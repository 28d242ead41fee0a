"""Tables of docs/results/ about recognisers and detectors on film, and about what helps them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt
from scipy.stats import spearmanr
from scipy.stats import t as student

from jostle.core.random import rng_for
from jostle.evaluation.recipes.thumos14_c import CORRUPTIONS, POSITIONS
from jostle.reporting.published.table import published_models
from studies import film_adaptation, film_cuts, film_detection, film_recognition, recognition_tables
from studies.detection import PUPPETS_C, SHARES
from studies.detection_tables import AT_HALF, NAMES, by_corruption, clean_and_corrupted, corrupted, relative, value
from studies.harness import Record, fill_tables, select_records, spread
from studies.harness import markdown_table as table
from studies.mending_features import KNOWN, MENDED
from studies.recognition import FAMILY
from studies.recognition_tables import SETS, cells_of

DRAWS = 1000
Shares = npt.NDArray[np.float64]
KINETICS = tuple(name for family, names in FAMILY.items() if family.startswith("C ") for name in names)
MIXED = "EfficientNet-Lite0, shifted channels, mix"
PAIRS = (("lite1", "lite0"), ("lite2", "lite0"), ("shifted", "lite0"), ("shifted mix", "shifted"))


@dataclass(frozen=True)
class Film:
    """Records of all studies on film but that of frame classifiers."""

    recognition: list[Record] = field(default_factory=film_recognition.read_results)
    detection: list[Record] = field(default_factory=film_detection.read_results)
    found: list[Record] = field(default_factory=film_detection.read_found)
    cuts: list[Record] = field(default_factory=film_cuts.read_results)
    adaptation: list[Record] = field(default_factory=film_adaptation.read_results)
    puppets: list[Record] = field(default_factory=film_adaptation.read_puppets)

    @cached_property
    def owners(self) -> list[str]:
        """Return the group of each test clip of UCF101: clips of one group show one scene."""
        return [name.rpartition("_")[0] for name in self.recognition[0]["clips"]]

    @cached_property
    def draws(self) -> Shares:
        """Return (draws, clips) weights: how often each clip's group was drawn."""
        groups, index = np.unique(self.owners, return_inverse=True)
        drawn = rng_for(0, "groups of clips").multinomial(len(groups), [1 / len(groups)] * len(groups), DRAWS)
        return np.asarray(drawn[:, index], np.float64)

    def right(self, network: str, cells: Iterable[str]) -> Shares:
        """Return (clips,) the share of right answers of a network over seeds and cells."""
        name, _, treatment = network.partition(" ")
        records = select_records(self.recognition, network=name, treatment=treatment or "clean")
        rows = [[hit == "1" for hit in record["right"][cell]] for record in records for cell in cells]
        return np.asarray(np.mean(rows, axis=0), np.float64)

    def interval(self, statistic: Callable[[Shares], Shares]) -> tuple[float, float]:
        """Return the 95 % interval of a statistic of weighted clips over draws of groups."""
        low, high = np.quantile(statistic(self.draws), (0.025, 0.975))
        return float(low), float(high)

    def mean_cell(self, share: Shares) -> str:
        """Format the mean of (clips,) shares in percent, with its interval."""
        low, high = self.interval(lambda weights: weights @ share / weights.sum(1))
        return f"{100 * share.mean():.1f} [{100 * low:.0f}, {100 * high:.0f}]"

    def relative_to_clean(self, networks: Sequence[str], corruption: str) -> Callable[[Shares], Shares]:
        """Return a function from weights of clips to what is left of the clean accuracy, the mean over networks."""
        pairs = [(self.right(name, cells_of([corruption])), self.right(name, ["clean"])) for name in networks]
        return lambda weights: np.mean([weights @ one / (weights @ clean) for one, clean in pairs], axis=0)


def recogniser_name(network: str) -> str:
    """Return the name of a network in tables."""
    return MIXED if network == "shifted mix" else film_recognition.NETWORKS[network]


def recognition_table(film: Film) -> str:
    """Clean accuracy and the mean over each benchmark's cells, with intervals over groups."""
    rows = []
    for network in (*film_recognition.NETWORKS, "shifted mix"):
        clean = film.right(network, ["clean"])
        row = [recogniser_name(network), film.mean_cell(clean)]
        for cells in SETS.values():
            share = film.right(network, cells)
            row += [film.mean_cell(share), f"{100 * share.mean() / clean.mean():.1f}"]
        rows.append(row)
    return table(["recogniser", "clean", *(part for name in SETS for part in (name, "relative"))], rows)


def paired_table(film: Film) -> str:
    """What one recogniser has over another on the same clips."""
    rows = []
    for first, second in PAIRS:
        row = [f"{recogniser_name(first)}, less {recogniser_name(second)}"]
        for cells in (("clean",), *SETS.values()):
            difference = film.right(first, cells) - film.right(second, cells)
            low, high = film.interval(lambda weights, own=difference: weights @ own / weights.sum(1))  # type: ignore[misc]
            row.append(f"{100 * difference.mean():+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]")
        rows.append(row)
    return table(["difference in points", "clean", *SETS], rows)


FROZEN = ("lite0", "lite1", "lite2")
LEARNED = ("shifted", "puppet_r2plus1d")


def _puppets_left(corruption: str) -> float:
    records = [r for r in recognition_tables.Results().records if r["run"]["treatment"] == "clean"]
    left = [
        recognition_tables.mean(r, cells_of([corruption])) / recognition_tables.mean(r, ["clean"])
        for r in records
        if r["run"]["recogniser"] in recognition_tables.RECOGNISERS
    ]
    return float(np.mean(left))


def _published_left(corruption: str) -> float:
    models = [m for m in published_models("kinetics-c") if m.clean and corruption in m.by_corruption]
    return float(np.mean([m.by_corruption[corruption] / (m.clean or 1) for m in models]))


def order_table(film: Film) -> str:
    """What each corruption of Kinetics-C leaves of the clean accuracy, here, on puppets and as published."""
    everyone = np.ones((1, len(film.owners)))
    names = sorted(KINETICS, key=lambda name: float(film.relative_to_clean((*FROZEN, *LEARNED), name)(everyone)[0]))
    rows = []
    for name in names:
        row = [name.partition("/")[2].replace("_", " ")]
        for networks in (FROZEN, LEARNED):
            left = film.relative_to_clean(networks, name)
            low, high = film.interval(left)
            row.append(f"{100 * float(left(everyone)[0]):.0f} [{100 * low:.0f}, {100 * high:.0f}]")
        short = name.partition("/")[2]
        rows.append([*row, f"{100 * _puppets_left(name):.0f}", f"{100 * _published_left(short):.0f}"])
    head = ["corruption", "film, frozen frames", "film, with time", "puppets", "published (Yi et al.)"]
    return table(head, rows)


def rank_table(film: Film) -> str:
    """Rank correlation of the order of corruptions with that of puppets and of the paper."""
    others = {
        "puppets": [_puppets_left(name) for name in KINETICS],
        "published (Yi et al.)": [_published_left(name.partition("/")[2]) for name in KINETICS],
    }
    rows = []
    for label, networks in (("frozen frames", FROZEN), ("with time", LEARNED)):
        left = [film.relative_to_clean(networks, name) for name in KINETICS]
        whole = [float(one(np.ones((1, len(film.owners))))[0]) for one in left]
        drawn = np.stack([one(film.draws) for one in left], axis=1)
        row = [label]
        for other in others.values():
            values = [spearmanr(one, other).statistic for one in drawn]
            low, high = np.quantile(values, (0.025, 0.975))
            row.append(f"{spearmanr(whole, other).statistic:.2f} [{low:.2f}, {high:.2f}]")
        rows.append(row)
    between = spearmanr(*others.values()).statistic
    rows.append(["puppets", "", f"{between:.2f}"])
    return table(["rank correlation of", *others], rows)


def _runs(film: Film, detector: str, treatment: str, features: str = "lite0") -> list[Record]:
    return select_records(film.detection, detector=detector, features=features, treatment=treatment)


def _main_rows(film: Film, columns: Callable[[list[Record]], list[str]], features: str = "lite0") -> list[list[str]]:
    return [
        [NAMES[detector], treatment, *columns(_runs(film, detector, treatment, features))]
        for detector in film_detection.DETECTORS
        for treatment in film_detection.TREATMENTS_OF[features]
    ]


def detection_table(film: Film, features: str = "lite0") -> str:
    """Clean, corrupted and relative robustness of every detector."""
    rows = _main_rows(film, lambda records: [*clean_and_corrupted(records), str(len(records))], features)
    return table(["detector", "trained", "clean", "corrupted", "relative robustness", "runs"], rows)


def paired_interval(pairs: Sequence[float]) -> str:
    """Format the mean of differences, with its 95 % interval by Student's t."""
    reach = student.ppf(0.975, len(pairs) - 1) * np.std(pairs, ddof=1) / np.sqrt(len(pairs))
    return f"{np.mean(pairs):+.1f} [{np.mean(pairs) - reach:+.1f}, {np.mean(pairs) + reach:+.1f}]"


def trained_table(film: Film, features: str = "lite0") -> str:
    """What one way of training has over another, over pairs of the same detector and seed."""
    rows = []
    plain, drop, both = film_detection.TREATMENTS_OF[features]
    for first, second in ((drop, plain), (both, drop), (both, plain)):
        row = [f"{first}, less {second}"]
        for measure in (relative, corrupted, partial(value, cell="clean")):
            pairs = [
                measure(one) - measure(other)
                for detector in film_detection.DETECTORS
                for one, other in zip(
                    _runs(film, detector, first, features), _runs(film, detector, second, features), strict=True
                )
            ]
            row.append(paired_interval(pairs))
        rows.append(row)
    return table(["difference in points", "relative robustness", "corrupted", "clean"], rows)


def cell_table(film: Film, features: str = "lite0") -> str:
    """Each corruption at its three shares."""
    rows = [[NAMES[name], *by_corruption(_runs(film, name, "clean", features))] for name in film_detection.DETECTORS]
    return table(["detector", *(name.replace("_", " ") for name in CORRUPTIONS)], rows)


def position_table(film: Film, features: str = "lite0") -> str:
    """Black frames at different positions of each action."""
    cells = {"clean video": "clean", "one black frame at 50 %": "one frame"}
    cells |= {f"five at {p} %": f"five at {p} %" for p in POSITIONS} | {
        "five in the background": "five in the background"
    }
    runs = [_runs(film, detector, "clean", features) for detector in film_detection.DETECTORS]
    rows = [
        [name, *(f"{np.mean([value(record, cell) for record in own]):.1f}" for own in runs)]
        for name, cell in cells.items()
    ]
    return table(["black frames", *(NAMES[name] for name in film_detection.DETECTORS)], rows)


def _mended(record: Record, way: str) -> float:
    scores = record["mended"][way]
    return 100 * 100 * float(np.mean([scores[cell][AT_HALF] for cell in PUPPETS_C])) / value(record, "clean")


def _clean_mended(record: Record) -> float:
    return 100 * float(record["mended"][MENDED]["clean"][AT_HALF])


def mending_table(film: Film) -> str:
    """Relative robustness as is, mended and with the damaged frames known."""
    rows = _main_rows(
        film,
        lambda records: [
            spread(value(record, "clean") for record in records),
            spread(map(_clean_mended, records)),
            spread(map(relative, records)),
            spread(_mended(record, MENDED) for record in records),
            spread(_mended(record, KNOWN) for record in records),
        ],
        "lite0",
    )
    return table(["detector", "trained", "clean", "clean, mended", "relative, as is", "mended", "known"], rows)


def known_table(film: Film, features: str) -> str:
    """Relative robustness as is, and with the damaged frames known."""
    rows = _main_rows(
        film,
        lambda records: [
            spread(value(record, "clean") for record in records),
            spread(map(relative, records)),
            spread(_mended(record, KNOWN) for record in records),
        ],
        features,
    )
    return table(["detector", "trained", "clean", "relative, as is", "known"], rows)


FINDERS = {"lite0": "network", "shifted": "network and rules"}  # what found damaged frames


def found_table(film: Film) -> str:
    """Damaged frames that the inspector finds, and clean frames that it takes for damaged."""
    found = {record["network"]: record["found"][MENDED] for record in film.found}
    rows = []
    for name in CORRUPTIONS:
        row = [name.replace("_", " ")]
        for network in FINDERS:
            counts = [found[network][f"thumos14-c/{name}:{level}"] for level in SHARES]
            row.append(" / ".join(f"{100 * one[0] / one[1]:.1f}" for one in counts))
        rows.append(row)
    alarms = [found[network]["clean"][2:] for network in FINDERS]
    rows.append(
        [
            "clean frames taken for damaged",
            *(f"{100 * wrong / clean:.2f} ({wrong:,} of {clean:,})" for wrong, clean in alarms),
        ]
    )
    return table(["found, % of frames", *FINDERS.values()], rows)


def cut_table(film: Film) -> str:
    """TransNetV2 under each corruption at its three shares."""
    rows = []
    for way in film_cuts.WAYS:
        (record,) = (one for one in film.cuts if one["run"]["way"] == way)
        columns = []
        for name in CORRUPTIONS:
            levels = [record["cells"][f"thumos14-c/{name}:{level}"][0] for level in SHARES]
            columns.append(" / ".join(f"{100 * level:.1f}" for level in levels))
        rows.append([way, f"{100 * record['clean']:.1f}", *columns])
    return table(["", "clean", *(name.replace("_", " ") for name in CORRUPTIONS)], rows)


def _helped(records: Iterable[Record], treatment: str, way: str) -> list[str]:
    """Format clean, whole-clip and placed accuracy: the value of each seed, in their order."""
    own = sorted((one for one in records if _is(one, treatment, way)), key=lambda one: one["run"]["seed"])
    if not own:
        return ["-"] * 3
    parts = []
    for record in own:
        placed = [share for cell, share in record["cells"].items() if "@" in cell]
        whole = [share for cell, share in record["cells"].items() if "@" not in cell]
        parts.append([100 * float(np.mean(part)) for part in ([record["clean"]], whole, placed)])
    return [" / ".join(f"{value:.1f}" for value in column) for column in zip(*parts, strict=True)]


def help_table(film: Film) -> str:
    """What helps a recogniser: whole-clip and placed damage, on puppets and on film."""
    rows = []
    for treatment, way in film_adaptation.ways():
        name = f"augmentation, {way}" if treatment == "mix" else way
        (passes,) = {str(_passes(one)) for one in film.adaptation if _is(one, treatment, way)} or {"-"}
        rows.append(
            [
                name.replace(", as is", ""),
                *_helped(film.puppets, treatment, way),
                *_helped(film.adaptation, treatment, way),
                passes,
            ]
        )
    columns = [f"{where}: {what}" for where in ("puppets", "film") for what in ("clean", "whole clip", "placed")]
    return table(["", *columns, "forward + backward passes"], rows)


def _is(record: Record, treatment: str, way: str) -> bool:
    return (record["run"]["treatment"], record["run"]["way"]) == (treatment, way)


def _passes(record: Record) -> str:
    passes = record["passes"]
    return "1 + 0" if passes is None else f"{passes['forward_ratio']:g} + {passes['backward_ratio']:g}"


TABLES = {
    "recognition": recognition_table,
    "paired": paired_table,
    "order": order_table,
    "ranks": rank_table,
    "detection": detection_table,
    "trained": trained_table,
    "cells": cell_table,
    "positions": position_table,
    "mending": mending_table,
    "found": found_table,
    "cuts": cut_table,
    "help": help_table,
    **{
        f"{name}_with_time": partial(draw, features="shifted")
        for name, draw in {
            "detection": detection_table,
            "trained": trained_table,
            "cells": cell_table,
            "positions": position_table,
            "known": known_table,
        }.items()
    },
}
fill_page: Callable[[str, Film], str] = partial(fill_tables, "on film", TABLES)
