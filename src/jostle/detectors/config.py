"""The settings that all detectors share; each detector's own class adds to them beside its network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from jostle.detectors.blocks.points import default_ranges
from jostle.errors import BadValue

# Settings may come from a file of weights; what these count is made before a tensor is.
_MOST = {"levels": 32, "embedding_layers": 32, "max_length": 1 << 20}


@dataclass(frozen=True, kw_only=True)
class DetectorConfig:
    """Sizes, loss and inference settings; the defaults are those published for THUMOS14 with I3D features.

    Attributes:
        input_dim: width of a feature.
        dim: width of the network.
        head_dim: width of the heads; None for `dim`.
        classes: how many classes the network tells apart; 1 for class-agnostic proposals.
        class_names: names of the classes, or of the classes of external video scores; empty for their numbers.
        max_length: steps to which a video is padded, where padding changes the numbers.
        levels: levels of the pyramid, each half as fine as the one before.
        embedding_layers: convolutions before the pyramid.
        ranges: distances (low, high) in grid steps that each level answers for; None for 0-4, 4-8, 8-16, ...
        centre_radius: strides around its centre within which points answer for an action; None for all of it.
        prior: probability with which every class starts.
        label_smoothing: share of a target that is spread over the classes.
        loss_weight: of the regression loss.
        normaliser: running number of positives to start with.
        resize: stretch every video to `max_length` steps instead of padding it.
        min_probability: candidates must exceed it.
        top_candidates: how many are decoded, of each level (of all levels together under `rules="opentad"`).
        min_duration: candidates must be longer, in grid steps.
        sigma: of Gaussian soft-NMS.
        min_score: where soft-NMS stops.
        max_segments: how many segments are kept.
        multiclass: suppress within each class; otherwise among all candidates, with voting.
        vote_threshold: least IoU of a candidate that has a voice, 0 for no voting; not used with `multiclass`.
        vote_weight: what a voice weighs.
        video_classes: how many of the best external video scores are given to every segment.
        rules: whose arithmetic: the original's, or that of OpenTAD, whose published weights were trained with it.
        precision: of inference.
        compiled: run inference on a GPU through torch.compile; on a CPU it would ask for a C++ compiler, and is not.
    """

    input_dim: int = 2048
    dim: int = 512
    head_dim: int | None = None
    classes: int = 20
    class_names: tuple[str, ...] = ()
    max_length: int = 2304
    levels: int = 6
    embedding_layers: int = 2
    ranges: tuple[tuple[float, float], ...] | None = None
    centre_radius: float | None = 1.5
    prior: float = 0.01
    label_smoothing: float = 0.0
    loss_weight: float = 1.0
    normaliser: float = 100.0
    resize: bool = False
    min_probability: float = 0.001
    top_candidates: int = 2000
    min_duration: float = 0.05
    sigma: float = 0.5
    min_score: float = 0.001
    max_segments: int = 200
    multiclass: bool = True
    vote_threshold: float = 0.0
    vote_weight: Literal["score*iou", "score"] = "score*iou"
    video_classes: int = 2
    rules: Literal["original", "opentad"] = "original"
    precision: Literal["float32", "bfloat16"] = "float32"
    compiled: bool = False

    def __post_init__(self) -> None:
        for name in ("input_dim", "dim", "classes", "max_length", "levels", "embedding_layers", "max_segments"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1 or value > _MOST.get(name, value):
                upto = f" to {_MOST[name]}" if name in _MOST else ""
                raise BadValue(f"{type(self).__name__}: {name} must be a whole number from 1{upto}, not {value!r}")
        if self.ranges is not None and len(self.ranges) != self.levels:
            raise BadValue(f"{type(self).__name__}: {len(self.ranges)} ranges were given for {self.levels} levels")
        for name, allowed in (("rules", ("original", "opentad")), ("precision", ("float32", "bfloat16"))):
            if getattr(self, name) not in allowed:
                raise BadValue(
                    f"{type(self).__name__}: {name} is one of {', '.join(allowed)}, not {getattr(self, name)!r}"
                )

    @property
    def head_width(self) -> int:
        """Width of the heads."""
        return self.dim if self.head_dim is None else self.head_dim

    @property
    def level_ranges(self) -> tuple[tuple[float, float], ...]:
        """Distances that each level answers for."""
        return default_ranges(self.levels) if self.ranges is None else self.ranges

    @property
    def opentad(self) -> bool:
        """Whether OpenTAD's arithmetic is asked for."""
        return self.rules == "opentad"

    @property
    def eps(self) -> float:
        """Epsilon of the norms in embedding, neck and heads."""
        return 1e-6 if self.opentad else 1e-5
