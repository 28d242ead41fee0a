"""Mean average precision inside a training loop: `update` with batches, `compute` at the end, `reset`.

It keeps the manners of torchmetrics without needing it: a list of dictionaries a batch, tensors or arrays, on any
device; `merge` joins what several processes saw.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from jostle.core.types.predictions import Predictions
from jostle.core.types.truth import Truth
from jostle.errors import BadValue
from jostle.metrics.protocol import checked_tious
from jostle.metrics.score import Score, score

Found = tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]
Real = tuple[npt.NDArray[Any], npt.NDArray[Any]]


class TemporalMeanAP:
    """Collects detections video by video and scores them together.

    Args:
        protocol: whose rules; see `jostle names protocols`.
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
        self,
        *,
        protocol: str = "thumos14",
        tious: Sequence[float] | None = None,
        classes: Sequence[str] | None = None,
    ) -> None:
        self.protocol = protocol
        self.tious = None if tious is None else checked_tious(tious).tolist()
        self.classes = None if classes is None else tuple(classes)
        self.reset()

    def reset(self) -> None:
        """Forget all videos."""
        self._found: dict[Hashable, Found] = {}
        self._real: dict[Hashable, Real] = {}

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
            videos: their ids; by default they are counted, which is enough unless processes are merged.
        """
        if len(preds) != len(target):
            raise BadValue(f"a batch has one target for each prediction, got {len(preds)} and {len(target)}")
        ids = list(videos) if videos is not None else list(range(len(self._real), len(self._real) + len(preds)))
        if len(ids) != len(preds):
            raise BadValue(f"a batch of {len(preds)} videos needs as many ids, got {len(ids)}")
        twice = [name for name in ids if name in self._real]
        if twice or len(set(ids)) < len(ids):
            raise BadValue(
                f"video {twice[0] if twice else ids[0]!r} was added before; reset between passes over the data"
            )
        made = [
            (
                _columns(one, "preds", ("segments", "scores", "labels")),
                _columns(other, "target", ("segments", "labels")),
            )
            for one, other in zip(preds, target, strict=True)
        ]  # all are read before any is kept, so that a bad batch leaves nothing behind
        for name, (found, real) in zip(ids, made, strict=True):
            self._found[name] = (found[0], found[1], found[2])
            self._real[name] = (real[0], real[1])

    def merge(self, other: TemporalMeanAP) -> None:
        """Add the videos another process saw; a video both saw, as samplers pad with, counts once."""
        for name, real in other._real.items():
            if name not in self._real:
                self._real[name], self._found[name] = real, other._found[name]

    def compute(self) -> dict[str, float]:
        """`average_map`, and `map@t` at each threshold."""
        done = self.score()
        return {"average_map": done.average_map} | {
            f"map@{t:g}": float(value) for t, value in zip(done.tious, done.map, strict=True)
        }

    def score(self) -> Score:
        """All there is to know about the score."""
        if not self._real:
            raise BadValue("no video has been added; call update before compute")
        ids = [str(name) for name in self._real]
        found, real = list(self._found.values()), list(self._real.values())
        numbers = np.unique(np.concatenate([part[-1] for part in [*found, *real]])).astype(int).tolist()
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
            video=_owners(found),
            start=np.concatenate([part[0][:, 0] for part in found]),
            end=np.concatenate([part[0][:, 1] for part in found]),
            label=np.searchsorted(numbers, np.concatenate([part[2] for part in found])).astype(np.int32),
            score=np.concatenate([part[1] for part in found]),
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
    made = [_array(video[key]) for key in keys]
    segments = made[0].reshape(0, 2) if not made[0].size else made[0]
    if segments.ndim != 2 or segments.shape[1] != 2:
        raise BadValue(f"segments of {where} must be (N, 2) seconds, got shape {segments.shape}")
    for key, values in zip(keys[1:], made[1:], strict=True):
        if values.shape != (len(segments),):
            raise BadValue(f"{key} of {where} must be ({len(segments)},) like its segments, got shape {values.shape}")
    return [segments.astype(np.float64), *made[1:-1], made[-1].astype(np.int64)]


def _array(values: Any) -> npt.NDArray[Any]:
    """An array from a tensor of any device, an array or a list."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = values.double().numpy() if values.is_floating_point() else values.numpy()
    return np.asarray(values)


def _owners(parts: Sequence[tuple[Any, ...]]) -> npt.NDArray[np.int32]:
    return np.repeat(np.arange(len(parts), dtype=np.int32), [len(part[0]) for part in parts])
