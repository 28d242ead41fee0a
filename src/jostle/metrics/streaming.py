"""Mean average precision for training loops: `update` with batches, `compute` at the end, `reset`.

The interface is that of torchmetrics, which is not required: a list of dictionaries per batch, with tensors or arrays
on any device; `merge` combines the results of several processes.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from jostle.core.types.predictions import Predictions
from jostle.core.types.truth import Truth
from jostle.errors import BadValue
from jostle.metrics.protocol import check_tious
from jostle.metrics.score import Score, score

PredictionColumns = tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]
TargetColumns = tuple[npt.NDArray[Any], npt.NDArray[Any]]


class TemporalMeanAP:
    """Collects detections batch by batch and scores them together.

    Args:
        protocol: name of the protocol; see `jostle names protocols`.
        tious: thresholds; by default the protocol's own.
        classes: names of the classes that labels count; by default their numbers as text.

    >>> metric = TemporalMeanAP(tious=[0.5])
    >>> found = {"segments": [[0.0, 4.0]], "scores": [0.9], "labels": [1]}
    >>> metric.update([found], [{"segments": [[0.0, 5.0]], "labels": [1]}])
    >>> metric.compute()
    {'average_map': 1.0, 'map@0.5': 1.0}
    """

    higher_is_better: ClassVar[bool] = True
    is_differentiable: ClassVar[bool] = False
    full_state_update: ClassVar[bool] = False

    def __init__(
        self, *, protocol: str = "thumos14", tious: Sequence[float] | None = None, classes: Sequence[str] | None = None
    ) -> None:
        self.protocol = protocol
        self.tious = None if tious is None else check_tious(tious).tolist()
        self.classes = None if classes is None else tuple(classes)
        self.reset()

    def reset(self) -> None:
        """Remove all videos collected so far."""
        self._predictions: dict[Hashable, PredictionColumns] = {}
        self._targets: dict[Hashable, TargetColumns] = {}

    def update(
        self,
        preds: Sequence[Mapping[str, Any]],
        target: Sequence[Mapping[str, Any]],
        *,
        videos: Sequence[Hashable] | None = None,
    ) -> None:
        """Add a batch of videos.

        Args:
            preds: for each video `segments` (N, 2) in seconds, `scores` (N,), `labels` (N,) whole numbers.
            target: for each video `segments` (G, 2) and `labels` (G,).
            videos: their ids; by default consecutive numbers, which suffices unless processes are merged.
        """
        if len(preds) != len(target):
            raise BadValue(f"a batch has one target for each prediction, got {len(preds)} and {len(target)}")
        ids = list(videos) if videos is not None else list(range(len(self._targets), len(self._targets) + len(preds)))
        if len(ids) != len(preds):
            raise BadValue(f"a batch of {len(preds)} videos needs as many ids, got {len(ids)}")
        repeated = [name for name in ids if name in self._targets]
        if repeated or len(set(ids)) < len(ids):
            raise BadValue(
                f"video {repeated[0] if repeated else ids[0]!r} was added before; reset between passes over the data"
            )
        batch = [
            (
                _columns(one, "preds", ("segments", "scores", "labels")),
                _columns(other, "target", ("segments", "labels")),
            )
            for one, other in zip(preds, target, strict=True)
        ]  # all are checked before any is stored, so that a bad batch changes nothing
        for name, (prediction, real) in zip(ids, batch, strict=True):
            self._predictions[name] = (prediction[0], prediction[1], prediction[2])
            self._targets[name] = (real[0], real[1])

    def merge(self, other: TemporalMeanAP) -> None:
        """Add the videos of another process; a video that both have, as samplers pad with, counts once."""
        for name, real in other._targets.items():
            if name not in self._targets:
                self._targets[name], self._predictions[name] = real, other._predictions[name]

    def compute(self) -> dict[str, float]:
        """Return `average_map`, and `map@t` at each threshold."""
        result = self.score()
        return {"average_map": result.average_map} | {
            f"map@{t:g}": float(value) for t, value in zip(result.tious, result.map, strict=True)
        }

    def score(self) -> Score:
        """Return the score with all its details."""
        if not self._targets:
            raise BadValue("no video has been added; call update before compute")
        ids = [str(name) for name in self._targets]
        predicted, real = list(self._predictions.values()), list(self._targets.values())
        numbers = np.unique(np.concatenate([part[-1] for part in [*predicted, *real]])).astype(int).tolist()
        names = [self._name(number) for number in numbers]
        truth = Truth(
            videos=tuple(ids),
            classes=tuple(names),
            video=_owners(real),
            start=np.concatenate([part[0][:, 0] for part in real]),
            end=np.concatenate([part[0][:, 1] for part in real]),
            label=np.searchsorted(numbers, np.concatenate([part[1] for part in real])).astype(np.int32),
        )
        predictions = Predictions(
            videos=tuple(ids),
            classes=tuple(names),
            video=_owners(predicted),
            start=np.concatenate([part[0][:, 0] for part in predicted]),
            end=np.concatenate([part[0][:, 1] for part in predicted]),
            label=np.searchsorted(numbers, np.concatenate([part[2] for part in predicted])).astype(np.int32),
            score=np.concatenate([part[1] for part in predicted]),
        )
        return score(predictions, truth, protocol=self.protocol, tious=self.tious)

    def _name(self, number: int) -> str:
        if self.classes is None:
            return str(number)
        if not 0 <= number < len(self.classes):
            raise BadValue(f"label {number} has no name: there are {len(self.classes)} classes")
        return self.classes[number]


def _columns(video: Mapping[str, Any], where: str, keys: tuple[str, ...]) -> list[npt.NDArray[Any]]:
    missing = [key for key in keys if key not in video]
    if missing:
        raise BadValue(f"{where} needs {', '.join(keys)} for each video; {', '.join(missing)} is missing")
    arrays = [_to_array(video[key]) for key in keys]
    segments = arrays[0].reshape(0, 2) if not arrays[0].size else arrays[0]
    if segments.ndim != 2 or segments.shape[1] != 2:
        raise BadValue(f"segments of {where} must be (N, 2) seconds, got shape {segments.shape}")
    for key, values in zip(keys[1:], arrays[1:], strict=True):
        if values.shape != (len(segments),):
            raise BadValue(f"{key} of {where} must be ({len(segments)},) like its segments, got shape {values.shape}")
    return [segments.astype(np.float64), *arrays[1:-1], arrays[-1].astype(np.int64)]


def _to_array(values: Any) -> npt.NDArray[Any]:
    """Convert a tensor on any device, an array or a list to an array."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = values.double().numpy() if values.is_floating_point() else values.numpy()
    return np.asarray(values)


def _owners(parts: Sequence[tuple[Any, ...]]) -> npt.NDArray[np.int32]:
    return np.repeat(np.arange(len(parts), dtype=np.int32), [len(part[0]) for part in parts])
