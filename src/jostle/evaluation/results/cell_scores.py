"""Scores of one cell: overall, by class, by video, and for each bootstrap draw."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jostle.core.types.columns import Flags, Floats, Indices, Ints
from jostle.core.types.predictions import Predictions
from jostle.errors import DataError
from jostle.evaluation.recipes.recipe import MEASURES
from jostle.evaluation.results.item_scores import ITEMS, group_names, is_mean_over_items, is_share, item_scores
from jostle.evaluation.results.pm_k import frame_measure
from jostle.evaluation.results.record import RunRecord
from jostle.metrics.accuracy import within_top_k
from jostle.metrics.bootstrap import Resamples, Weights
from jostle.metrics.pm_k_detection import bootstrap_pm_k, pm_k_detection
from jostle.metrics.score import score


@dataclass(frozen=True, eq=False)
class Measure:
    """Scores of one cell, overall and broken down."""

    value: float  # by the benchmark's metric; NaN where this metric is none that can be taken video by video
    by_class: Floats  # average precision, or share of right answers, of each class; NaN for a class without an instance
    by_video: Floats  # the value of each video alone, NaN where nothing is annotated in it
    drawn: Floats  # the value in each draw; empty where there are none
    # Number of answers of each video, where the value is a share of right ones; else None
    answers: Floats | None = None
    # The value in each draw with one more video, which nobody has seen, at its worst and at its best; None where the
    # draws have no such video
    ends: tuple[Floats, Floats] | None = None


@dataclass(frozen=True, eq=False)
class ClassScores:
    """Scores of one class in one cell; see `Measure`."""

    value: float
    drawn: Floats
    ends: tuple[Floats, Floats] | None
    videos: int  # that have the class


def measured_cell(record: RunRecord, cell: str, videos: Sequence[str], weights: Weights) -> Measure:
    """Measure one cell on these videos.

    Args:
        weights: (draws, videos) how often each counts; no rows for no draws. One column more is the weight of a video
            that nobody has seen.

    Raises:
        DataError: if the cell lacks one of the videos.
    """
    known = {
        "detection": _detection,
        "recognition": _recognition,
        "frames": _frames,
        "objects": _objects,
        "questions": _items,
        "moments": _items,
    }
    return known[record.task](record, cell, videos, weights)


def classes_of(record: RunRecord) -> tuple[str, ...]:
    """The names that `Measure.by_class` is in the order of; frames are not sorted by class.

    Questions are sorted by their type, sentences by the length of the windows that they describe.
    """
    if record.task == "frames":
        return ()
    if record.task in ITEMS:
        return group_names(record)
    if record.task == "objects":
        return record.objects.classes
    return record.truth.classes if record.task == "detection" else record.labels.classes


def right_answers(record: RunRecord, cell: str, videos: Sequence[str]) -> Flags:
    """(videos,) whether a recogniser has any class of each video among its guesses."""
    rows = table_rows(record, cell, videos)
    labels = record.labels.of_videos(videos)
    order = {name: i for i, name in enumerate(videos)}
    place = np.array([order[name] for name in labels.videos], np.int64)[labels.video]
    right = np.zeros(len(videos), np.bool_)
    np.logical_or.at(right, place, within_top_k(rows[place], labels.label, record.about.content.k or 1))
    return right


def table_rows(record: RunRecord, cell: str, videos: Sequence[str]) -> Floats:
    """(videos, classes) scores of a recogniser in a cell, in the order of the videos."""
    names, scores = record.table(cell)
    place = {name: i for i, name in enumerate(names)}
    lacking = [name for name in videos if name not in place]
    if lacking:
        raise _lacks(record, cell, lacking)
    return scores[[place[name] for name in videos]].astype(np.float64)


def predictions_on(record: RunRecord, cell: str, videos: Sequence[str]) -> Predictions:
    """Return a detector's predictions for these videos."""
    predictions = record.predictions(cell)
    names = set(videos)
    lacking = sorted(names - set(predictions.videos))
    if lacking:
        raise _lacks(record, cell, lacking)
    if names == set(predictions.videos):
        return predictions
    mask = np.array([name in names for name in predictions.videos], np.bool_)
    rows = mask[predictions.video]
    place = np.cumsum(mask, dtype=np.int32) - 1
    return replace(
        predictions,
        videos=tuple(name for name in predictions.videos if name in names),
        video=place[predictions.video[rows]],
        start=predictions.start[rows],
        end=predictions.end[rows],
        label=predictions.label[rows],
        score=predictions.score[rows],
    )


