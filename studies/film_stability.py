"""Stability of real image classifiers on DAVIS: accuracy beside pm-10, with intervals over sequences.

python -m studies.film_stability WORK classify record --footage FOOTAGE
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

import jostle
from jostle.metrics.bootstrap import share_interval
from studies import harness

SETTINGS = harness.load_settings("film_stability")
CLASSIFIERS: dict[str, str] = SETTINGS["classifiers"]
K: int = SETTINGS["k"]
ANCHORS = range(K, 45 - K, 5)
# Classes of ImageNet that are right for the subject of a sequence.
SUBJECTS = {
    name: tuple(number for span in spans for number in range(*span)) for name, spans in SETTINGS["subjects"].items()
}


@dataclass(frozen=True)
class ClassifierRun(harness.GridRun):
    """One classifier on all sequences."""

    network: str
    seed: int = 0


def study_runs() -> list[ClassifierRun]:
    """Return the runs of the study."""
    return harness.list_runs(ClassifierRun, network=CLASSIFIERS)


def main() -> None:
    """Run the steps that are arguments."""
    steps = {"classify": harness.Grid(study_runs, measure_run, summarise)}
    harness.run_study(__doc__, "film_stability", steps, at_once=2, footage=Path)


def measure_run(run: ClassifierRun, footage: Path) -> harness.Record:
    """Classify every frame near an anchor, and return for each anchor how far around it the classifier is right."""
    from studies.film_networks import load_classifier

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
    return {"frames": float(np.mean(right)), "anchors": anchors}


def summarise(record: harness.Record) -> str:
    """Format what is printed of a record."""
    return f"accuracy {shares(record)[0]:.3f}, pm-{K} {shares(record)[1]:.3f}"


def shares(record: harness.Record) -> tuple[float, float]:
    """Return the accuracy on anchors, and pm-k."""
    right = np.array([one[1:] for one in record["anchors"]], float)
    return float(right[:, 0].mean()), float(right[:, 1].mean())


@harness.table("classifier", "accuracy on anchors, %", f"pm-{K}, %", "lost to the frames around")
def stability_table(results: harness.Results) -> Iterator[list[str]]:
    """Accuracy and pm-k of each classifier, the most accurate first."""
    for record in sorted(results.film_stability, key=lambda one: -shares(one)[0]):
        owners = [anchor.rpartition("/")[0] for anchor, _, _ in record["anchors"]]
        cells = []
        for column in (1, 2):
            right = np.array([one[column] for one in record["anchors"]], bool)
            cells.append(harness.with_interval(right.mean(), share_interval(owners, right), ".1f", ".0f", 100))
        accuracy, stable = shares(record)
        yield [CLASSIFIERS[record["run"]["network"]], *cells, f"{100 * (accuracy - stable):.1f}"]


TABLES = {"stability": stability_table}


if __name__ == "__main__":
    harness.run_module("studies.film_stability")
