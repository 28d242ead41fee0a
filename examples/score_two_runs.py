"""Compare and diagnose two runs of a detector: python examples/score_two_runs.py [FOLDER]

Generates ground truth and two runs, one on clean videos and one as after a corruption, and prints which is better, by
how much, and which errors increased. With a FOLDER it also writes truth.json, clean.json and rough.json there, for
`jostle eval` and `jostle diagnose`. Replace them by your own files.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import jostle
from jostle.extend import compare_diagnoses, write_predictions, write_truth

CLASSES = ("Dive", "Jump", "Swing", "Throw")
VIDEOS, INSTANCES, FALSE_ALARMS = 40, 320, 3300


def make_truth() -> jostle.Truth:
    """Return actions of 1 to 20 seconds in videos of one to five minutes, mostly of one class a video."""
    rng = np.random.default_rng(0)
    duration = rng.uniform(60, 300, VIDEOS).round(1)
    video = np.sort(rng.integers(0, VIDEOS, INSTANCES))
    is_typical = rng.random(INSTANCES) < 0.8
    label = np.where(is_typical, video % len(CLASSES), rng.integers(0, len(CLASSES), INSTANCES))
    length = np.clip(rng.gamma(2, 3, INSTANCES), 1, 20)
    start = (rng.random(INSTANCES) * (duration[video] - length)).round(2)
    return jostle.Truth(
        videos=tuple(f"v{i:02d}" for i in range(VIDEOS)),
        classes=CLASSES,
        video=video,
        start=start,
        end=(start + length).round(2),
        label=label,
        subsets=("test",) * VIDEOS,
        duration=duration,
        label_ids=tuple(range(len(CLASSES))),
    )


def make_run(truth: jostle.Truth, *, recall: float, shift: float, confusion: float) -> jostle.Predictions:
    """Return detections: of instances, some of them twice, and many false alarms, most of them with a low score.

    Args:
        recall: probability that an instance of 4 s or more is detected; that of a shorter one is lower.
        shift: standard deviation of a boundary's error, relative to the length of the instance.
        confusion: probability of a wrong class.
    """
    rng = np.random.default_rng(1)
    length = truth.end - truth.start
    hits = np.flatnonzero(rng.random(INSTANCES) < recall * np.minimum(1, length / 4))
    hits = np.concatenate([hits, rng.choice(hits, len(hits) // 5)])
    false = FALSE_ALARMS
    video = np.concatenate([truth.video[hits], rng.integers(0, VIDEOS, false)])
    own = length[np.concatenate([hits, rng.integers(0, INSTANCES, false)])]
    start = np.concatenate([truth.start[hits], rng.random(false) * truth.duration[video[len(hits) :]]])
    start = np.maximum(start + shift * own * rng.normal(size=len(own)), 0)
    end = start + own * np.exp(shift * rng.normal(size=len(own)))
    label = np.concatenate([truth.label[hits], rng.integers(0, len(CLASSES), false)])
    label = np.where(rng.random(len(label)) < confusion, rng.integers(0, len(CLASSES), len(label)), label)
    score = np.concatenate([rng.uniform(0.3, 1, len(hits)), 0.8 * rng.random(false) ** 12])
    return jostle.Predictions(truth.videos, CLASSES, video, start.round(3), end.round(3), label, score.round(9))


def make_runs(truth: jostle.Truth) -> dict[str, jostle.Predictions]:
    """Return the runs on clean and on corrupted videos, by name."""
    return {
        "clean": make_run(truth, recall=0.95, shift=0.10, confusion=0.04),
        "rough": make_run(truth, recall=0.75, shift=0.22, confusion=0.10),
    }


def main(folder: str | None = None) -> None:
    """Print the comparison and the diagnosis."""
    truth = make_truth()
    runs = make_runs(truth)
    if folder is not None:
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        write_truth(truth, target / "truth.json")
        for name, predictions in runs.items():
            write_predictions(predictions, target / f"{name}.json")

    clean, rough = (jostle.score(predictions, truth, protocol="thumos14") for predictions in runs.values())
    difference = jostle.compare(clean, rough)
    assert difference.interval is not None
    low, high = difference.interval.average_map
    print(f"average mAP {100 * clean.average_map:.1f} clean, {100 * rough.average_map:.1f} rough")
    print(f"change {100 * difference.average_map:+.1f} points, 95 % [{100 * low:.1f}, {100 * high:.1f}]")

    before, after = (jostle.diagnose(predictions, truth) for predictions in runs.values())
    changes = compare_diagnoses(before, after)
    print(f"missed instances: {before.false_negatives.overall:.1%}, then {after.false_negatives.overall:.1%}")
    print("share of the first predictions, as many as there are instances:")
    for kind in changes.totals:
        first, second = (float(diagnosis.false_positives.profile[0][kind] or 0) for diagnosis in (before, after))
        print(f"  {kind.replace('_', ' '):17}{first:6.1%}{second:8.1%}")


if __name__ == "__main__":
    main(*sys.argv[1:])