def _detection(record: RunRecord, cell: str, videos: Sequence[str], weights: Weights) -> Measure:
    truth = record.truth.of_videos(videos)
    if record.about.content.metric != "mean_ap":  # one of a user's own, which only the run itself has computed
        unknown = np.full(len(videos), np.nan)
        return Measure(np.nan, np.full(len(truth.classes), np.nan), unknown, np.zeros(0))
    result = score(predictions_on(record, cell, videos), truth, protocol=record.rules, tious=record.about.content.tious)
    place = {name: i for i, name in enumerate(videos)}
    own = [place[name] for name in result.resamples.videos]
    drawn, ends = weighted_ends(result.resamples, weights, own, len(videos))
    by_class = np.full(len(truth.classes), np.nan)
    for i, name in enumerate(truth.classes):
        if name in result.per_class:
            by_class[i] = result.per_class[name].mean()
    by_video = np.full(len(videos), np.nan)
    by_video[own] = _alone(result.resamples)
    return Measure(result.average_map, by_class, by_video, drawn, ends=ends)


Ends = tuple[Floats, Floats]


def weighted_ends(
    resamples: Resamples, weights: Weights, own: Sequence[int], videos: int
) -> tuple[Floats, Ends | None]:
    """Return the mean average precision in each draw, and with an unseen video at its worst and at its best."""
    drawn = resamples.weighted(weights[:, own]).mean(axis=1)
    if weights.shape[1] == videos:
        return drawn, None
    worst, best = (
        resamples.with_unseen(detected=detected).weighted(weights[:, [*own, videos]]).mean(axis=1)
        for detected in (False, True)
    )
    return drawn, (worst, best)


def mean_ends(weights: Weights, total: Floats, count: Floats) -> tuple[Floats, Ends | None]:
    """Return the mean over items in each draw, and with an unseen video whose items are all wrong or all right.

    It has as many items as any video.

    Args:
        total: (videos,) sum of the values of each video's items, each from 0 to 1; `count`: (videos,) their number.
    """
    seen = weights[:, : len(count)]
    sums, counts = seen @ total, seen @ count
    with np.errstate(invalid="ignore", divide="ignore"):
        if weights.shape[1] == len(count):
            return sums / counts, None
        unseen = weights[:, -1] * count.max(initial=0.0)
        return sums / counts, (sums / (counts + unseen), (sums + unseen) / (counts + unseen))


