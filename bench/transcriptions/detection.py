"""Mean average precision and DETAD's analyses as the public programs compute them: row by row, over data frames.

Written from their published rules, with their cost: every prediction looks up its video's instances in a grouped
frame, and every analysis walks the rows again. Ties are broken by stable sorts read backwards, and predictions in
videos without an instance are Background, so that the numbers can be compared to the last digits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

KINDS = ("double_detection", "wrong_label", "localization", "confusion", "background")


def overlaps(target: Any, candidates: Any) -> Any:
    """tIoU of one segment with each of many."""
    inter = (np.minimum(target[1], candidates[:, 1]) - np.maximum(target[0], candidates[:, 0])).clip(0)
    union = (candidates[:, 1] - candidates[:, 0]) + (target[1] - target[0]) - inter
    return inter / union


def match_class(truth: pd.DataFrame, found: pd.DataFrame, tious: Any) -> Any:
    """(T, n) the instance that each prediction took, NaN for none, in the order of falling scores."""
    found = found.loc[found["score"].to_numpy().argsort(kind="stable")[::-1]].reset_index(drop=True)
    taken: list[set[int]] = [set() for _ in tious]
    matched = np.full((len(tious), len(found)), np.nan)
    by_video = truth.groupby("video")
    for place, row in found.iterrows():
        try:
            here = by_video.get_group(row["video"]).reset_index()
        except KeyError:
            continue
        overlap = overlaps(row[["start", "end"]].to_numpy(float), here[["start", "end"]].to_numpy())
        for t, threshold in enumerate(tious):
            for j in overlap.argsort(kind="stable")[::-1]:
                if overlap[j] < threshold:
                    break
                if here.loc[j]["index"] in taken[t]:
                    continue
                taken[t].add(here.loc[j]["index"])
                matched[t, place] = here.loc[j]["index"]
                break
    return found, matched


def interpolated(precision: Any, recall: Any) -> float:
    """All-point interpolated area under a precision-recall curve."""
    p, r = np.hstack([[0], precision, [0]]), np.hstack([[0], recall, [1]])
    for i in range(len(p) - 2, -1, -1):
        p[i] = max(p[i], p[i + 1])
    steps = np.where(r[1:] != r[:-1])[0] + 1
    return float(np.sum((r[steps] - r[steps - 1]) * p[steps]))


def average_precision(right: Any, positives: int, normaliser: float | None = None) -> float:
    """Of a ranked list of hits and misses."""
    if not len(right):
        return 0.0
    hits, misses = np.cumsum(right).astype(float), np.cumsum(~right).astype(float)
    recall = hits / positives
    weight = recall * (positives if normaliser is None else normaliser)
    return interpolated(weight / (weight + misses), recall)


def mean_ap(truth: pd.DataFrame, found: pd.DataFrame, tious: Any) -> Any:
    """(T,) mean average precision, class by class."""
    values = []
    for label in truth["label"].unique():
        real = truth[truth["label"] == label].reset_index(drop=True)
        _, matched = match_class(real, found[found["label"] == label].reset_index(drop=True), tious)
        values.append([average_precision(~np.isnan(row), len(real)) for row in matched])
    return np.mean(values, axis=0)


class Diagnosis:
    """DETAD's analyses, one pass over the rows each, for one data frame of truth and one of predictions."""

    def __init__(self, truth: pd.DataFrame, found: pd.DataFrame, tious: Any) -> None:
        self.truth, self.tious = truth, tious
        self.labels = list(truth["label"].unique())
        self.normaliser = len(truth) / len(self.labels)
        self.found = found

    def ranked(self, found: pd.DataFrame) -> tuple[pd.DataFrame, Any]:
        """All classes matched; instances by their row in the truth."""
        frames, matches = [], []
        for label in self.labels:
            real = self.truth[self.truth["label"] == label]
            frame, matched = match_class(
                real.reset_index(drop=True), found[found["label"] == label].reset_index(drop=True), self.tious
            )
            rows = real.index.to_numpy().astype(float)
            frames.append(frame)
            matches.append(
                np.where(np.isnan(matched), np.nan, rows[np.nan_to_num(matched).astype(int)]) if len(real) else matched
            )
        return pd.concat(frames, ignore_index=True), np.concatenate(matches, axis=1)

    def top(self) -> pd.DataFrame:
        """Of each class ten times as many predictions as it has instances."""
        kept = []
        for label in self.labels:
            count = 10 * (self.truth["label"] == label).sum()
            own = self.found[self.found["label"] == label]
            kept.append(own.sort_values("score", ascending=False, kind="stable").head(count))
        return pd.concat(kept, ignore_index=True)

    def kinds_of(self, found: pd.DataFrame, matched: Any) -> Any:
        """(T, n) 0 for a hit, else 1 plus the number of the error's kind."""
        by_video = self.truth.groupby("video")
        made = np.full(matched.shape, 5)
        for t, threshold in enumerate(self.tious):
            for place, row in found.iterrows():
                if not np.isnan(matched[t, place]):
                    made[t, place] = 0
                    continue
                try:
                    here = by_video.get_group(row["video"]).reset_index(drop=True)
                except KeyError:
                    continue
                overlap = overlaps(row[["start", "end"]].to_numpy(float), here[["start", "end"]].to_numpy())
                best = overlap.argmax()
                same = here.loc[best, "label"] == row["label"]
                if overlap[best] >= threshold:
                    made[t, place] = 1 if same else 2
                elif overlap[best] >= 0.1:
                    made[t, place] = 3 if same else 4
        return made

    def normalised(self, found: pd.DataFrame, matched: Any, keep: Any = None, among: Any = None) -> float:
        """Mean AP_N over thresholds and classes, of the rows to keep, for the instances to count."""
        values = []
        for label in self.labels:
            counted = (self.truth["label"] == label) & (True if among is None else among)
            if not counted.sum():
                continue
            rows = (found["label"] == label).to_numpy()
            for t in range(len(self.tious)):
                kept = rows if keep is None else rows & keep[t]
                values.append(average_precision(~np.isnan(matched[t, kept]), counted.sum(), self.normaliser))
        return float(np.mean(values))

    def impact(self) -> dict[str, float]:
        """What each kind of error costs."""
        found, matched = self.ranked(self.top())
        kinds = self.kinds_of(found, matched)
        base = self.normalised(found, matched)
        return {kind: self.normalised(found, matched, kinds != i + 1) - base for i, kind in enumerate(KINDS)}

    def sensitivity(self, buckets: dict[str, pd.Series]) -> dict[str, dict[str, float]]:
        """AP_N on the instances of each bucket."""
        found, matched = self.ranked(self.found)
        made: dict[str, dict[str, float]] = {}
        for name, bucket in buckets.items():
            made[name] = {}
            for value in bucket.unique():
                inside = bucket == value
                of = inside.to_numpy()
                keep = np.array([all(np.isnan(m) or of[int(m)] for m in column) for column in matched.T])
                made[name][value] = self.normalised(found, matched, np.stack([keep] * len(self.tious)), inside)
        return made

    def false_negatives(self, buckets: dict[str, pd.Series], floor: float = 0.05) -> dict[str, dict[str, float]]:
        """Share of each bucket's instances that no prediction finds at a precision above the floor."""
        found, matched = self.ranked(self.found)
        missed = np.ones((len(self.tious), len(self.truth)), bool)
        for label in self.labels:
            positives = (self.truth["label"] == label).sum()
            rows = (found["label"] == label).to_numpy()
            for t in range(len(self.tious)):
                own = matched[t, rows]
                right = ~np.isnan(own)
                weight = np.cumsum(right) / positives * self.normaliser
                precision = weight / (weight + np.cumsum(~right))
                missed[t, own[right & (precision > floor)].astype(int)] = False
        return {
            name: {value: float(missed[:, (bucket == value).to_numpy()].mean()) for value in bucket.unique()}
            for name, bucket in buckets.items()
        }
