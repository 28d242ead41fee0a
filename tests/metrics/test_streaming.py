"""The metric inside a training loop, and that it gives what scoring the files would."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.core.types import Predictions, Truth
from jostle.errors import BadValue
from jostle.metrics.score import score
from jostle.metrics.streaming import TemporalMeanAP


class Tensor:
    """As much of a tensor as the metric touches."""

    def __init__(self, values) -> None:
        self.values = np.asarray(values)

    def detach(self):
        return self

    def cpu(self):
        return self

    def double(self):
        return Tensor(self.values.astype(np.float64))

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


def test_it_gives_what_scoring_the_tables_gives() -> None:
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
    found = Predictions(
        names, classes, owner[0], *table(rows, "segments").T, table(rows, "labels"), table(rows, "scores")
    )
    truth = Truth(names, classes, owner[1], *table(real, "segments").T, table(real, "labels"))
    wanted = score(found, truth)
    assert metric.compute() == {
        "average_map": wanted.average_map,
        **{f"map@{t:g}": v for t, v in zip(wanted.tious, wanted.map, strict=True)},
    }
    assert metric.score().per_class.keys() == wanted.per_class.keys()


def test_tensors_and_lists_do_as_well() -> None:
    made = []
    for kind in (np.asarray, Tensor, lambda values: np.asarray(values).tolist()):
        metric = TemporalMeanAP()
        for preds, target in batches(kind):
            metric.update(preds, target)
        made.append(metric.compute())
    assert made[0] == made[1] == made[2]


def test_reset_forgets_and_merge_joins_without_counting_twice() -> None:
    whole, one, other = (TemporalMeanAP() for _ in range(3))
    for i, (preds, target) in enumerate(batches()):
        ids = [f"v{3 * i + j}" for j in range(3)]
        whole.update(preds, target, videos=ids)
        (one if i % 2 else other).update(preds, target, videos=ids)
        if i == 0:
            one.update(preds[:1], target[:1], videos=ids[:1])  # padding of a distributed sampler
    one.merge(other)
    assert one.compute() == pytest.approx(whole.compute())
    one.reset()
    with pytest.raises(BadValue, match="no video has been added"):
        one.compute()


def test_empty_videos_are_fine() -> None:
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
def test_a_bad_batch_is_refused_whole(preds, target, message) -> None:
    metric = TemporalMeanAP()
    good = {"segments": [], "scores": [], "labels": []}
    with pytest.raises(BadValue, match=message):
        metric.update([good, preds], [{"segments": [[0, 1]], "labels": [0]}, target])
    assert not metric._targets


def test_a_video_is_added_once() -> None:
    metric = TemporalMeanAP(classes=("Jump",))
    nothing = {"segments": [], "scores": [], "labels": []}
    metric.update([nothing], [{"segments": [[0, 1]], "labels": [3]}], videos=["a"])
    with pytest.raises(BadValue, match="'a' was added before"):
        metric.update([nothing], [{"segments": [], "labels": []}], videos=["a"])
    with pytest.raises(BadValue, match="one target for each"):
        metric.update([nothing], [])
    with pytest.raises(BadValue, match="label 3 has no name: there are 1 classes"):
        metric.compute()
