"""pm-k of object detectors: the worst frame near each anchor (Shankar et al. 2021).

The paper chooses, among the frames of an anchor's set, the one with the lowest average precision, and reports mAP over
the chosen frames. Details that it leaves open:

- IoU: 0.5 by default; by descending score, a detection is matched to the free box of its class that it overlaps most.
- The anchor may be chosen by default.
- The AP of a frame with several classes is the mean over the classes in its truth: detections of other classes only
  affect the final mAP. AP is interpolated, as in the rest of this package.
- Of equally bad frames the nearest to the anchor is chosen, of two the earlier; one without truth only if no other is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from jostle.core.kernels import kernel
from jostle.core.results import Result
from jostle.core.tables import Column, Table
from jostle.core.types.boxes import Boxes
from jostle.core.types.columns import Flags, Floats, Ints
from jostle.errors import BadValue, DataError
from jostle.metrics.bootstrap import bias_corrected, video_weights
from jostle.metrics.frame_sets import Pairs, Sets, pairs_within, require_frames
from jostle.metrics.mean_ap import interpolated_ap
from jostle.metrics.measured import Draws, Weights

LEVEL = 0.95  # of the intervals
Unseen = Literal["", "missed", "detected"]  # what is taken of a video that nobody has seen


@dataclass(frozen=True)
class PmKDetection(Result):
    """Result of pm-k for one detector."""

    k: int
    iou: float
    anchors: int
    mean_ap: float  # over the anchors
    mean_ap_interval: tuple[float, float] | None  # 95 %, by drawing the videos of the anchors; None without draws
    pm_k: float  # mAP over the frame chosen near each anchor
    pm_k_interval: tuple[float, float] | None  # its interval, from the same draws
    drop: float  # `mean_ap - pm_k`
    # AP of each class on the anchors and on the chosen frames, None where it has no box there
    per_class: dict[int, tuple[float | None, float | None]]
    chosen: dict[str, str]  # the frame chosen for each anchor
    chosen_by_offset: dict[int, int]  # how often a frame so far from its anchor was chosen
    ignore_class: bool
    include_anchor: bool

    def tables(self) -> tuple[Table, ...]:
        """Return mAP on the anchors and on the worst frame near each."""
        return (stability_table({"localisation" if self.ignore_class else "detection": self}),)


def stability_table(results: Mapping[str, PmKDetection], *, note: str = "") -> Table:
    """Return a table of mAP on anchors and on the worst frame near each, a row a result."""
    first = next(iter(results.values()))
    columns = (
        Column("", key="what"),
        Column("mAP on anchors", "percent"),
        Column("95 %", "interval", key="mAP"),
        Column(f"pm-{first.k} mAP", "percent"),
        Column("95 %", "interval", key=f"pm-{first.k}"),
        Column("drop", "percent"),
    )
    rows = [
        (name, one.mean_ap, one.mean_ap_interval, one.pm_k, one.pm_k_interval, one.drop)
        for name, one in results.items()
    ]
    return Table(f"{first.anchors} anchors, IoU {first.iou:g}", columns, tuple(rows), (note,) if note else ())


def pm_k_detection(
    detections: Mapping[str, Boxes],
    truth_boxes: Mapping[str, Boxes],
    sets: Sets,
    k: int = 10,
    *,
    iou: float = 0.5,
    ignore_class: bool = False,
    include_anchor: bool = True,
    draws: int = 0,
    seed: int = 0,
) -> PmKDetection:
    """mAP on anchors, and on the frame within `k` of each anchor on which the detector does worst.

    Args:
        detections: by frame; a frame in which nothing was found has empty boxes.
        truth_boxes: by frame.
        sets: the neighbours of each anchor.
        iou: minimum IoU of a match.
        ignore_class: treat all boxes as one class, which the paper calls localisation.
        include_anchor: whether the anchor itself may be chosen. It always is where it has no neighbour.
        draws: of the anchors' videos, for the intervals; 0 for none.
        seed: of the draws.

    >>> sets, truth = {"v/5.jpg": ["v/6.jpg"]}, Boxes([[0, 0, 10, 10]], [0])
    >>> found = {"v/5.jpg": Boxes([[0, 0, 10, 10]], [0], [0.9]), "v/6.jpg": Boxes([[5, 5, 15, 15]], [0], [0.8])}
    >>> made = pm_k_detection(found, {"v/5.jpg": truth, "v/6.jpg": truth}, sets)
    >>> made.mean_ap, made.pm_k, made.chosen
    (1.0, 0.0, {'v/5.jpg': 'v/6.jpg'})
    """
    matched = MatchedFrames.of(
        detections, truth_boxes, sets, k, iou=iou, ignore_class=ignore_class, include_anchor=include_anchor
    )
    return matched.result(draws, seed)


def _interval(draws: Floats, measured: float) -> tuple[float, float] | None:
    known = draws[np.isfinite(draws)]
    return bias_corrected(known, measured, LEVEL) if len(known) > 1 else None


@dataclass(frozen=True, eq=False)
class MatchedFrames:
    """Detections matched with the truth, and the worst frame near each anchor."""

    k: int
    iou: float
    ignore_class: bool
    include_anchor: bool
    pairs: Pairs
    detections: _BoxTable
    truth: _BoxTable
    hits: Flags  # (detections,) whether each is matched to a true box
    chosen: Ints  # (anchors,) the worst frame near each, an index into the frames of `pairs`, and its `offset`
    offset: Ints

    @classmethod
    def of(
        cls,
        detections: Mapping[str, Boxes],
        truth_boxes: Mapping[str, Boxes],
        sets: Sets,
        k: int,
        *,
        iou: float = 0.5,
        ignore_class: bool = False,
        include_anchor: bool = True,
    ) -> MatchedFrames:
        """Match the detections in all frames of the sets; see `pm_k_detection`."""
        if not 0 < iou <= 1:
            raise BadValue(f"iou must be above 0 and at most 1, got {iou}")
        pairs = pairs_within(sets, k)
        require_frames(pairs.frames, detections, "detections")
        require_frames(pairs.frames, truth_boxes, "true boxes")
        detected = _BoxTable.of([detections[frame] for frame in pairs.frames], ignore_class, "detections")
        truth = _BoxTable.of([truth_boxes[frame] for frame in pairs.frames], ignore_class, "")
        hits = np.zeros(len(detected.label), bool)
        precision = np.full(len(pairs.frames), np.nan)
        _match(detected.edges, detected.box, detected.label, truth.edges, truth.box, truth.label, iou, hits, precision)
        chosen, offset = _choose_worst(pairs, precision, include_anchor)
        return cls(k, iou, ignore_class, include_anchor, pairs, detected, truth, hits, chosen, offset)

    @property
    def anchors(self) -> Ints:
        """The anchors, as indices into the frames of `pairs`."""
        return np.arange(self.pairs.anchors)

    @cached_property
    def owners(self) -> list[str]:
        """The video of each anchor."""
        return [frame.rpartition("/")[0] for frame in self.pairs.frames[: self.pairs.anchors]]

    @property
    def videos(self) -> tuple[str, ...]:
        """The distinct videos of the anchors."""
        return tuple(dict.fromkeys(self.owners))

    def result(self, draws: int = 0, seed: int = 0) -> PmKDetection:
        """Return mAP on anchors and on the chosen frames, with intervals from draws of the videos.

        Raises:
            DataError: if there is no true box.
        """
        before, after = self.per_class(self.anchors), self.per_class(self.chosen)
        if not before or not after:
            raise DataError(
                "no anchor, or no frame chosen near one, has a true box; nothing can be scored", fault="F29"
            )
        clean, worst = float(np.mean(list(before.values()))), float(np.mean(list(after.values())))
        weights = video_weights(self.videos, draws, seed)
        intervals = [
            _interval(self.bootstrap(frames, self.videos, weights), measured)
            for frames, measured in ((self.anchors, clean), (self.chosen, worst))
        ]
        offsets, counts = np.unique(self.offset, return_counts=True)
        names = self.pairs.frames
        return PmKDetection(
            k=self.k,
            iou=self.iou,
            anchors=self.pairs.anchors,
            mean_ap=clean,
            mean_ap_interval=intervals[0],
            pm_k=worst,
            pm_k_interval=intervals[1],
            drop=clean - worst,
            per_class={label: (before.get(label), after.get(label)) for label in sorted(before | after)},
            chosen={names[i]: names[j] for i, j in enumerate(self.chosen.tolist())},
            chosen_by_offset=dict(zip(offsets.tolist(), counts.tolist(), strict=True)),
            ignore_class=self.ignore_class,
            include_anchor=self.include_anchor,
        )

    def per_class(self, frames: Ints) -> dict[int, float]:
        """Return the AP of each class that these frames have."""
        rows = self.detections.rows(frames)
        ranked = rows[np.argsort(-self.detections.score[rows], kind="stable")]
        labels, positives = np.unique(self.truth.label[self.truth.rows(frames)], return_counts=True)
        return {
            label: interpolated_ap(np.flatnonzero(self.hits[ranked][self.detections.label[ranked] == label]), count)
            for label, count in zip(labels.tolist(), positives.tolist(), strict=True)
        }

    def of_video(self, name: str) -> dict[int, float]:
        """Return the AP of each class on the frames chosen in one video; none without boxes there or on its anchors."""
        own = np.array([owner == name for owner in self.owners], np.bool_)
        return self.per_class(self.chosen[own]) if len(self.truth.rows(self.anchors[own])) else {}

    def drawn(self, weights: Weights) -> Draws:
        """Return mAP over the chosen frames where each of `videos` counts so often."""
        draws = self.bootstrap(self.chosen, self.videos, weights)
        if weights.shape[1] == len(self.videos):
            return draws, None
        worst = self.bootstrap(self.chosen, self.videos, weights, "missed")
        return draws, (worst, self.bootstrap(self.chosen, self.videos, weights, "detected"))

    def bootstrap(self, frames: Ints, videos: Sequence[str], weights: Weights, unseen: Unseen = "") -> Floats:
        """Return (draws,) mAP over one frame for each anchor, with these video weights; NaN where no box is left.

        Args:
            unseen: what is taken of a video that nobody has seen, whose weight is the last column: that its boxes are
                `missed` or `detected`. It has as many of each class as any video has.
        """
        detections, truth = self.detections, self.truth
        index = {name: i for i, name in enumerate(videos)}
        owners = np.array([index[name] for name in self.owners])
        of_anchor = weights[:, owners]
        rows, true_rows = detections.rows(frames), truth.rows(frames)
        owner = np.repeat(np.arange(len(frames)), np.diff(detections.edges)[frames])
        labels, true_class = np.unique(truth.label[true_rows], return_inverse=True)
        positives = np.zeros((len(labels), len(frames)))
        np.add.at(positives, (true_class, np.repeat(np.arange(len(frames)), np.diff(truth.edges)[frames])), 1.0)
        order = np.lexsort((-detections.score[rows], detections.label[rows]))
        ranked = rows[order]
        firsts, ends = (np.searchsorted(detections.label[ranked], labels, side) for side in ("left", "right"))
        ranked_owner, hits = owner[order], self.hits[ranked]
        if unseen:
            each = np.array([np.bincount(owners, row).max() for row in positives])
            positives = np.column_stack([positives, each])
            of_anchor = np.column_stack([of_anchor, weights[:, -1]])
            if unseen == "detected":  # ahead of all others of their class
                counts = each.astype(np.int64)
                ranked_owner = np.insert(ranked_owner, np.repeat(firsts, counts), len(frames))
                hits = np.insert(hits, np.repeat(firsts, counts), True)
                before = np.concatenate([[0], np.cumsum(counts)])
                firsts, ends = firsts + before[:-1], ends + before[1:]
        means = np.empty(len(weights))
        _weigh(of_anchor, ranked_owner, hits, firsts, ends, positives, means)
        return means


@dataclass(frozen=True, eq=False)
class _BoxTable:
    """Boxes of all frames, sorted by frame and descending score."""

    edges: Ints
    box: Floats
    label: Ints
    score: Floats

    @classmethod
    def of(cls, frames: list[Boxes], ignore_class: bool, what: str) -> _BoxTable:
        if what and any(boxes.score is None for boxes in frames):
            raise DataError(f"{what} need scores; these look like true boxes")
        edges = np.zeros(len(frames) + 1, np.int64)
        np.cumsum([len(boxes) for boxes in frames], out=edges[1:])
        score = np.concatenate([np.zeros(len(b)) if b.score is None else b.score for b in frames])
        frame = np.repeat(np.arange(len(frames)), np.diff(edges))
        order = np.lexsort((-score, frame))
        label = np.concatenate([boxes.label for boxes in frames])[order]
        box = np.concatenate([boxes.box for boxes in frames])[order]
        return cls(edges, box, np.zeros_like(label) if ignore_class else label, score[order])

    def rows(self, frames: npt.NDArray[np.int64]) -> Ints:
        """Return the rows of these frames, repeated for repeated frames."""
        parts = [np.arange(self.edges[f], self.edges[f + 1]) for f in frames.tolist()]
        return np.concatenate([np.zeros(0, np.int64), *parts])


def _choose_worst(pairs: Pairs, precision: Floats, include_anchor: bool) -> tuple[Ints, Ints]:
    """Return the frame of lowest precision near each anchor, and its offset."""
    alone = np.arange(pairs.anchors)
    if not include_anchor:
        alone = alone[pairs.set_sizes == 0]
    anchor = np.concatenate([alone, pairs.anchor])
    frame = np.concatenate([alone, pairs.neighbour])
    offset = np.concatenate([np.zeros(len(alone), np.int64), pairs.offset])
    lowest = np.where(np.isnan(precision[frame]), np.inf, precision[frame])
    order = np.lexsort((offset, np.abs(offset), lowest, anchor))
    first = order[np.searchsorted(anchor[order], np.arange(pairs.anchors))]
    return frame[first], offset[first]


@kernel
def _weigh(weights: Any, owner: Any, hits: Any, firsts: Any, ends: Any, positives: Any, made: Any) -> None:
    for d in range(len(weights)):
        total, classes = 0.0, 0
        for c in range(len(firsts)):
            count = 0.0
            for anchor in range(positives.shape[1]):
                count += positives[c, anchor] * weights[d, anchor]
            if count == 0.0:
                continue
            right = wrong = 0.0
            for row in range(firsts[c], ends[c]):
                weight = float(weights[d, owner[row]])
                if hits[row]:
                    right += weight
                else:
                    wrong += weight
            best = area = 0.0
            for row in range(ends[c] - 1, firsts[c] - 1, -1):  # from the least sure on, precision never falls
                weight = float(weights[d, owner[row]])
                if weight == 0.0:
                    continue
                if hits[row]:
                    best = max(best, right / (right + wrong))
                    area += weight * best
                    right -= weight
                else:
                    wrong -= weight
            total += area / count
            classes += 1
        made[d] = total / classes if classes else np.nan


@kernel
def _match(
    edges: Any, box: Any, label: Any, true_edges: Any, true_box: Any, true_label: Any, iou: float, hits: Any,
    precision: Any,
) -> None:  # fmt: skip
    """Mark the detections that match a true box, and compute the mean AP of each frame over its classes."""
    taken = np.zeros(len(true_label), np.bool_)
    for frame in range(len(edges) - 1):
        low, high = true_edges[frame], true_edges[frame + 1]
        for row in range(edges[frame], edges[frame + 1]):
            best, choice = 0.0, -1
            for g in range(low, high):
                if taken[g] or true_label[g] != label[row]:
                    continue
                width = min(box[row, 2], true_box[g, 2]) - max(box[row, 0], true_box[g, 0])
                height = min(box[row, 3], true_box[g, 3]) - max(box[row, 1], true_box[g, 1])
                if width <= 0 or height <= 0:
                    continue
                area = (box[row, 2] - box[row, 0]) * (box[row, 3] - box[row, 1])
                true_area = (true_box[g, 2] - true_box[g, 0]) * (true_box[g, 3] - true_box[g, 1])
                overlap = width * height / (area + true_area - width * height)
                if overlap >= iou and overlap > best:
                    best, choice = overlap, g
            if choice >= 0:
                taken[choice] = True
                hits[row] = True
        if high > low:
            precision[frame] = _frame_precision(label, hits, edges[frame], edges[frame + 1], true_label[low:high])


@kernel
def _frame_precision(label: Any, hits: Any, first: int, last: int, true_label: Any) -> float:
    total = 0.0
    classes = np.unique(true_label)
    for name in classes:
        positives = np.count_nonzero(true_label == name)
        rank = found = 0
        for row in range(first, last):
            if label[row] == name:
                rank += 1
                found += hits[row]
        best = area = 0.0
        for row in range(last - 1, first - 1, -1):  # from the least sure on, precision never falls
            if label[row] == name:
                if hits[row]:
                    best = max(best, found / rank)
                    area += best
                    found -= 1
                rank -= 1
        total += area / positives
    return total / len(classes)
