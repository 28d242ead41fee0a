"""Streaming metric for training loops, compared with scoring complete tables."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.core.types import Predictions, Truth
from jostle.errors import BadValue
from jostle.metrics.score import score
from jostle.metrics.streaming import TemporalMeanAP


class FakeTensor:
    """Minimal stand-in for a torch tensor, with the methods that the metric calls."""

    def __init__(self, values) -> None:
        self.values = np.asarray(values)

    def detach(self):
        return self

    def cpu(self):
        return self

    def double(self):
        return FakeTensor(self.values.astype(np.float64))

    def is_floating_point(self) -> bool:
        return self.values.dtype.kind == "f"

    def numpy(self):
        return self.values


def batches(kind=np.asarray):
    rng = np.random.default_rng(0)
    for _ in range(4):
        preds, target = [], []
        for _ in range(3):
            real = rng.uniform(0, 50, (4, 1)) + [[0, 5]]
            labels = rng.integers(0, 3, 4)
            near = real[rng.integers(0, 4, 10)] + rng.normal(0, 1, (10, 2))
            preds.append(
                {"segments": kind(near), "scores": kind(rng.random(10)), "labels": kind(rng.integers(0, 3, 10))}
            )
            target.append({"segments": kind(real), "labels": kind(labels)})
        yield preds, target


def test_compute_equals_scoring_the_tables() -> None:
    metric = TemporalMeanAP(protocol="activitynet", classes=("Jump", "Run", "Throw"))
    rows, real = [], []
    for preds, target in batches():
        rows += preds
        real += target
        metric.update(preds, target)
    names = tuple(str(i) for i in range(len(rows)))
    classes = ("Jump", "Run", "Throw")

    def table(parts, key):
        return np.concatenate([part[key] for part in parts])

    owner = [np.repeat(np.arange(len(parts)), [len(p["labels"]) for p in parts]) for parts in (rows, real)]
    predictions = Predictions(
        names, classes, owner[0], *table(rows, "segments").T, table(rows, "labels"), table(rows, "scores")
    )
    truth = Truth(names, classes, owner[1], *table(real, "segments").T, table(real, "labels"))
    expected = score(predictions, truth)
    assert metric.compute() == {
        "average_map": expected.average_map,
        **{f"map@{t:g}": v for t, v in zip(expected.tious, expected.map, strict=True)},
    }
    assert metric.score().per_class.keys() == expected.per_class.keys()


def test_tensors_and_lists_are_accepted() -> None:
    results = []
    for kind in (np.asarray, FakeTensor, lambda values: np.asarray(values).tolist()):
        metric = TemporalMeanAP()
        for preds, target in batches(kind):
            metric.update(preds, target)
        results.append(metric.compute())
    assert results[0] == results[1] == results[2]


def test_reset_clears_and_merge_counts_videos_once() -> None:
    single, first, second = (TemporalMeanAP() for _ in range(3))
    for i, (preds, target) in enumerate(batches()):
        ids = [f"v{3 * i + j}" for j in range(3)]
        single.update(preds, target, videos=ids)
        (first if i % 2 else second).update(preds, target, videos=ids)
        if i == 0:
            first.update(preds[:1], target[:1], videos=ids[:1])  # padding of a distributed sampler
    first.merge(second)
    assert first.compute() == pytest.approx(single.compute())
    first.reset()
    with pytest.raises(BadValue, match="no video has been added"):
        first.compute()


def test_videos_without_segments() -> None:
    metric = TemporalMeanAP(tious=[0.5])
    metric.update([{"segments": [], "scores": [], "labels": []}], [{"segments": [[0.0, 1.0]], "labels": [0]}])
    metric.update([{"segments": [[0, 1]], "scores": [1], "labels": [0]}], [{"segments": [], "labels": []}])
    assert metric.compute() == {"average_map": 0.0, "map@0.5": 0.0}


@pytest.mark.parametrize(
    ("preds", "target", "message"),
    [
        ({"segments": [[0, 1]], "labels": [0]}, {"segments": [], "labels": []}, "preds needs .*; scores is missing"),
        ({"segments": [0, 1], "scores": [1], "labels": [0]}, {"segments": [], "labels": []}, r"must be \(N, 2\)"),
        (
            {"segments": [], "scores": [1], "labels": []},
            {"segments": [], "labels": []},
            r"scores of preds must be \(0,\)",
        ),
    ],
)
def test_invalid_batch_is_refused_completely(preds, target, message) -> None:
    metric = TemporalMeanAP()
    good = {"segments": [], "scores": [], "labels": []}
    with pytest.raises(BadValue, match=message):
        metric.update([good, preds], [{"segments": [[0, 1]], "labels": [0]}, target])
    assert not metric._targets


def test_adding_a_video_twice_is_refused() -> None:
    metric = TemporalMeanAP(classes=("Jump",))
    empty = {"segments": [], "scores": [], "labels": []}
    metric.update([empty], [{"segments": [[0, 1]], "labels": [3]}], videos=["a"])
    with pytest.raises(BadValue, match="'a' was added before"):
        metric.update([empty], [{"segments": [], "labels": []}], videos=["a"])
    with pytest.raises(BadValue, match="one target for each"):
        metric.update([empty], [])
    with pytest.raises(BadValue, match="label 3 has no name: there are 1 classes"):
        metric.compute()
