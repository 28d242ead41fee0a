"""What a corruption does to what a detector finds: python examples/strike_a_film.py [SPEC] [DETECTOR]

Draws one film of the embedded data set, extracts its features as it is and with the middle of each action struck, and
lets two detectors look at both: one that was trained on clean films, and a robust one. For each action it prints how
well the best segment of that class fits, by tIoU. Nothing is downloaded; it takes some seconds on one core. For a video
of your own, give `compare` its path and its actions.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import jostle
from jostle.extend import FeatureExtractor, Reader, Spec, Video, VideoFeatures, truth_of

SPEC = "thumos14-c/black_frame:3"  # the central 10 % of each action go black


def best_fit(actions: jostle.Segments, found: jostle.Segments) -> npt.NDArray[np.float64]:
    """(N,) the largest tIoU of each action with a segment of its class, among the N surest segments."""
    surest = found[: len(actions)]
    if not len(surest):
        return np.zeros(len(actions))
    together = np.minimum(actions.end[:, None], surest.end) - np.maximum(actions.start[:, None], surest.start)
    apart = np.maximum(actions.end[:, None], surest.end) - np.minimum(actions.start[:, None], surest.start)
    names = [np.array(one.classes)[one.label] for one in (actions, surest)]
    return np.where(names[0][:, None] == names[1], np.maximum(together / apart, 0.0), 0.0).max(axis=1)


def compare(
    video: Path, actions: jostle.Segments, extractor: FeatureExtractor, detectors: Mapping[str, Any], spec: str
) -> dict[str, npt.NDArray[np.float64]]:
    """How well each detector fits each action, in the film as it is and struck; by column of the table."""
    with Reader(video) as reader:
        features = VideoFeatures(reader, extractor, video_id=video.stem, segments=actions)
        states = {"as is": features.clean(), "struck": features.under([Spec.parse(spec)])}
        for state, done in states.items():
            print(f"{state:7} {done.cost.seen:5} frames seen, {done.cost.joined:4} windows made")
        facts = {"fps": features.fps, "duration": reader.end_s}
    return {
        f"{name}, {state}": best_fit(actions, detector.detect(done.features, **facts))
        for name, detector in detectors.items()
        for state, done in states.items()
    }


def show(actions: jostle.Segments, fits: Mapping[str, npt.NDArray[np.float64]]) -> None:
    """Print a line for each action."""
    print(f"{'action':12}{'from':>6}{'to':>6}  " + "".join(f"{name:>16}" for name in fits))
    for i in range(len(actions)):
        values = "".join(f"{fit[i]:16.2f}" for fit in fits.values())
        print(f"{actions.classes[actions.label[i]]:12}{actions.start[i]:6.1f}{actions.end[i]:6.1f}  {values}")


def main(spec: str = SPEC, detector: str = "actionformer_puppets") -> None:
    """Draw a film, look at it in both states with both detectors, and print the table."""
    recipe = Video(seed=0, subset="test", number=1)
    truth = truth_of({recipe.id: recipe.film()}, ["test"])
    actions = jostle.Segments(truth.start, truth.end, truth.label, classes=truth.classes)
    detectors = {name: jostle.load_detector(detector, weights=name) for name in ("clean", "robust")}
    with tempfile.TemporaryDirectory() as folder:
        video = Path(folder) / f"{recipe.id}.mp4"
        recipe.write(video)
        show(actions, compare(video, actions, jostle.load_extractor("puppet_net"), detectors, spec))


if __name__ == "__main__":
    main(*sys.argv[1:])
