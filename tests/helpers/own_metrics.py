"""A metric of one's own for each task, written with `jostle.extend` alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from jostle.extend import MeanOverItems, Measured, Metric, metric, statistic


@metric("own_detection")
class DetectedActions(Metric):
    """Share of actions that some detection of their video overlaps."""

    task = "detection"
    mean_over = "actions"
    has_intervals = True

    def label(self, options: Any) -> str:
        return f"detected by {options.protocol}"

    def measure(self, truth: Any, predictions: Any, options: Any) -> Measured:
        names, total, count = truth.videos, np.zeros(len(truth.videos)), np.zeros(len(truth.videos))
        for v, start, end in zip(truth.video, truth.start, truth.end, strict=True):
            own = predictions.video == predictions.videos.index(names[v])
            total[v] += bool(((predictions.start[own] < end) & (predictions.end[own] > start)).any())
            count[v] += 1
        return MeanOverItems(names, total, count)


@metric("own_recognition")
class SureVideos(Metric):
    """Share of videos whose class is among the two best."""

    task = "recognition"
    mean_over = "videos"
    has_intervals = True

    def measure(self, truth: Any, predictions: Any, options: Any) -> Measured:
        own = truth.label[np.argsort(truth.video)]
        order = [truth.videos.index(name) for name in predictions.names]
        best = np.argsort(-predictions.scores, axis=1)[:, :2]
        right = (best == own[order][:, None]).any(axis=1)
        return MeanOverItems(predictions.names, right.astype(float), np.ones(len(right)))


@metric("own_frames")
class RightFrames(Metric):
    """Share of frames that are right, each by itself."""

    task = "frames"

    def measure(self, truth: Any, predictions: Any, options: Any) -> Measured:
        parts = predictions.names, predictions.scores
        right = [scores.argmax() in truth.labels[name] for name, scores in zip(*parts, strict=True)]
        return Measured(float(np.mean(right)), truth.videos, {"frames": len(right)})


@metric("own_objects")
class SureBoxes(Metric):
    """Share of boxes with a score of at least a half."""

    task = "objects"

    def measure(self, truth: Any, predictions: Any, options: Any) -> Measured:
        scores = np.concatenate([boxes.score for boxes in predictions.boxes.values()])
        return Measured(float((scores >= 0.5).mean()))


@metric("own_questions")
class ReadableAnswers(Metric):
    """Share of questions whose answer can be read."""

    task = "questions"

    def measure(self, truth: Any, predictions: Any, options: Any) -> Measured:
        readable = [predictions.answers[item.id].choice is not None for item in truth.items]
        return Measured(sum(readable) / len(readable), truth.videos)


@metric("own_moments")
class EarlyWindows(Metric):
    """Share of sentences whose first window begins before 5 s."""

    task = "moments"

    def measure(self, truth: Any, predictions: Any, options: Any) -> Measured:
        early = [predictions.predictions[item.id].windows[0][0] < 5 for item in truth.items]
        return Measured(float(np.mean(early)), truth.videos)


@statistic("own_statistic", task="questions")
def own_statistic(first: Any, second: Any) -> float:
    """Number that needs two cells."""
    return float(first - second)