def class_scores(record: RunRecord, cell: str, videos: Sequence[str], weights: Weights, name: str) -> ClassScores:
    """Return the score of one class in a cell.

    Args:
        weights: as in `measured_cell`.

    Raises:
        DataError: if scores of the task are not by class.
    """
    metric = record.about.content.metric
    if metric not in MEASURES[record.task] or metric == "video_mean_ap":
        raise DataError(f"{record.folder}: {metric} has no scores by class", fault="F150")
    if record.task == "detection":
        truth = record.truth.of_videos(videos)
        predictions = predictions_on(record, cell, videos)
        result = score(predictions, truth, protocol=record.rules, tious=record.about.content.tious)
        if name not in result.per_class:
            return ClassScores(float("nan"), np.full(len(weights), np.nan), None, 0)
        part = _of_class(result.resamples, result.truth.classes.index(name))
        place = {video: i for i, video in enumerate(videos)}
        own = [place[video] for video in part.videos]
        drawn, ends = weighted_ends(part, weights, own, len(videos))
        return ClassScores(float(result.per_class[name].mean()), drawn, ends, len(np.unique(part.instance_video)))
    if record.task == "recognition":
        labels = record.labels.of_videos(videos)
        order = {video: i for i, video in enumerate(videos)}
        owners = np.array([order[video] for video in labels.videos], np.int64)[labels.video]
        has = np.zeros(len(videos))
        has[owners[labels.label == labels.classes.index(name)]] = 1
        right = right_answers(record, cell, videos) * has
        with np.errstate(invalid="ignore", divide="ignore"):
            return ClassScores(float(right.sum() / has.sum()), *mean_ends(weights, right, has), int(has.sum()))
    if record.task in ITEMS:
        group = item_scores(record, cell, videos)[1][name]
        return ClassScores(
            group.mean, *mean_ends(weights, group.total, group.count), int(np.count_nonzero(group.count))
        )
    raise DataError(f"{record.folder}: scores of a run of {record.task} are not by class")


def _of_class(resamples: Resamples, label: int) -> Resamples:
    """Return the predictions, hits and instances of one class."""
    classes = len(resamples.first) - 1
    begin, end = int(resamples.first[label]), int(resamples.first[label + 1])
    hits = [
        resamples.hit_place[resamples.hit_first[group] : resamples.hit_first[group + 1]] - begin
        for group in range(label, len(resamples.hit_first) - 1, classes)
    ]
    instances = resamples.instance_label == label
    return replace(
        resamples,
        place_video=resamples.place_video[begin:end],
        first=np.array([0, end - begin]),
        hit_place=np.concatenate(hits),
        hit_first=np.cumsum([0, *map(len, hits)]),
        instance_label=np.zeros(int(instances.sum()), np.int32),
        instance_video=resamples.instance_video[instances],
        excused=resamples.excused[begin:end] if len(resamples.excused) else resamples.excused,
    )


def _alone(resamples: Resamples) -> Floats:
    """(videos,) mean average precision of each video by itself, over the classes it has; NaN if it has none."""
    classes = len(resamples.first) - 1
    label = np.repeat(np.arange(classes), np.diff(resamples.first))
    group = np.repeat(np.arange(len(resamples.hit_first) - 1), np.diff(resamples.hit_first))
    hit_video = resamples.place_video[resamples.hit_place]
    places, hits, instances = (
        _grouped(which, len(resamples.videos)) for which in (resamples.place_video, hit_video, resamples.instance_video)
    )
    scores = np.full(len(resamples.videos), np.nan)
    for v in range(len(resamples.videos)):
        if not len(instances[v]):
            continue
        own, zeros = places[v], np.zeros(len(places[v]), np.int32)
        part = replace(
            resamples,
            videos=resamples.videos[v : v + 1],
            place_video=zeros,
            first=_edges(label[own], classes),
            hit_place=np.searchsorted(own, resamples.hit_place[hits[v]]),
            hit_first=_edges(group[hits[v]], len(resamples.hit_first) - 1),
            instance_label=resamples.instance_label[instances[v]],
            instance_video=np.zeros(len(instances[v]), np.int32),
            excused=resamples.excused[own] if len(resamples.excused) else resamples.excused,
        )
        scores[v] = part.weighted(np.ones((1, 1), np.int16)).mean()
    return scores


def _grouped(values: Indices, count: int) -> list[Ints]:
    """Return for each of 0 .. count - 1 its positions among the values, in rising order."""
    order = np.argsort(values, kind="stable")
    return np.split(order, np.cumsum(np.bincount(values, minlength=count))[:-1])


def _edges(rising: Ints, count: int) -> Ints:
    return np.concatenate([[0], np.cumsum(np.bincount(rising, minlength=count))])


