"""Tables of docs/results/ about recognisers and detectors on film, and about ways to help them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import product

import numpy as np
import numpy.typing as npt

from jostle.core.random import rng_for
from jostle.evaluation.recipes.thumos14_c import CORRUPTIONS
from jostle.reporting.published.table import published_models
from studies import adaptation, film_cuts, film_recognition, recognition_tables
from studies.detection import PUPPETS_C, SHARES
from studies.detection_tables import AT_HALF, BY_CORRUPTION, PLACES, ROBUSTNESS, RUNS, clean, corrupted, relative, value
from studies.feature_states import KNOWN, MENDED
from studies.film_detection import DETECTORS, TREATMENTS_OF
from studies.harness import (
    NAMES,
    GridTable,
    Record,
    Results,
    mean_over_runs,
    over_runs,
    slashed,
    table,
    with_interval,
    words,
)
from studies.recognition import RECOGNISERS
from studies.recognition_tables import KINETICS, SETS, cells_of

DRAWS = 1000
Shares = npt.NDArray[np.float64]
MIXED = "EfficientNet-Lite0, shifted channels, mix"
PAIRS = (("lite1", "lite0"), ("lite2", "lite0"), ("shifted", "lite0"), ("shifted mix", "shifted"))
FROZEN, LEARNED = ("lite0", "lite1", "lite2"), ("shifted", "puppet_r2plus1d")
FINDERS = {"lite0": "network", "shifted": "network and rules"}  # what found damaged frames


class ClipAnswers:
    """Answers to the test clips of UCF101.

    Attributes:
        owners: group of each clip; clips of one group show one scene.
        draws: (draws, clips) how often each clip's group was drawn.
    """

    def __init__(self, results: Results) -> None:
        self._results = results
        self.owners = [name.rpartition("_")[0] for name in results.film_recognition[0]["clips"]]
        groups, index = np.unique(self.owners, return_inverse=True)
        drawn = rng_for(0, "groups of clips").multinomial(len(groups), [1 / len(groups)] * len(groups), DRAWS)
        self.draws = np.asarray(drawn[:, index], np.float64)
        self.every = np.ones((1, len(self.owners)))

    def right(self, network: str, cells: Iterable[str]) -> Shares:
        """Return (clips,) the share of right answers of a network over seeds and cells."""
        name, _, treatment = network.partition(" ")
        records = self._results.of("film_recognition", network=name, treatment=treatment or "clean")
        rows = [[hit == "1" for hit in record["right"][cell]] for record in records for cell in cells]
        return np.asarray(np.mean(rows, axis=0), np.float64)

    def relative_to_clean(self, networks: Sequence[str], corruption: str) -> Callable[[Shares], Shares]:
        """Return a function from weights of clips to what is left of the clean accuracy, the mean over networks."""
        pairs = [(self.right(name, cells_of(corruption)), self.right(name, ["clean"])) for name in networks]
        return lambda weights: np.mean([weights @ one / (weights @ clean) for one, clean in pairs], axis=0)

    def format_percent(
        self, statistic: Callable[[Shares], Shares], value: float, form: str = ".0f", ends: str = ".0f"
    ) -> str:
        """Format a value in percent, with the 95 % interval of its statistic of weighted clips over draws of groups."""
        return with_interval(value, np.quantile(statistic(self.draws), (0.025, 0.975)), form, ends, 100)

    def format_mean(self, share: Shares, form: str = ".1f", ends: str = ".0f") -> str:
        """Format the mean of (clips,) shares in percent, with its interval."""
        return self.format_percent(lambda weights: weights @ share / weights.sum(1), share.mean(), form, ends)


def recogniser_name(network: str) -> str:
    """Return the name of a network in tables."""
    return MIXED if network == "shifted mix" else film_recognition.NETWORKS[network]


@table("recogniser", "clean", *(part for name in SETS for part in (name, "relative")))
def recognition_table(results: Results) -> Iterator[list[str]]:
    """Clean accuracy and the mean over each benchmark's cells, with intervals over groups."""
    clips = ClipAnswers(results)
    for network in (*film_recognition.NETWORKS, "shifted mix"):
        whole, *parts = (clips.right(network, cells) for cells in (["clean"], *SETS.values()))
        columns = [(clips.format_mean(part), f"{100 * part.mean() / whole.mean():.1f}") for part in parts]
        yield [recogniser_name(network), clips.format_mean(whole), *(cell for column in columns for cell in column)]


