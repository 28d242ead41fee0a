"""Mean average precision and DETAD's analyses as the public programs compute them: row by row, over data frames.

Written from their published rules, with their cost: every prediction looks up the instances of its video in a grouped
frame, and every analysis iterates over the rows again. Ties are broken by reversed stable sorts, and predictions in
videos without an instance are Background, so that the numbers can be compared to the last digits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

KINDS = ("double_detection", "wrong_label", "localization", "confusion", "background")


def overlaps(target: Any, candidates: Any) -> Any:
    """Return the tIoU of a segment with each of several candidates."""
    inter = (np.minimum(target[1], candidates[:, 1]) - np.maximum(target[0], candidates[:, 0])).clip(0)
    union = (candidates[:, 1] - candidates[:, 0]) + (target[1] - target[0]) - inter
    return inter / union


def match_class(truth: pd.DataFrame, predictions: pd.DataFrame, tious: Any) -> Any:
    """Return predictions by falling score, and the (T, n) instance that each of them matches, NaN for none."""
    predictions = predictions.loc[predictions["score"].to_numpy().argsort(kind="stable")[::-1]].reset_index(drop=True)
    used: list[set[int]] = [set() for _ in tious]
    matched = np.full((len(tious), len(predictions)), np.nan)
    by_video = truth.groupby("video")
    for i, row in predictions.iterrows():
        try:
            instances = by_video.get_group(row["video"]).reset_index()
        except KeyError:
            continue
        overlap = overlaps(row[["start", "end"]].to_numpy(float), instances[["start", "end"]].to_numpy())
        for t, threshold in enumerate(tious):
            for j in overlap.argsort(kind="stable")[::-1]:
                if overlap[j] < threshold:
                    break
                if instances.loc[j]["index"] in used[t]:
                    continue
                used[t].add(instances.loc[j]["index"])
                matched[t, i] = instances.loc[j]["index"]
                break
    return predictions, matched


def interpolated_area(precision: Any, recall: Any) -> float:
    """Return the all-point interpolated area under a precision-recall curve."""
    p, r = np.hstack([[0], precision, [0]]), np.hstack([[0], recall, [1]])
    for i in range(len(p) - 2, -1, -1):
        p[i] = max(p[i], p[i + 1])
    steps = np.where(r[1:] != r[:-1])[0] + 1
    return float(np.sum((r[steps] - r[steps - 1]) * p[steps]))


def average_precision(hit: Any, positives: int, normaliser: float | None = None) -> float:
    """Return the average precision of a ranked list of hits and misses, normalised as in DETAD if requested."""
    if not len(hit):
        return 0.0
    hits, misses = np.cumsum(hit).astype(float), np.cumsum(~hit).astype(float)
    recall = hits / positives
    weight = recall * (positives if normaliser is None else normaliser)
    return interpolated_area(weight / (weight + misses), recall)


def mean_ap(truth: pd.DataFrame, predictions: pd.DataFrame, tious: Any) -> Any:
    """Return the (T,) mean over classes of average precision."""
    values = []
    for label in truth["label"].unique():
        instances = truth[truth["label"] == label].reset_index(drop=True)
        own = predictions[predictions["label"] == label].reset_index(drop=True)
        _, matched = match_class(instances, own, tious)
        values.append([average_precision(~np.isnan(row), len(instances)) for row in matched])
    return np.mean(values, axis=0)


class Diagnosis:
    """DETAD's analyses of a data frame of predictions, each of them a pass over the rows."""

    def __init__(self, truth: pd.DataFrame, predictions: pd.DataFrame, tious: Any) -> None:
        self.truth, self.predictions, self.tious = truth, predictions, tious
        self.labels = list(truth["label"].unique())
        self.normaliser = len(truth) / len(self.labels)

    def match_classes(self, predictions: pd.DataFrame) -> tuple[pd.DataFrame, Any]:
        """Match predictions class by class; instances are numbered by their row in the truth."""
        frames, matches = [], []
        for label in self.labels:
            instances = self.truth[self.truth["label"] == label]
            own = predictions[predictions["label"] == label].reset_index(drop=True)
            frame, matched = match_class(instances.reset_index(drop=True), own, self.tious)
            rows = instances.index.to_numpy().astype(float)
            frames.append(frame)
            if len(instances):
                matched = np.where(np.isnan(matched), np.nan, rows[np.nan_to_num(matched).astype(int)])
            matches.append(matched)
        return pd.concat(frames, ignore_index=True), np.concatenate(matches, axis=1)

    def select_top(self) -> pd.DataFrame:
        """Return the best predictions of each class, ten for each of its instances."""
        selection = []
        for label in self.labels:
            count = 10 * (self.truth["label"] == label).sum()
            own = self.predictions[self.predictions["label"] == label]
            selection.append(own.sort_values("score", ascending=False, kind="stable").head(count))
        return pd.concat(selection, ignore_index=True)

    def classify_errors(self, predictions: pd.DataFrame, matched: Any) -> Any:
        """Return (T, n) 0 for a true positive, else 1 plus the index of the kind of error."""
        by_video = self.truth.groupby("video")
        kinds = np.full(matched.shape, 5)
        for t, threshold in enumerate(self.tious):
            for i, row in predictions.iterrows():
                if not np.isnan(matched[t, i]):
                    kinds[t, i] = 0
                    continue
                try:
                    instances = by_video.get_group(row["video"]).reset_index(drop=True)
                except KeyError:
                    continue
                overlap = overlaps(row[["start", "end"]].to_numpy(float), instances[["start", "end"]].to_numpy())
                best = overlap.argmax()
                same = instances.loc[best, "label"] == row["label"]
                if overlap[best] >= threshold:
                    kinds[t, i] = 1 if same else 2
                elif overlap[best] >= 0.1:
                    kinds[t, i] = 3 if same else 4
        return kinds

    def normalised_map(
        self, predictions: pd.DataFrame, matched: Any, keep: Any = None, is_counted: Any = None
    ) -> float:
        """Return the mean AP_N over thresholds and classes, of the rows to keep, for the instances to count."""
        values = []
        for label in self.labels:
            instances = (self.truth["label"] == label) & (True if is_counted is None else is_counted)
            if not instances.sum():
                continue
            rows = (predictions["label"] == label).to_numpy()
            for t in range(len(self.tious)):
                selection = rows if keep is None else rows & keep[t]
                hit = ~np.isnan(matched[t, selection])
                values.append(average_precision(hit, instances.sum(), self.normaliser))
        return float(np.mean(values))

    def impact(self) -> dict[str, float]:
        """Return the gain in mean AP_N without each kind of error."""
        predictions, matched = self.match_classes(self.select_top())
        kinds = self.classify_errors(predictions, matched)
        base = self.normalised_map(predictions, matched)
        return {kind: self.normalised_map(predictions, matched, kinds != i + 1) - base for i, kind in enumerate(KINDS)}

    def sensitivity(self, buckets: dict[str, pd.Series]) -> dict[str, dict[str, float]]:
        """Return the mean AP_N on the instances of each bucket."""
        predictions, matched = self.match_classes(self.predictions)
        scores: dict[str, dict[str, float]] = {}
        for name, bucket in buckets.items():
            scores[name] = {}
            for value in bucket.unique():
                is_inside = bucket == value
                inside = is_inside.to_numpy()
                keep = np.array([all(np.isnan(m) or inside[int(m)] for m in column) for column in matched.T])
                keep = np.stack([keep] * len(self.tious))
                scores[name][value] = self.normalised_map(predictions, matched, keep, is_inside)
        return scores

    def false_negatives(self, buckets: dict[str, pd.Series], floor: float = 0.05) -> dict[str, dict[str, float]]:
        """Return the share of each bucket's instances that no prediction matches at a precision above the floor."""
        predictions, matched = self.match_classes(self.predictions)
        missed = np.ones((len(self.tious), len(self.truth)), bool)
        for label in self.labels:
            positives = (self.truth["label"] == label).sum()
            rows = (predictions["label"] == label).to_numpy()
            for t in range(len(self.tious)):
                own = matched[t, rows]
                hit = ~np.isnan(own)
                weight = np.cumsum(hit) / positives * self.normaliser
                precision = weight / (weight + np.cumsum(~hit))
                missed[t, own[hit & (precision > floor)].astype(int)] = False
        return {
            name: {value: float(missed[:, (bucket == value).to_numpy()].mean()) for value in bucket.unique()}
            for name, bucket in buckets.items()
        }
