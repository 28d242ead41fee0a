"""Compare detections on a clean and a corrupted film: python examples/corrupt_a_film.py [SPEC] [DETECTOR]

Renders one film of the embedded data set, extracts its features clean and with the middle of each action corrupted, and
runs two detectors on both: one that was trained on clean films, and a robust one. For each action it prints the tIoU of
the best segment of its class. Nothing is downloaded; it takes some seconds on one core. For a video of your own, give
`compare` its path and its actions.
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


def best_overlap(actions: jostle.Segments, detections: jostle.Segments) -> npt.NDArray[np.float64]:
    """Return the largest tIoU of each of N actions with a segment of its class, among the N best detections."""
    best = detections[: len(actions)]
    if not len(best):
        return np.zeros(len(actions))
    intersection = np.minimum(actions.end[:, None], best.end) - np.maximum(actions.start[:, None], best.start)
    union = np.maximum(actions.end[:, None], best.end) - np.minimum(actions.start[:, None], best.start)
    names = [np.array(one.classes)[one.label] for one in (actions, best)]
    return np.where(names[0][:, None] == names[1], np.maximum(intersection / union, 0.0), 0.0).max(axis=1)


def compare(
    video: Path, actions: jostle.Segments, extractor: FeatureExtractor, detectors: Mapping[str, Any], spec: str
) -> dict[str, npt.NDArray[np.float64]]:
    """Return the overlap of each action with the detections, clean and corrupted, by column of the table."""
    with Reader(video) as reader:
        features = VideoFeatures(reader, extractor, video_id=video.stem, segments=actions)
        extractions = {"clean": features.clean(), "corrupted": features.under([Spec.parse(spec)])}
        for state, one in extractions.items():
            print(f"{state:9} {one.cost.seen:5} frames processed, {one.cost.joined:4} windows computed")
        facts = {"fps": features.fps, "duration": reader.end_s}
    return {
        f"{name}, {state}": best_overlap(actions, detector.detect(one.features, **facts))
        for name, detector in detectors.items()
        for state, one in extractions.items()
    }


def print_table(actions: jostle.Segments, overlaps: Mapping[str, npt.NDArray[np.float64]]) -> None:
    """Print a line for each action."""
    print(f"{'action':12}{'from':>6}{'to':>6}  " + "".join(f"{name:>20}" for name in overlaps))
    for i in range(len(actions)):
        values = "".join(f"{overlap[i]:20.2f}" for overlap in overlaps.values())
        print(f"{actions.classes[actions.label[i]]:12}{actions.start[i]:6.1f}{actions.end[i]:6.1f}  {values}")


def main(spec: str = SPEC, detector: str = "actionformer_puppets") -> None:
    """Render a film, run both detectors on it clean and corrupted, and print the table."""
    recipe = Video(seed=0, subset="test", number=1)
    truth = truth_of({recipe.id: recipe.film()}, ["test"])
    actions = jostle.Segments(truth.start, truth.end, truth.label, classes=truth.classes)
    weights = {"baseline": "clean", "robust": "robust"}
    detectors = {name: jostle.load_detector(detector, weights=value) for name, value in weights.items()}
    with tempfile.TemporaryDirectory() as folder:
        video = Path(folder) / f"{recipe.id}.mp4"
        recipe.write(video)
        print_table(actions, compare(video, actions, jostle.load_extractor("puppet_net"), detectors, spec))


if __name__ == "__main__":
    main(*sys.argv[1:])