@table("difference in points", "clean", *SETS)
def paired_table(results: Results) -> Iterator[list[str]]:
    """Gain of one recogniser over another on the same clips."""
    clips = ClipAnswers(results)
    for first, second in PAIRS:
        differences = [clips.right(first, cells) - clips.right(second, cells) for cells in (("clean",), *SETS.values())]
        name = f"{recogniser_name(first)}, less {recogniser_name(second)}"
        yield [name, *(clips.format_mean(difference, "+.1f", "+.1f") for difference in differences)]


def _puppets_left(results: Results, corruption: str) -> float:
    """Return what a corruption leaves of the clean accuracy of recognisers of puppets."""
    records = [record for name in RECOGNISERS
               for record in results.of("recognition", recogniser=name, treatment="clean")]  # fmt: skip
    return float(np.mean([recognition_tables.relative(record, cells_of(corruption)) / 100 for record in records]))


def _published_left(corruption: str) -> float:
    """Return what a corruption of Kinetics-C leaves of the clean accuracy of published models."""
    name = corruption.partition("/")[2]
    models = [model for model in published_models("kinetics-c") if model.clean and name in model.by_corruption]
    return float(np.mean([model.by_corruption[name] / (model.clean or 1) for model in models]))


@table("corruption", "film, frozen frames", "film, with time", "puppets", "published (Yi et al.)")
def order_table(results: Results) -> Iterator[list[str]]:
    """Share of the clean accuracy left by each corruption of Kinetics-C, here, on puppets and as published."""
    clips = ClipAnswers(results)

    def left(networks: Sequence[str], corruption: str) -> float:
        return float(clips.relative_to_clean(networks, corruption)(clips.every)[0])

    for name in sorted(KINETICS, key=partial(left, (*FROZEN, *LEARNED))):
        film = [
            clips.format_percent(clips.relative_to_clean(networks, name), left(networks, name))
            for networks in (FROZEN, LEARNED)
        ]
        elsewhere = (_puppets_left(results, name), _published_left(name))
        yield [words(name), *film, *(f"{100 * share:.0f}" for share in elsewhere)]


@table("rank correlation of", "puppets", "published (Yi et al.)")
def rank_table(results: Results) -> Iterator[list[str]]:
    """Rank correlation of the order of corruptions with that of puppets and of the paper."""
    from scipy.stats import spearmanr  # takes a second to import

    clips = ClipAnswers(results)
    others = [_puppets_left(results, name) for name in KINETICS], [_published_left(name) for name in KINETICS]
    for label, networks in (("frozen frames", FROZEN), ("with time", LEARNED)):
        left = [clips.relative_to_clean(networks, name) for name in KINETICS]
        whole = [float(one(clips.every)[0]) for one in left]
        drawn = np.stack([one(clips.draws) for one in left], axis=1)
        row = [label]
        for other in others:
            ends = np.quantile([spearmanr(one, other).statistic for one in drawn], (0.025, 0.975))
            row.append(with_interval(spearmanr(whole, other).statistic, ends, ".2f"))
        yield row
    yield ["puppets", "", f"{spearmanr(*others).statistic:.2f}"]


