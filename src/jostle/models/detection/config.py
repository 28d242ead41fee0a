"""Settings that all detectors share, and those of point detectors.

Each detector's own class adds to them beside its network.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, Literal

from jostle.errors import BadValue

# Settings may come from a file of weights; what these count is made before a tensor is.
_MOST = {"levels": 32, "embedding_layers": 32, "encoder_layers": 32, "decoder_layers": 32, "max_length": 1 << 20}


def default_ranges(levels: int) -> tuple[tuple[float, float], ...]:
    """Return the distances each level is responsible for: 0-4, 4-8, 8-16, ..., the last unbounded.

    >>> default_ranges(3)
    ((0.0, 4.0), (4.0, 8.0), (8.0, 10000.0))
    """
    edges = [0.0] + [4.0 * 2**level for level in range(levels - 1)] + [10000.0]
    return tuple(itertools.pairwise(edges))


@dataclass(frozen=True, kw_only=True)
class DetectorConfig:
    """Settings that every detector has.

    Attributes:
        input_dim: width of a feature, or channels of a frame.
        dim: width of the network.
        classes: number of classes; 1 for class-agnostic proposals.
        class_names: names of the classes, or of the classes of external video scores; empty for their numbers.
        max_length: sequence length of the network: that videos are padded to where padding matters, or of a window.
        levels: number of pyramid levels, each half as fine as the previous one.
        min_probability: least probability of a candidate.
        sigma: sigma of Gaussian soft-NMS.
        min_score: score at which soft-NMS stops.
        max_segments: maximum number of segments.
        video_classes: number of the best external video scores that every segment gets.
        precision: floating-point precision of inference.
    """

    input_dim: int = 2048
    dim: int = 512
    classes: int = 20
    class_names: tuple[str, ...] = ()
    max_length: int = 2304
    levels: int = 6
    min_probability: float = 0.001
    sigma: float = 0.5
    min_score: float = 0.001
    max_segments: int = 200
    video_classes: int = 2
    precision: Literal["float32", "bfloat16"] = "float32"

    def __post_init__(self) -> None:
        self._need_counts("input_dim", "dim", "classes", "max_length", "levels", "max_segments")
        self._need_one_of("precision", "float32", "bfloat16")

    def _need_counts(self, *names: str) -> None:
        for name in names:
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1 or value > _MOST.get(name, value):
                upto = f" to {_MOST[name]}" if name in _MOST else ""
                raise BadValue(f"{type(self).__name__}: {name} must be a whole number from 1{upto}, not {value!r}")

    def _need_shares(self, model: str, *names: str) -> None:
        for name in names:
            if not 0 < getattr(self, name) <= 1:
                raise BadValue(f"{model}: {name} is above 0 and at most 1, not {getattr(self, name)}")

    def _need_one_of(self, name: str, *allowed: Any) -> None:
        value = getattr(self, name)
        if value not in allowed:
            raise BadValue(f"{type(self).__name__}: {name} is one of {', '.join(map(str, allowed))}, not {value!r}")

    @property
    def stretches(self) -> bool:
        """Whether every video is stretched to `max_length` steps."""
        return False

    @property
    def sampling_radius(self) -> float | None:
        """Strides around an action's centre within which points are assigned to it; None for the whole action."""
        return None

    @property
    def multiplies(self) -> bool:
        """Whether the score of a proposal and that of its video's class are multiplied, without taking the root."""
        return True


@dataclass(frozen=True, kw_only=True)
class PointConfig(DetectorConfig):
    """Sizes, loss and inference settings; the defaults are those published for THUMOS14 with I3D features.

    Attributes:
        head_dim: width of the heads; None for `dim`.
        embedding_layers: convolutions before the pyramid.
        ranges: distances (low, high) in grid steps of each level; None for 0-4, 4-8, 8-16, ...
        centre_radius: strides around its centre within which points are assigned to an action; None for all of it.
        prior: initial probability of every class.
        label_smoothing: amount of label smoothing.
        loss_weight: weight of the regression loss.
        normaliser: initial running number of positives.
        resize: stretch every video to `max_length` steps instead of padding it.
        top_candidates: number of candidates decoded per level (of all levels together with `rules="opentad"`).
        min_duration: least duration of a candidate, in grid steps.
        multiclass: suppress within each class; otherwise among all candidates, with voting.
        vote_threshold: least IoU of a candidate that votes, 0 for no voting; not used with `multiclass`.
        vote_weight: weight of a vote.
        rules: arithmetic of the original, or of OpenTAD, for weights trained with it.
        compiled: run inference on a GPU through torch.compile; ignored on a CPU, where it would need a C++ compiler.
    """

    head_dim: int | None = None
    embedding_layers: int = 2
    ranges: tuple[tuple[float, float], ...] | None = None
    centre_radius: float | None = 1.5
    prior: float = 0.01
    label_smoothing: float = 0.0
    loss_weight: float = 1.0
    normaliser: float = 100.0
    resize: bool = False
    top_candidates: int = 2000
    min_duration: float = 0.05
    multiclass: bool = True
    vote_threshold: float = 0.0
    vote_weight: Literal["score*iou", "score"] = "score*iou"
    rules: Literal["original", "opentad"] = "original"
    compiled: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._need_counts("embedding_layers")
        if self.ranges is not None and len(self.ranges) != self.levels:
            raise BadValue(f"{type(self).__name__}: {len(self.ranges)} ranges were given for {self.levels} levels")
        self._need_one_of("rules", "original", "opentad")

    @property
    def stretches(self) -> bool:
        """Whether every video is stretched to `max_length` steps."""
        return self.resize

    @property
    def sampling_radius(self) -> float | None:
        """Strides around an action's centre within which points are assigned to it; None for the whole action."""
        return self.centre_radius

    @property
    def multiplies(self) -> bool:
        """Whether the score of a proposal and that of its video's class are multiplied, without taking the root."""
        return self.opentad

    @property
    def head_width(self) -> int:
        """Number of channels of the heads."""
        return self.dim if self.head_dim is None else self.head_dim

    @property
    def level_ranges(self) -> tuple[tuple[float, float], ...]:
        """Range of distances that each level is responsible for."""
        return default_ranges(self.levels) if self.ranges is None else self.ranges

    @property
    def opentad(self) -> bool:
        """Whether to use OpenTAD's arithmetic."""
        return self.rules == "opentad"

    @property
    def eps(self) -> float:
        """Epsilon of the norms in embedding, neck and heads."""
        return 1e-6 if self.opentad else 1e-5
