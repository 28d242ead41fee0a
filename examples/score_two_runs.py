"""Two runs of one detector, compared and explained: python examples/score_two_runs.py [FOLDER]

Makes ground truth and two runs on the spot, one on clean videos and one as after a corruption, and prints which is
better, by how much, and what went wrong. With a FOLDER it also leaves truth.json, clean.json and rough.json there, for
`jostle eval` and `jostle diagnose`. Put your own files in their place.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import jostle
from jostle.extend import compare_diagnoses, write_predictions, write_truth

CLASSES = ("Dive", "Jump", "Swing", "Throw")
VIDEOS, INSTANCES, FALSE_ALARMS = 40, 320, 3300


def made_truth() -> jostle.Truth:
    """Actions of 1 to 20 seconds in videos of one to five minutes, mostly of one class a video."""
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


def made_run(truth: jostle.Truth, *, found: float, shift: float, mixed: float) -> jostle.Predictions:
    """Detections of instances, some of them twice, and many of nothing, most of those with a low score.

    Args:
        found: chance that an instance of 4 s or more is seen; a shorter one has less.
        shift: by what part of its length a boundary is off, as a standard deviation.
        mixed: chance of a wrong class.
    """
    rng = np.random.default_rng(1)
    length = truth.end - truth.start
    seen = np.flatnonzero(rng.random(INSTANCES) < found * np.minimum(1, length / 4))
    seen = np.concatenate([seen, rng.choice(seen, len(seen) // 5)])
    false = FALSE_ALARMS
    video = np.concatenate([truth.video[seen], rng.integers(0, VIDEOS, false)])
    own = length[np.concatenate([seen, rng.integers(0, INSTANCES, false)])]
    start = np.concatenate([truth.start[seen], rng.random(false) * truth.duration[video[len(seen) :]]])
    start = np.maximum(start + shift * own * rng.normal(size=len(own)), 0)
    end = start + own * np.exp(shift * rng.normal(size=len(own)))
    label = np.concatenate([truth.label[seen], rng.integers(0, len(CLASSES), false)])
    label = np.where(rng.random(len(label)) < mixed, rng.integers(0, len(CLASSES), len(label)), label)
    score = np.concatenate([rng.uniform(0.3, 1, len(seen)), 0.8 * rng.random(false) ** 12])
    return jostle.Predictions(truth.videos, CLASSES, video, start.round(3), end.round(3), label, score.round(9))


def made_runs(truth: jostle.Truth) -> dict[str, jostle.Predictions]:
    """The clean run and the rough one."""
    return {
        "clean": made_run(truth, found=0.95, shift=0.10, mixed=0.04),
        "rough": made_run(truth, found=0.75, shift=0.22, mixed=0.10),
    }


def main(folder: str | None = None) -> None:
    """Print the comparison and the diagnosis."""
    truth = made_truth()
    runs = made_runs(truth)
    if folder is not None:
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        write_truth(truth, target / "truth.json")
        for name, found in runs.items():
            write_predictions(found, target / f"{name}.json")

    clean, rough = (jostle.score(found, truth, protocol="thumos14") for found in runs.values())
    both = jostle.compare(clean, rough)
    assert both.interval is not None
    low, high = both.interval.average_map
    print(f"average mAP {100 * clean.average_map:.1f} clean, {100 * rough.average_map:.1f} rough")
    print(f"change {100 * both.average_map:+.1f} points, 95 % [{100 * low:.1f}, {100 * high:.1f}]")

    before, after = (jostle.diagnose(found, truth) for found in runs.values())
    changed = compare_diagnoses(before, after)
    print(f"missed instances: {before.false_negatives.overall:.1%}, then {after.false_negatives.overall:.1%}")
    print("share of the first predictions, as many as there are instances:")
    for kind in changed.totals:
        first, second = (float(one.false_positives.profile[0][kind] or 0) for one in (before, after))
        print(f"  {kind.replace('_', ' '):17}{first:6.1%}{second:8.1%}")


if __name__ == "__main__":
    main(*sys.argv[1:])