def paired_interval(pairs: Sequence[float]) -> str:
    """Format the mean of differences, with its 95 % interval by Student's t."""
    from scipy.special import stdtrit  # type: ignore[import-untyped, unused-ignore]

    reach = stdtrit(len(pairs) - 1, 0.975) * np.std(pairs, ddof=1) / np.sqrt(len(pairs))
    mean = float(np.mean(pairs))
    return with_interval(mean, (mean - reach, mean + reach), "+.1f")


@table("difference in points", "relative robustness", "corrupted", "clean")
def trained_table(results: Results, features: str) -> Iterator[list[str]]:
    """Gain of one way of training over another, over pairs of the same detector and seed."""
    plain, drop, both = TREATMENTS_OF[features]
    for names in ((drop, plain), (both, drop), (both, plain)):
        first, second = (
            [record for detector in DETECTORS
             for record in results.of("film_detection", detector=detector, features=features, treatment=name)]
            for name in names
        )  # fmt: skip
        row = [
            paired_interval([measure(one) - measure(other) for one, other in zip(first, second, strict=True)])
            for measure in (relative, corrupted, clean)
        ]
        yield [", less ".join(names), *row]


@table("black frames", *(NAMES[name] for name in DETECTORS))
def position_table(results: Results, features: str) -> Iterator[list[str]]:
    """Black frames at different positions of each action."""
    runs = [results.of("film_detection", detector=name, features=features, treatment="clean") for name in DETECTORS]
    for name, cell in PLACES.items():
        yield [name, *map(mean_over_runs(partial(value, cell=cell)), runs)]


def mended(record: Record, way: str = MENDED) -> float:
    """Return the relative robustness of a way of mending, in percent of the clean score as it is."""
    scores = record["mended"][way]
    return 100 * 100 * float(np.mean([scores[cell][AT_HALF] for cell in PUPPETS_C])) / value(record, "clean")


def clean_mended(record: Record) -> float:
    """Return the clean score, mended, in percent."""
    return 100 * float(record["mended"][MENDED]["clean"][AT_HALF])


@table("", "difference in points")
def mended_pairs_table(results: Results) -> Iterator[list[str]]:
    """Gain by mending on features with time, over pairs of the same detector and training."""
    measures: dict[str, Callable[[Record], float]] = {
        "relative robustness, mended less as is": lambda one: mended(one) - relative(one),
        "relative robustness, mended less known": lambda one: mended(one) - mended(one, KNOWN),
        "clean mAP, mended less as is": lambda one: clean_mended(one) - value(one, "clean"),
    }
    for name, measure in measures.items():
        yield [name, paired_interval([measure(one) for one in results.film_mended])]


@table("found, % of frames", *FINDERS.values())
def found_table(results: Results) -> Iterator[list[str]]:
    """Damaged frames that the inspector finds, and clean frames that it takes for damaged."""
    by_network = {record["network"]: record["found"][MENDED] for record in results.film_found}
    for name in CORRUPTIONS:
        counts = [[by_network[network][f"thumos14-c/{name}:{level}"] for level in SHARES] for network in FINDERS]
        yield [words(name), *(slashed(100 * one[0] / one[1] for one in own) for own in counts)]
    alarms = [by_network[network]["clean"][2:] for network in FINDERS]
    shares = [f"{100 * wrong / clean:.2f} ({wrong:,} of {clean:,})" for wrong, clean in alarms]
    yield ["clean frames taken for damaged", *shares]


@table("", "clean", *map(words, CORRUPTIONS))
def cut_table(results: Results) -> Iterator[list[str]]:
    """TransNetV2 under each corruption at its three shares."""
    for way in film_cuts.WAYS:
        (record,) = results.of("film_cuts", way=way)
        levels = [[record["cells"][f"thumos14-c/{name}:{level}"][0] for level in SHARES] for name in CORRUPTIONS]
        yield [way, f"{100 * record['clean']:.1f}", *(slashed(100 * level for level in own) for own in levels)]