def _recognition(record: RunRecord, cell: str, videos: Sequence[str], weights: Weights) -> Measure:
    right = right_answers(record, cell, videos).astype(np.float64)
    labels = record.labels.of_videos(videos)
    order = {name: i for i, name in enumerate(videos)}
    place = np.array([order[name] for name in labels.videos], np.int64)[labels.video]
    count = np.bincount(labels.label, minlength=len(labels.classes))
    hits = np.bincount(labels.label, right[place], minlength=len(labels.classes))
    by_class = np.where(count > 0, hits / np.maximum(count, 1), np.nan)
    if record.about.content.metric != "top_k_accuracy":
        return Measure(np.nan, by_class, right, np.zeros(0))
    ones = np.ones(len(videos))
    drawn, ends = mean_ends(weights, right, ones)
    return Measure(float(right.mean()), by_class, right, drawn, ones, ends)


def _frames(record: RunRecord, cell: str, videos: Sequence[str], weights: Weights) -> Measure:
    sets, measure = frame_measure(record, cell)
    by_video: dict[str, dict[str, Sequence[str]]] = defaultdict(dict)
    for anchor, others in sets.sets.items():
        by_video[anchor.rpartition("/")[0]][anchor] = others
    right, anchors = np.zeros(len(videos)), np.zeros(len(videos))
    for v, name in enumerate(videos):
        if name in by_video:
            result = measure(by_video[name])
            right[v], anchors[v] = result.correct_by_radius[-1], result.anchors
    drawn, ends = mean_ends(weights, right, anchors)
    with np.errstate(invalid="ignore", divide="ignore"):
        return Measure(float(right.sum() / anchors.sum()), np.zeros(0), right / anchors, drawn, anchors, ends)


def _objects(record: RunRecord, cell: str, videos: Sequence[str], weights: Weights) -> Measure:
    k = record.about.content.k
    assert k is not None
    boxes, known = record.boxes(cell)
    sets = record.objects.without([frame for frame in record.objects.frames if frame not in boxes]).only(known)
    by_video: dict[str, dict[str, Sequence[str]]] = defaultdict(dict)
    for anchor, others in sets.sets.items():
        by_video[anchor.rpartition("/")[0]][anchor] = others
    neighbours = {anchor: others for name in videos for anchor, others in by_video[name].items()}
    whole = pm_k_detection(boxes, sets.boxes, neighbours, k)
    by_class = np.full(len(sets.classes), np.nan)
    for label, (_, worst) in whole.per_class.items():
        by_class[label] = np.nan if worst is None else worst
    alone = np.full(len(videos), np.nan)
    for v, name in enumerate(videos):
        with contextlib.suppress(DataError):  # a video in which nothing is annotated
            alone[v] = pm_k_detection(boxes, sets.boxes, by_video[name], k).pm_k
    drawn, *ends = (
        bootstrap_pm_k(boxes, sets.boxes, neighbours, k, videos, weights, unseen=unseen)
        for unseen in (("", "missed", "detected") if weights.shape[1] > len(videos) else ("",))
    )
    return Measure(whole.pm_k, by_class, alone, drawn, ends=(ends[0], ends[1]) if ends else None)


def _items(record: RunRecord, cell: str, videos: Sequence[str], weights: Weights) -> Measure:
    whole, groups = item_scores(record, cell, videos)
    by_class = np.array([group.mean for group in groups.values()])
    if not is_mean_over_items(record):
        return Measure(np.nan, by_class, whole.by_video, np.zeros(0))
    answers = whole.count if is_share(record) else None
    drawn, ends = mean_ends(weights, whole.total, whole.count)
    return Measure(whole.mean, by_class, whole.by_video, drawn, answers, ends)


def _lacks(record: RunRecord, cell: str, lacking: Sequence[str]) -> DataError:
    return DataError(
        f"{record.folder}: {cell} lacks {len(lacking)} videos, as {lacking[0]!r}; run again, which adds them"
    )
