"""Alignment of predictions with ground truth: the same classes, videos and units."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jostle.core.types.columns import Floats, Indices
from jostle.core.types.predictions import Predictions
from jostle.core.types.truth import Truth
from jostle.errors import DataError

MAX_FRACTION = 1.1  # up to which the end of every prediction may be a fraction of its video
MIN_END = 3.0  # seconds of the last instance, below which such times may well be seconds
ENOUGH = 10  # predictions, from which on that is an error and no remark
MAX_DURATION_RATIO = 10  # of the end of a prediction to its video's duration; above it, times are not seconds
MAX_UNKNOWN_SHARE = 0.5  # of predictions; above it, the classes are of another dataset


@dataclass(frozen=True, eq=False)
class Aligned:
    """Predictions with the truth's classes and videos."""

    rows: npt.NDArray[np.int64] | None  # (n,) int64, rows of the predictions, in their order; None for all
    video: Indices  # (n,) int32 into the truth's videos followed by `outside`
    start: Floats
    end: Floats
    label: Indices  # (n,) int32 into the truth's classes
    score: Floats
    outside: tuple[str, ...]  # videos with predictions that the truth does not have
    counts: dict[str, int]  # of used and omitted predictions, by JSON key
    remarks: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.score)


def align(predictions: Predictions, truth: Truth, *, blocked: Collection[str] = (), strict: bool = False) -> Aligned:
    """Map predictions to the truth's classes and videos.

    Predictions with a class that the truth lacks are dropped and counted; those of videos that it lacks stay, because
    they are false alarms in every public evaluator.

    Args:
        blocked: ids of videos whose predictions are ignored.
        strict: refuse an unknown class.

    Raises:
        DataError: if most classes are unknown, or times are clearly not in seconds.
    """
    label_of, unknown = _map_labels(predictions, truth)
    video_of, outside = _map_videos(predictions, truth, blocked)
    label = label_of[predictions.label]
    keep = label >= 0
    unknown_count = len(predictions) - int(np.count_nonzero(keep))
    if unknown_count:
        _check_unknown(predictions, truth, unknown, unknown_count, strict)
    barred = np.array([name in blocked for name in predictions.videos], bool)
    on_blocked = int(np.count_nonzero(keep & barred[predictions.video])) if barred.any() else 0
    if on_blocked:
        keep &= ~barred[predictions.video]
    rows = None if keep.all() else np.flatnonzero(keep)

    def chosen(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        return values if rows is None else values[rows]

    video = video_of[predictions.video if rows is None else predictions.video[rows]]
    aligned = Aligned(
        rows=rows,
        video=video,
        start=chosen(predictions.start),
        end=chosen(predictions.end),
        label=label if rows is None else label[rows],
        score=chosen(predictions.score),
        outside=outside,
        counts={
            "videos": len(predictions.videos),
            "count": len(predictions),
            "unknown_label": unknown_count,
            "outside_subset": int(np.count_nonzero(video >= len(truth.videos))),
            "blocked": on_blocked,
            "left_out": sum(predictions.left_out.values()),
        },
        remarks=(),
    )
    units = _check_units(aligned, truth) if len(aligned) else []
    remarks = _remarks(aligned, predictions, truth, unknown)
    object.__setattr__(aligned, "remarks", (*units, *remarks))
    return aligned


def _map_labels(predictions: Predictions, truth: Truth) -> tuple[Indices, list[str]]:
    """Return the truth's index of each predicted class (-1 for none), and the names that it lacks."""
    if predictions.numbered:
        if truth.label_ids is None:
            raise DataError(
                "the predictions give classes as numbers and the ground truth does not number its classes; "
                "use ground truth with 'label_id', as thumos14.json has it, or name the classes in the predictions",
                fault="F45",
            )
        index = {str(number): i for i, number in enumerate(truth.label_ids)}
    else:
        index = {name: i for i, name in enumerate(truth.classes)}
    indices = np.array([index.get(name, -1) for name in predictions.classes], np.int32)
    used = np.zeros(len(predictions.classes), bool)
    used[predictions.label] = True
    return indices, [name for i, name in enumerate(predictions.classes) if used[i] and indices[i] < 0]


def _map_videos(predictions: Predictions, truth: Truth, blocked: Collection[str]) -> tuple[Indices, tuple[str, ...]]:
    index = {name: i for i, name in enumerate(truth.videos)}
    used = np.zeros(len(predictions.videos), bool)
    used[predictions.video] = True
    unknown = [name for i, name in enumerate(predictions.videos) if used[i] and name not in index]
    outside = [name for name in unknown if name not in blocked]
    index |= {name: len(truth.videos) + i for i, name in enumerate(outside)}
    return np.array([index.get(name, -1) for name in predictions.videos], np.int32), tuple(outside)


def _check_unknown(predictions: Predictions, truth: Truth, unknown: list[str], count: int, strict: bool) -> None:
    share = count / len(predictions)
    if share <= MAX_UNKNOWN_SHARE and not strict:
        return
    problem = (
        f"{count} of {len(predictions)} predictions have a class that the ground truth lacks: {_join_names(unknown)}"
    )
    raise DataError(f"{problem}; {_advice(predictions, truth, unknown)}", fault="F45" if share < 1 else "F35")


def _advice(predictions: Predictions, truth: Truth, unknown: list[str]) -> str:
    known = [str(number) for number in truth.label_ids or ()] if predictions.numbered else list(truth.classes)
    if predictions.numbered:
        numbers = [int(name) for name in predictions.classes]
        for shift in (-1, 1):
            if numbers and {str(number + shift) for number in numbers} <= set(known):
                change = "one less" if shift < 0 else "one more"
                return f"all would be known if each number were {change}: check whether they count from 0 or from 1"
        return f"the ground truth numbers its classes {_join_names(known)}"
    plain = {_normalize(name): name for name in known}
    pairs = []
    for name in unknown[:3]:
        near = plain.get(_normalize(name)) or next(iter(difflib.get_close_matches(name, known, n=1)), None)
        if near:
            pairs.append(f"{name!r} may mean {near!r}")
    if pairs:
        return f"names must be equal to the letter: {', '.join(pairs)}"
    return f"the ground truth has {_join_names(known)}; check that both are of the same dataset"


def _normalize(name: str) -> str:
    return "".join(c for c in name.casefold() if c.isalnum())


def _check_units(aligned: Aligned, truth: Truth) -> list[str]:
    """Raise a DataError if times are clearly not seconds, and return a remark if they may not be.

    They are compared with the durations of the videos, and where the truth has none with the end of the last instance.
    """
    count = len(truth.videos)
    ends = np.full(count, -np.inf)
    np.maximum.at(ends, truth.video, truth.end)
    measured = np.isfinite(truth.duration)
    lengths = np.where(measured, truth.duration, ends)
    latest = np.full(count + len(aligned.outside), -np.inf)
    np.maximum.at(latest, aligned.video, np.maximum(aligned.start, aligned.end))
    latest = latest[:count]
    used = np.isfinite(latest) & np.isfinite(lengths) & (lengths > 0)
    if not used.any():
        return []
    ratio, length = float(np.median(latest[used] / lengths[used])), float(np.median(lengths[used]))
    if ratio > MAX_DURATION_RATIO:
        fps = truth.fps[used]
        guess = "milliseconds" if ratio > 300 else "frames"
        rate = f" at {np.median(fps[np.isfinite(fps)]):g} frames a second" if np.isfinite(fps).any() else ""
        of = "the duration of their videos" if measured[used].all() else "the end of the last instance"
        problem = (
            f"predictions end at {ratio:.0f} times {of} (the median); times must be seconds, these look like "
            f"{guess}{rate if guess == 'frames' else ''}; convert them to seconds"
        )
        if measured[used].all():
            raise DataError(problem, fault="F47")
        return [problem]  # the videos may go on long after their last instance
    if latest[used].max() > MAX_FRACTION or np.median(ends[used]) <= MIN_END:
        return []
    problem = (
        f"no prediction ends later than {latest[used].max():.2g}, in videos of {length:.0f} s (the median); times must "
        "be seconds, these look like fractions of the video; multiply them by its duration"
    )
    if np.count_nonzero(used[aligned.video[aligned.video < count]]) >= ENOUGH and length > MAX_DURATION_RATIO:
        raise DataError(problem, fault="F47")
    return [problem]


def _remarks(aligned: Aligned, predictions: Predictions, truth: Truth, unknown: list[str]) -> tuple[str, ...]:
    counts = aligned.counts
    remarks = [f"{pluralize(count, 'prediction')} left out: {why}" for why, count in predictions.left_out.items()]
    if counts["unknown_label"]:
        text = pluralize(counts["unknown_label"], "prediction")
        remarks.append(f"{text} ignored: the ground truth lacks their class ({_join_names(unknown)})")
    if counts["outside_subset"]:
        often = np.bincount(aligned.video[aligned.video >= len(truth.videos)] - len(truth.videos))
        examples = ", ".join(f"{aligned.outside[i]} ({often[i]})" for i in np.argsort(-often, kind="stable")[:3])
        text = pluralize(counts["outside_subset"], "prediction")
        remarks.append(
            f"{text} in {pluralize(len(aligned.outside), 'video')} that the ground truth does not have, counted as "
            f"false alarms; most in {examples}"
        )
    if counts["blocked"]:
        remarks.append(f"{pluralize(counts['blocked'], 'prediction')} ignored: their videos are blocked")
    odd = int(np.count_nonzero(aligned.end <= aligned.start))
    if odd:
        remarks.append(f"{pluralize(odd, 'prediction')} without length, or that end before they start")
    if len(predictions) > 1 and predictions.score.min() == predictions.score.max():
        remarks.append("all predictions have one score, so their ranking is arbitrary")
    missing = set(range(len(truth.classes))) - set(np.unique(aligned.label).tolist())
    if missing:
        remarks.append(
            f"AP is 0 for classes without a prediction: {_join_names([truth.classes[i] for i in sorted(missing)])}"
        )
    return tuple(remarks)


def pluralize(count: int, noun: str) -> str:
    """Format a count with its noun.

    >>> pluralize(1, "video"), pluralize(3, "video")
    ('1 video', '3 videos')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _join_names(names: Collection[str], limit: int = 5) -> str:
    all_names = list(names)
    return ", ".join(all_names[:limit]) + (f" and {len(all_names) - limit} more" if len(all_names) > limit else "")