def _help_head(damaged: str) -> list[str]:
    heads = product(("puppets", "film"), ("clean", damaged, "placed"))
    return ["", *(f"{where}: {what}" for where, what in heads), "forward + backward passes"]


@table(*_help_head("whole clip"))
def help_table(results: Results) -> Iterator[list[str]]:
    """Ways to help a recogniser: whole-clip and placed damage, on puppets and on film; seeds in order."""
    return _help_rows(results, "recognition", "augmentation")


@table(*_help_head("whole film"))
def help_detection_table(results: Results) -> Iterator[list[str]]:
    """Ways to help a detector: damage of whole films and of the middle of each action, on puppets and on film."""
    return _help_rows(results, "detection", "FrameDrop and TRC")


def _help_rows(results: Results, task: str, training: str) -> Iterator[list[str]]:
    """Yield a row for each way that was measured on puppets or on film; each seed in its order."""
    for treatment, way in adaptation.ways(task):
        name = f"{training}, {way}" if treatment == "mix" else way
        cells: list[str] = []
        passes: list[str] = []
        for where in ("puppet", "film"):
            records = results.of(adaptation.RECORDS[f"{where}_{task}"], treatment=treatment, way=way)
            parts = [_parts(record) for record in records] or [["-"] * 3]
            cells += [" / ".join(column) for column in zip(*parts, strict=True)]
            passes += [_passes(record) for record in records if "passes" in record]  # the oldest lack them
        if passes:
            yield [name.replace(", as is", ""), *cells, passes[-1]]


def _parts(record: Record) -> list[str]:
    """Format the score on clean videos, and the means over whole-video and placed damage."""
    whole = {cell: "@" not in cell or cell.endswith("@everywhere") for cell in record["cells"]}
    parts = [
        [score for cell, score in record["cells"].items() if whole[cell] == everywhere] for everywhere in (True, False)
    ]
    return [f"{100 * float(np.mean(part)):.1f}" for part in ([record["clean"]], *parts)]


def _passes(record: Record) -> str:
    passes = record["passes"]
    return "1 + 0" if passes is None else f"{passes['forward_ratio']:g} + {passes['backward_ratio']:g}"


CLEAN, AS_IS = ("clean", over_runs(clean)), ("relative, as is", over_runs(relative))
KNOWN_COLUMN = (KNOWN, over_runs(partial(mended, way=KNOWN)))
MENDING = [CLEAN, ("clean, mended", over_runs(clean_mended)), AS_IS, (MENDED, over_runs(mended)), KNOWN_COLUMN]


def _of_features(features: str) -> dict[str, Callable[[Results], str]]:
    """Return the tables that both kinds of features have."""
    rows, where = {"detector": DETECTORS, "treatment": TREATMENTS_OF[features]}, {"features": features}
    return {
        "detection": GridTable("film_detection", rows, [*ROBUSTNESS, RUNS], where),
        "trained": partial(trained_table, features=features),
        "cells": GridTable("film_detection", {"detector": DETECTORS}, BY_CORRUPTION, {**where, "treatment": "clean"}),
        "positions": partial(position_table, features=features),
        # Of seed 0 on features with time, network and all was made again since a rule for missing parts was corrected;
        # `mended` in the other records of these features is by the faulty rule.
        "mending": GridTable("film_detection" if features == "lite0" else "film_mended", rows, MENDING, where),
        "known": GridTable("film_detection", rows, [CLEAN, AS_IS, KNOWN_COLUMN], where),
    }


TABLES: dict[str, Callable[[Results], str]] = {
    "recognition": recognition_table,
    "paired": paired_table,
    "order": order_table,
    "ranks": rank_table,
    **{name: draw for name, draw in _of_features("lite0").items() if name != "known"},
    **{f"{name}_with_time": draw for name, draw in _of_features("shifted").items()},
    "mended_pairs": mended_pairs_table,
    "found": found_table,
    "cuts": cut_table,
    "help": help_table,
    "help_detection": help_detection_table,
}
