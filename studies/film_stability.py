"""Stability of real image classifiers on DAVIS: accuracy beside pm-10, with intervals over sequences.

python -m studies.film_stability WORK classify record --footage FOOTAGE
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import cv2
import numpy as np

import jostle
from jostle.metrics.bootstrap import share_interval
from studies.harness import (
    STUDIES,
    GridRun,
    Record,
    fill_tables,
    finish,
    markdown_table,
    parse_arguments,
    read_records,
    run_grid,
)

STEPS = ("classify", "record")
RESULTS = STUDIES / "film_stability.jsonl"
CLASSIFIERS = {
    "lite0": "EfficientNet-Lite0",
    "lite1": "EfficientNet-Lite1",
    "lite2": "EfficientNet-Lite2",
    "v1_0.25_128": "MobileNet V1 0.25",
    "v1_0.5_160": "MobileNet V1 0.5",
    "v1_0.75_192": "MobileNet V1 0.75",
    "v2_1.0_224": "MobileNet V2",
}
K = 10
ANCHORS = range(K, 45 - K, 5)
DOGS = tuple(range(151, 269))  # every breed
# Classes of ImageNet that are right for the subject of a sequence.
SUBJECTS: dict[str, tuple[int, ...]] = {
    "blackswan": (100,),
    "camel": (354,),
    "cows": (345,),
    "dog": DOGS,
    "goat": (350,),
    "motocross-jump": (665, 670),
    "scooter-black": (670,),
}
read_results = partial(read_records, RESULTS)


@dataclass(frozen=True)
class ClassifierRun(GridRun):
    """One classifier on all sequences."""

    network: str
    seed: int = 0


def main() -> None:
    """Do the steps that are arguments for."""
    arguments = parse_arguments(__doc__, STEPS, at_once=2, footage=Path)
    results = arguments.work / RESULTS.name
    if "classify" in arguments.steps:
        measure = partial(measure_run, footage=arguments.footage)
        runs = [ClassifierRun(name) for name in CLASSIFIERS]
        finish(run_grid(runs, measure, results, at_once=arguments.at_once, summarise=summarise))
    if "record" in arguments.steps:
        shutil.copy(results, RESULTS)


def measure_run(run: ClassifierRun, footage: Path) -> Record:
    """Classify every frame near an anchor, and return for each anchor how far around it the classifier is right."""
    from studies.film_networks import load_classifier

    begin = time.monotonic()
    classify = load_classifier(run.network, footage / "weights")
    scores, sets, labels = {}, {}, {}
    for name, classes in SUBJECTS.items():
        files = sorted((footage / "davis" / name).glob("*.jpg"))
        for number, file in enumerate(files):
            picture = cv2.imread(str(file))
            assert picture is not None, file
            frame = f"{name}/{number:05d}"
            scores[frame] = classify(cv2.cvtColor(picture, cv2.COLOR_BGR2RGB))  # type: ignore[arg-type]
            labels[frame] = list(classes)
        for anchor in (number for number in ANCHORS if number < len(files) - K):
            around = (number for number in range(anchor - K, anchor + K + 1) if number != anchor)
            sets[f"{name}/{anchor:05d}"] = [f"{name}/{number:05d}" for number in around]
    anchors = []
    for anchor, others in sets.items():
        one = jostle.pm_k(scores, {anchor: others}, labels, K)
        anchors.append([anchor, one.accuracy == 1, one.pm_k == 1])
    right = [int(np.argmax(scores[frame])) in labels[frame] for frame in scores]
    return {
        "run": asdict(run),
        "frames": float(np.mean(right)),
        "anchors": anchors,
        "seconds": round(time.monotonic() - begin),
    }


def summarise(record: Record) -> str:
    """Format what is printed of a record."""
    return f"accuracy {shares(record)[0]:.3f}, pm-{K} {shares(record)[1]:.3f}"


def shares(record: Record) -> tuple[float, float]:
    """Return the accuracy on anchors, and pm-k."""
    table = np.array([one[1:] for one in record["anchors"]], float)
    return float(table[:, 0].mean()), float(table[:, 1].mean())


def stability_table(records: Sequence[Record]) -> str:
    """Format accuracy and pm-k of each classifier, the most accurate first."""
    rows = []
    for record in sorted(records, key=lambda one: -shares(one)[0]):
        owners = [anchor.rpartition("/")[0] for anchor, _, _ in record["anchors"]]
        cells = []
        for column in (1, 2):
            right = np.array([one[column] for one in record["anchors"]], bool)
            ends = share_interval(owners, right)
            text = "" if ends is None else f" [{100 * ends[0]:.0f}, {100 * ends[1]:.0f}]"
            cells.append(f"{100 * right.mean():.1f}{text}")
        accuracy, stable = shares(record)
        cells.append(f"{100 * (accuracy - stable):.1f}")
        rows.append([CLASSIFIERS[record["run"]["network"]], *cells])
    return markdown_table(["classifier", "accuracy on anchors, %", f"pm-{K}, %", "lost to the frames around"], rows)


TABLES = {"stability": stability_table}


def fill_page(page: str, records: Sequence[Record]) -> str:
    """Return the page with the tables of this study as the records have them."""
    return fill_tables("film", TABLES, page, records)


if __name__ == "__main__":
    main()
