"""Mending in front of detectors: trained with several seeds, on frames as they are, mended, and with known damage.

    python -m studies.mending WORK network training detectors cells study [--groups main ...] [--jobs 12]
    python -m studies.mending WORK shipped cells study --networks 0 --treatments clean drop --seeds 0 --films 12

`network` trains extractors beside the one that comes with jostle, which is number 0. `training` makes the features that
detectors learn from, `detectors` trains these, `cells` makes the features of the test films in a group of cells, and
`study` measures there. What is done already is skipped, so a study that was stopped goes on. `shipped` takes the
weights that come with jostle in place of training any. The group `unseen` needs the inspectors that
`studies.mending_unseen` trains.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import jostle
from jostle.corruptions.engine.spec import Entry, Spec
from jostle.datasets.dataset import Dataset
from jostle.evaluation.recipes.recipe import CLEAN
from jostle.evaluation.recipes.thumos14_c import CORRUPTIONS, EXTRA, MIXES, PROFILE
from jostle.metrics.bootstrap import video_weights
from jostle.models.checkpoints import read_metadata
from studies import harness
from studies.detection import (
    AT_HALF,
    CELLS,
    EXTRACTOR,
    NETWORKS,
    PUPPETS_C,
    SHIPPED,
    DetectorRun,
    Place,
    load_trained,
    make_training_features,
    settings_for,
    train_networks,
)
from studies.feature_states import (
    KNOWN,
    WAYS,
    CorruptedCell,
    DetectedStates,
    Way,
    load_extractor_file,
    make_states,
    read_states,
)

SETTINGS = harness.load_settings("mending")
DETECTORS, TREATMENTS, LENGTHS = (tuple(SETTINGS[name]) for name in ("detectors", "treatments", "lengths"))
DRAWS = 200


def _cell(text: str, placement: str | None = None) -> CorruptedCell:
    specs = tuple(map(Spec.parse, text.split("+")))
    return CorruptedCell(f"{text}@{placement}" if placement else text, specs, placement)


def _strength(kind: str, word: str, value: Any) -> CorruptedCell:
    """Return a kind of THUMOS14-C at a strength that no table has, so that no inspector was trained on it."""
    own = Spec.parse(f"{PROFILE}/{kind}:2").entry
    entry = Entry(own.corruption, (value,), own.options)
    return CorruptedCell(f"{kind} {word}", (Spec(None, own.corruption, 1, entry),), "centre:5%")


STRENGTHS: dict[str, list[Any]] = {
    kind: [tuple(value) if isinstance(value, list) else value for value in values]
    for kind, values in SETTINGS["strengths"].items()
}
WORDS = ("weaker", "between", "stronger")


def length_cell(kind: str, percent: float) -> str:
    """Return the name of a cell that corrupts so much of each action."""
    known = {1: 1, 5: 2, 10: 3}.get(percent)
    return f"{PROFILE}/{kind}:{known}" if known else f"{PROFILE}/{kind}:1@centre:{percent:g}%"


GROUPS: dict[str, tuple[CorruptedCell, ...]] = {
    "main": tuple(CELLS[name] for name in PUPPETS_C),
    "single": tuple(cell for name, cell in CELLS.items() if name not in PUPPETS_C and "background" not in name),
    "extra": tuple(_cell(f"{PROFILE}/{kind}:{share}") for kind in (*MIXES, *EXTRA) for share in (1, 2, 3)),
    "lengths": tuple(
        _cell(f"{PROFILE}/{kind}:1", f"centre:{percent:g}%")
        for kind in CORRUPTIONS
        for percent in LENGTHS
        if percent not in (1, 5, 10)
    ),
    "strengths": (
        *(_strength(kind, word, STRENGTHS[kind][i]) for kind in STRENGTHS for i, word in enumerate(WORDS)),
        *(_strength("black_frame", f"of grey {level}", level) for level in SETTINGS["greys"]),
    ),
    "together": tuple(_cell("+".join(f"{PROFILE}/{kind}:2" for kind in kinds)) for kinds in SETTINGS["together"]),
    "background": tuple(_cell(f"{PROFILE}/{kind}:1", f"background:{SETTINGS['outside']}") for kind in CORRUPTIONS),
}
UNSEEN = "unseen"  # the main cells before inspectors that never met their kind
BLANK = "black_frame"  # the kind that the rule beside the inspector's network is for
EVERYTHING = "with all"
ALONE = ", alone"  # behind the name of an inspector whose network speaks without the rule beside it


def without(kind: str) -> str:
    """Return the name of an inspector that was trained without a kind."""
    return f"without {kind}"


def inspector_file(folder: Path, name: str) -> Path:
    """Return the path of the weights of an inspector of the study."""
    return folder / (name.replace(" ", "-") + ".safetensors")


def plan_of(group: str, inspectors: Path, kinds: Collection[str] = CORRUPTIONS) -> list[Way]:
    """Return what is made of a film in a group of cells; the clean cell is in all.

    Args:
        kinds: of stretches of all lengths, and of kinds never met, only these.
    """
    of_kind = {
        kind: tuple(cell for cell in GROUPS["main" if group == UNSEEN else group] if f"/{kind}:" in cell.name)
        for kind in kinds
    }
    main = tuple(cell for own in of_kind.values() for cell in own)
    if group != UNSEEN:
        cells = main if group == "lengths" else GROUPS[group]
        return [Way(name, mend, cells) for name, mend in WAYS.items()]
    plan = [Way(KNOWN, "known", main), Way(EVERYTHING, str(inspector_file(inspectors, EVERYTHING)), main)]
    for kind, own in of_kind.items():
        file = str(inspector_file(inspectors, without(kind)))
        plan += [Way(without(kind), file, own), Way(without(kind) + ALONE, file, own, rules=False)]
    return plan


EVERY = (*GROUPS, UNSEEN)
DRAWN = ("main", UNSEEN)  # groups whose relative robustness has intervals


@dataclass(frozen=True)
class MendingRun(harness.GridRun):
    """Trained detector in a group of cells."""

    detector: str
    treatment: str
    seed: int
    network: int
    group: str

    @property
    def training(self) -> DetectorRun:
        return DetectorRun(self.detector, self.treatment, self.seed, self.network)


def main() -> None:
    """Run the steps that are arguments."""
    harness.run_study(
        __doc__,
        "mending",
        {
            "network": train_networks,
            "training": make_training,
            "detectors": harness.Grid(
                lambda: [run.training for run in study("main")], learn, lambda record: "trained", file="trained"
            ),
            "shipped": take_shipped,
            "cells": make_cells,
            "study": harness.Grid(study_runs, measure, summarise),
        },
        derive_data,
        groups=EVERY,
        detectors=DETECTORS,
        treatments=TREATMENTS,
        seeds=SETTINGS["seeds"],
        networks=NETWORKS,
        kinds=tuple(CORRUPTIONS),
        films=int,
        jobs=harness.CORES,
        at_once=6,
        epochs=int,
    )


def derive_data(arguments: Any) -> dict[str, Any]:
    """Return the test films, and the files of the study."""
    data = select_films(jostle.load_dataset("puppets", subset="test", jobs=arguments.jobs), arguments.films)
    place = Place(arguments.work, Path(data.folder) / "annotations.json")
    place.take_network()
    return {"data": data, "place": place, "names": tuple(data.videos)}


def select_films(data: Dataset, count: int | None) -> Dataset:
    """Return so many of the films, evenly spread over all."""
    return replace(data, videos={name: data.videos[name] for name in harness.choose_evenly(list(data.videos), count)})


def study_runs(groups: Iterable[str] = EVERY) -> list[MendingRun]:
    """Return the runs of some groups."""
    return [run for group in groups for run in study(group)]


def study(group: str) -> list[MendingRun]:
    """Return the runs of a group."""
    treatments = TREATMENTS if group in SETTINGS["treated"] else TREATMENTS[:1]
    networks = NETWORKS if group in SETTINGS["twice"] else NETWORKS[:1]
    return harness.list_runs(
        MendingRun, network=networks, treatment=treatments, seed=SETTINGS["seeds"], detector=DETECTORS, group=[group]
    )


def make_training(place: Place, networks: Iterable[int], jobs: int) -> None:
    """Extract the features of the training films."""
    for number in networks:
        make_training_features(place, number, jobs, fixed=())


def make_cells(
    place: Place,
    data: Dataset,
    groups: Iterable[str],
    networks: Collection[int],
    kinds: Collection[str],
    work: Path,
    jobs: int,
) -> None:
    """Extract the features of the test films in every cell of some groups."""
    for group, number in dict.fromkeys((run.group, run.network) for run in study_runs(groups)):
        if number in networks:
            load = partial(load_extractor_file, EXTRACTOR, place.network(number))
            plan = plan_of(group, work / "inspectors", kinds)
            make_states(data, place.states(number, group), load, plan, jobs=jobs)


def take_shipped(place: Place) -> None:
    """Use the bundled weights as those of the first seed."""
    from jostle.models.weights.packaged import trained_weights

    for detector in DETECTORS:
        for name, treatment in SHIPPED.items():
            weights = DetectorRun(detector, treatment, 0, 0).weights_in(place.work)
            weights.parent.mkdir(parents=True, exist_ok=True)
            weights.write_bytes(trained_weights(f"{detector}_puppets", name).read_bytes())


def summarise(record: harness.Record) -> str:
    """Return the clean and the corrupted score of each way, to be printed."""
    parts = []
    for way, scores in record["scores"].items():
        corrupted = np.mean([value for cell, value in scores.items() if cell != CLEAN])
        parts.append(f"{way} {100 * scores[CLEAN]:.2f} {100 * corrupted:.2f}")
    return ", ".join(parts)


def measure(run: MendingRun, place: Place, names: Collection[str]) -> harness.Record:
    """Score a detector on these test films in every cell of a group, in every way."""
    detector = load_trained(f"{run.detector}_puppets", run.training.weights_in(place.work))
    truth = jostle.load_truth(place.truth, subset="test", protocol="thumos14")
    states = DetectedStates(detector, read_states(place.states(run.network, run.group), names), truth)
    record: harness.Record = {"films": len(states.films), "scores": {}, "found": states.found}
    for way, cells in states.numbers.items():
        scores = {cell: states.score(way, cell) for cell in cells}
        record["scores"][way] = {cell: round(float(score.map[AT_HALF]), 5) for cell, score in scores.items()}
        if run.group in DRAWN:
            record.setdefault("drawn", {})[way] = draw_scores(scores, states.films)
        if run.group == "main":
            record.setdefault("diagnosis", {})[way] = {
                name: {key: round(value, 5) for key, value in profile.items()}
                for name, profile in states.errors(way, PUPPETS_C).items()
            }
    if run.group == UNSEEN:
        own = [way for way in states.numbers if way != KNOWN and not way.endswith(ALONE)]
        files = {way: inspector_file(place.work / "inspectors", way) for way in own}
        record["inspectors"] = {way: int(read_metadata(file)["steps"]) for way, file in files.items()}
    else:
        record["inspector"] = jostle.load_inspector().fingerprint
    return record


def draw_scores(scored: dict[str, Any], films: list[str]) -> list[list[float]]:
    """Return the clean score and the mean of the others in each draw of the films."""
    weights = video_weights(films, DRAWS)
    place = {name: i for i, name in enumerate(films)}
    values = {}
    for cell, one in scored.items():
        own = [place[name] for name in one.resamples.videos]
        values[cell] = one.resamples.weighted(weights[:, own])[:, AT_HALF]
    clean = values.pop(CLEAN)
    return [
        [round(float(a), 4), round(float(b), 4)] for a, b in zip(clean, np.mean([*values.values()], 0), strict=True)
    ]


def learn(run: DetectorRun, place: Place, epochs: int | None = None) -> harness.Record:
    """Train a detector; the record is empty."""
    config = settings_for(run, place)
    if epochs is not None:
        config = replace(config, optimiser=replace(config.optimiser, epochs=epochs, warmup_epochs=0))
    harness.train_run(config, run.folder_in(place.work))
    return {}


if __name__ == "__main__":
    harness.run_module("studies.mending")
