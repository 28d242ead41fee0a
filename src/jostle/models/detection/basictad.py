"""BasicTAD: end-to-end detection from frames, with anchors or points.

Yang, Chen, Zheng, Lu, Wang: "BasicTAD: an Astounding RGB-Only Baseline for Temporal Action Detection", Computer Vision
and Image Understanding 2023. Weights under the names of github.com/MCG-NJU/BasicTAD load as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from jostle.core.types.segments import Segments
from jostle.errors import BadValue
from jostle.models.detection.blocks.assignment import Actions
from jostle.models.detection.blocks.basictad import (
    AnchorTowers,
    DeformablePointTowers,
    Halvings,
    NormedPointTowers,
    PointAnswers,
    TopDown,
    anchor_losses,
    decode_segments,
    level_ranges,
    make_anchors,
    max_pooled,
    point_answers,
    sigmoid_losses,
    softmax_losses,
    without_implied,
)
from jostle.models.detection.blocks.basictad import match_anchors as answering_anchors
from jostle.models.detection.blocks.convolution import GROUPS
from jostle.models.detection.blocks.reach import Reach
from jostle.models.detection.blocks.trunks import SlowTrunk
from jostle.models.detection.detector import detector_variants
from jostle.models.detection.frame_detector import FrameConfig, ResampledFrameDetector, join_candidates
from jostle.models.detection.nms import hard_nms, weighted_nms
from jostle.models.detection.outputs import Candidates, Losses, likely_candidates
from jostle.models.input_spec import resized

LAST_THRESHOLD = 0.3  # IoU of the last suppression of points with softmax
DIVING = (4, 7)  # THUMOS14's cliff diving, which is annotated as diving besides

Form = Literal["anchors", "sigmoid_points", "softmax_points"]


@dataclass(frozen=True, kw_only=True)
class BasicTadConfig(FrameConfig):
    """Settings of BasicTAD; the defaults are those published for THUMOS14 with anchors at six frames a second.

    Attributes:
        dim: width of the head.
        max_segments: how many segments are kept; with `softmax_points`, before classes are implied.
        form: `anchors`, or without any: `sigmoid_points` with a probability for each class of its own, or
            `softmax_points`, which share one with background, with towers that look where they choose.
        finest: frames a step of the finest level.
        neck_dim: width of the halved maps, with anchors.
        threshold: least IoU of segments that become one.
        implied: a class, and one that each of its actions is of as well; with points, what is found as the first is
            found as the second too.
        backbone_width: share of Slow's channels.
        reproduce_bugs: repeat what the released program does wrong: a limit of segments that a pair steps over, times
            rounded to tenths of a second, segments without length, segments that reach into what fills up the last
            clip, and points whose label is not that of the action their distances lead to.
    """

    dim: int = 256
    max_length: int = 192
    levels: int = 5
    min_probability: float = 0.005
    max_segments: int = 1200
    fps: float | None = 6.0
    frame_size: int = 180
    crop: int = 160
    clip_stride: int = 144
    form: Form = "anchors"
    finest: int = 2
    neck_dim: int = 512
    threshold: float = 0.5
    implied: tuple[int, int] | None = None
    backbone_width: float = 1.0
    reproduce_bugs: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._need_counts("finest", "neck_dim")
        self._need_one_of("form", "anchors", "sigmoid_points", "softmax_points")
        if self.input_dim != 3:
            raise BadValue(f"BasicTAD: it looks at frames of 3 colours, not {self.input_dim}")
        if self.levels < 2:
            raise BadValue(f"BasicTAD: levels are from 2, not {self.levels}")
        if self.max_length % (self.finest * 2 ** (self.levels - 1)):
            raise BadValue(
                f"BasicTAD: {self.levels} levels need a max_length that is a multiple of "
                f"{self.finest * 2 ** (self.levels - 1)}, not {self.max_length}"
            )
        if self.clip_stride > self.max_length:
            raise BadValue(f"BasicTAD: clip_stride {self.clip_stride} leaves out frames between clips")
        if self.form == "sigmoid_points" and self.dim % GROUPS:
            raise BadValue(f"BasicTAD: dim {self.dim} does not divide into the {GROUPS} groups of its norms")
        self._need_shares("BasicTAD", "backbone_width", "threshold")
        if self.implied is not None and not all(0 <= number < self.classes for number in self.implied):
            raise BadValue(f"BasicTAD: implied is two numbers of its {self.classes} classes, not {self.implied}")

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of steps of each level."""
        return tuple(self.max_length // self.finest >> level for level in range(self.levels))


@dataclass(frozen=True)
class BasicTadOutputs:
    """Raw outputs of all levels, one level after the other: of anchors, or of points."""

    logits: Tensor  # (B, N, K), of points with softmax (B, N, 1 + K), background first
    places: Tensor  # (B, N, 2) codes beside the anchors, or distances from the points to start and end, in strides


class BasicTAD(ResampledFrameDetector[BasicTadConfig]):
    """BasicTAD detector, for clips of a fixed length, trained end to end from pixels."""

    anchors: Tensor
    points: Tensor
    stride: Tensor
    level: Tensor

    def __init__(self, config: BasicTadConfig) -> None:
        super().__init__(config)
        self.backbone = SlowTrunk(config.backbone_width, config.finest, fixed_norms=config.fixed_norms)
        width, dim = self.backbone.out, config.dim
        self.neck = nn.ModuleList()
        if config.form == "anchors":
            self.neck.append(Halvings(width, config.neck_dim, config.levels))
            self.neck.append(TopDown([width, *([config.neck_dim] * (config.levels - 1))], dim))
            width = dim
        head = {"anchors": AnchorTowers, "sigmoid_points": NormedPointTowers, "softmax_points": DeformablePointTowers}
        self.head = head[config.form](width, dim, config.classes, config.levels)
        level = torch.cat([torch.full((size,), number) for number, size in enumerate(config.sizes)])
        stride = config.finest * 2.0**level
        step = torch.cat([torch.arange(size) for size in config.sizes])
        for name, buffer in (
            ("anchors", make_anchors(config.sizes, config.finest)),  # (N, 2) in frames, as are
            ("points", (step + 0.5) * stride),  # (n,)
            ("stride", stride),
            ("level", level),
        ):
            self.register_buffer(name, buffer, persistent=False)

    @classmethod
    def own_names(cls, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Drop the trunk's second copy, which includes an unused classifier."""
        return {key: value for key, value in weights.items() if not key.startswith("backbone._model.")}

    def see(self, pictures: Tensor) -> Tensor:
        """Return (N, c, h, w): the stem and the first two stages of Slow see each frame by itself."""
        return self.backbone.see(pictures)

    def levels_of(self, encodings: Tensor) -> list[Tensor]:
        """Return (B, C, t) of each level of the pyramid, from (B, T, c, h, w) of what was seen of frames."""
        return self._levels(self.backbone.join(encodings))

    def _levels(self, maps: Tensor) -> list[Tensor]:
        if self.config.form != "anchors":
            return max_pooled(maps, self.config.levels)
        return list(self.neck[1](self.neck[0](maps)))

    @property
    def layers(self) -> Sequence[Reach]:
        """Blocks in the last two stages of Slow."""
        return [Reach()] * len(self.backbone.near)

    def layer(self, number: int, near: Tensor) -> Tensor:
        """Return (N, c, h, w) of (N, 3, C, H, W)."""
        return self.backbone.near[number].of_three(near)

    def finish(self, rows: Sequence[Tensor]) -> BasicTadOutputs:
        """Return the raw outputs of clips whose frames passed through all blocks of Slow."""
        (maps,) = rows
        return BasicTadOutputs(*self.head(self._levels(self.backbone.pooled(maps))))

    def join(self, encodings: Tensor) -> BasicTadOutputs:
        """Return the raw outputs of clips whose frames were encoded one by one."""
        return BasicTadOutputs(*self.head(self.levels_of(encodings)))

    def shrunk(self, frames: Tensor) -> Tensor:
        """Return (T, 3, h, w) values from 0 to 255: frames whose short side is brought to a length."""
        height, width = frames.shape[-2:]
        scale = self.config.frame_size / min(height, width)
        return resized(frames, (int(height * scale + 0.5), int(width * scale + 0.5)), antialias=False)

    def answers(self, actions: Actions) -> PointAnswers:
        """Return the targets of points for actions in frames of the clip."""
        config = self.config
        softmax = config.form == "softmax_points"
        if softmax and config.implied is not None:
            actions = without_implied(actions, config.implied)
        return point_answers(
            self.points,
            self.stride,
            level_ranges(self.level, config.levels),
            actions,
            edges=softmax,
            implied=config.implied,
            reproduce_bugs=config.reproduce_bugs,
        )

    @property
    def counts_positives(self) -> bool:
        """Whether losses are normalised over all processes; with softmax they are means per clip."""
        return self.config.form != "softmax_points"

    def loss(self, outputs: BasicTadOutputs, actions: Actions) -> Losses:
        """Compute the losses of classes and boundaries.

        Args:
            actions: in frames of the clip.
        """
        predictions, form = (outputs.logits, outputs.places), self.config.form
        if form == "anchors":
            classes, ends, positives = anchor_losses(*predictions, self.anchors, actions, self.counted)
        else:
            targets = self.answers(actions)
            positives = targets.positive.sum()
            if form == "sigmoid_points":
                classes, ends = sigmoid_losses(*predictions, targets, self.counted)
            else:
                classes, ends = softmax_losses(*predictions, targets)
        return Losses(classes + ends, classes, ends, positives)

    def output_segments(self, outputs: BasicTadOutputs) -> Tensor:
        """Return (B, N, 2) the segments of anchors or points, in frames of the clip."""
        if self.config.form == "anchors":
            return decode_segments(outputs.places, self.anchors)
        far = outputs.places * self.stride[:, None]
        return torch.stack([self.points - far[..., 0], self.points + far[..., 1]], -1)

    def match_actions(self, outputs: BasicTadOutputs, actions: Actions) -> tuple[Tensor, Tensor]:
        """Return (B, N) which anchors or points answer for an action, and (B, N) which row of the actions that is."""
        if self.config.form == "anchors":
            number, _ = answering_anchors(self.anchors, actions)
            return number >= 0, number.clamp(min=0)
        targets = self.answers(actions)
        return targets.positive, targets.action

    def decode(self, outputs: BasicTadOutputs) -> list[Candidates]:
        """Decode the segments of each clip, in frames, before suppression."""
        config = self.config
        segments = self.output_segments(outputs).clamp(0, config.max_length)
        softmax = config.form == "softmax_points"
        likely = outputs.logits.softmax(-1)[..., 1:] if softmax else outputs.logits.sigmoid()
        return likely_candidates(segments, likely, config.min_probability)

    def merge_clips(self, parts: Sequence[tuple[int, Candidates]], count: int) -> Candidates:
        """Merge the candidates of all clips; with softmax, each clip is suppressed first."""
        softmax, faults = self.config.form == "softmax_points", self.config.reproduce_bugs
        merged = []
        for first, candidates in parts:
            segments = candidates.segments
            if not (softmax and faults):
                segments = np.minimum(segments, np.float32(count - first))
            # What lay outside has no length now; the program keeps it, and it takes a place of those that are allowed.
            row = np.flatnonzero(segments[:, 0] < segments[:, 1]) if not faults else slice(None)
            inside = Candidates(segments[row], candidates.scores[row], candidates.labels[row])
            merged.append((first, self._merged(inside) if softmax else inside))
        return join_candidates(merged)

    def suppress(self, candidates: Candidates) -> Candidates:
        """Suppress overlapping segments within a class; with points, add implied classes."""
        config = self.config
        if config.form == "softmax_points":
            survivors = hard_nms(*candidates.columns, threshold=config.threshold, max_segments=config.max_segments)
            every = self._implied(Candidates(*survivors))
            most = max(len(every), 1)
            return Candidates(*hard_nms(*every.columns, threshold=LAST_THRESHOLD, max_segments=most))
        merged = self._merged(candidates)
        if config.form == "anchors":
            return merged.take(slice(config.max_segments))
        every = self._implied(merged)
        if config.reproduce_bugs and config.implied is not None:
            # The program counts after each candidate, and looks for the limit itself: a pair may step over it.
            after = np.cumsum(np.where(merged.labels == config.implied[0], 2, 1))
            return every if config.max_segments not in after else every.take(slice(config.max_segments))
        return every.take(slice(config.max_segments))

    def to_seconds(
        self, candidates: Candidates, rate: float, duration: float, video_scores: npt.ArrayLike | None = None
    ) -> Segments:
        """Suppress candidates and convert them to seconds inside the video, rounded as in the original."""
        segments = super().to_seconds(candidates, rate, duration, video_scores)
        if not self.config.reproduce_bugs or self.config.form == "softmax_points":
            return segments
        start, end = segments.start.round(1), segments.end.round(1)
        valid = start < end
        return replace(segments[valid], start=start[valid], end=end[valid])

    def _merged(self, candidates: Candidates) -> Candidates:
        return Candidates(*weighted_nms(*candidates.columns, threshold=self.config.threshold))

    def _implied(self, candidates: Candidates) -> Candidates:
        """Append to each segment of a class a copy with the implied class."""
        if self.config.implied is None:
            return candidates
        first, second = self.config.implied
        row = np.repeat(np.arange(len(candidates)), np.where(candidates.labels == first, 2, 1))
        labels = candidates.labels[row]
        labels[np.flatnonzero(row[1:] == row[:-1]) + 1] = second
        return Candidates(candidates.segments[row], candidates.scores[row], labels)


_THUMOS_AFS3 = BasicTadConfig(
    dim=2048, max_length=96, fps=3.0, frame_size=128, crop=128, clip_stride=72, form="sigmoid_points", finest=1,
    threshold=0.4, implied=DIVING,
)  # fmt: skip
_PUPPETS = BasicTadConfig(
    dim=64, classes=16, max_length=96, max_segments=200, frame_size=112, crop=96, clip_stride=72, neck_dim=128,
    backbone_width=0.25, fixed_norms=False,
)  # fmt: skip

VARIANTS = {
    "basictad": ("BasicTAD with settings of your own, from those for THUMOS14 with anchors.", BasicTadConfig()),
    "basictad_thumos_ab3": (
        "BasicTAD for THUMOS14 with anchors, as published: three frames a second, in clips of 96.",
        BasicTadConfig(max_length=96, fps=3.0, frame_size=128, crop=128, clip_stride=72, finest=1),
    ),
    "basictad_thumos_ab6": (
        "BasicTAD for THUMOS14 with anchors, as published: six frames a second, in clips of 192.",
        BasicTadConfig(),
    ),
    "basictad_thumos_afs3": (
        "BasicTAD for THUMOS14 without anchors, as published: three frames a second, in clips of 96.",
        _THUMOS_AFS3,
    ),
    "basictad_thumos_afm6": (
        "BasicTAD for THUMOS14 without anchors, as published: six frames a second, in clips of 192, with softmax.",
        BasicTadConfig(dim=2048, max_segments=200, form="softmax_points", threshold=0.6, implied=DIVING),
    ),
    "basictad_puppets": ("BasicTAD in a small size for videos of puppets; jostle's own.", _PUPPETS),
}
detector_variants(BasicTAD, VARIANTS)
