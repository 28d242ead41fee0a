"""VSGN: a graph pyramid over short videos stitched with their stretched copies.

Zhao, Thabet, Ghanem: "Video Self-Stitching Graph Network for Temporal Action Localization", ICCV 2021. Weights under
the names of github.com/coolbay/VSGN load as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jostle.errors import BadValue
from jostle.models.detection.blocks.assignment import Actions, Targets, focal, generalised_iou, match, mean_of_both
from jostle.models.detection.blocks.boundaries import BoundaryCurve, EndShift, curve_targets, heights
from jostle.models.detection.blocks.vsgn import (
    GROUPS,
    AnchorHead,
    GraphBlock,
    Stitching,
    anchor_points,
    decode_boxes,
    make_anchors,
)
from jostle.models.detection.config import DetectorConfig
from jostle.models.detection.detector import detector_variants
from jostle.models.detection.feature_detector import FeatureDetector
from jostle.models.detection.nms import hard_nms, soft_nms
from jostle.models.detection.outputs import Candidates, Losses, Outputs

FINEST = 4  # steps of the window a step of the finest level


@dataclass(frozen=True, kw_only=True)
class VsgnConfig(DetectorConfig):
    """Settings of VSGN; the defaults are those published for THUMOS14.

    Attributes:
        graph: join similar steps. Without, as in the released program by default, a level is a convolution.
        neighbours: steps that each is joined to.
        stitch: put short videos beside their stretched copies.
        gap: empty steps between a video and its copy.
        anchors: lengths of the anchors at a place, in strides of its level.
        long_videos: what is done with those longer than `max_length`: `windows` that begin every quarter of it, or
            `shrink` them.
        match_threshold: least IoU of a box that answers for an action.
        adjust_threshold: and of a box whose ends are moved.
        curve_weight: of the losses of the three curves.
        end_epsilon: added within the logarithms of the curves of starts and ends.
        window_threshold: IoU above which the weaker of two boxes of a class goes, within each window; None keeps both.
        max_duration: seconds from which on a segment is dropped; None for any.
        reproduce_bugs: repeat what the released program does wrong: boxes that overlap nothing learn from actions that
            no box overlaps; boxes beside the video take places among the segments, though nothing is left of them, and
            so do those that are too long; the last candidate of a video is lost.
    """

    dim: int = 256
    max_length: int = 1280
    levels: int = 5
    min_probability: float = 0.005
    sigma: float = 0.46
    min_score: float = 0.0
    video_classes: int = 1
    graph: bool = True
    neighbours: int = 12
    stitch: bool = True
    gap: int = 30
    anchors: tuple[float, ...] = (1.0, 1.5)
    long_videos: Literal["windows", "shrink"] = "windows"
    match_threshold: float = 0.5
    adjust_threshold: float = 0.7
    curve_weight: float = 0.2
    end_epsilon: float = 1e-5
    window_threshold: float | None = 0.4
    max_duration: float | None = 50.0
    reproduce_bugs: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._need_counts("neighbours")
        self._need_one_of("long_videos", "windows", "shrink")
        if self.dim % GROUPS:
            raise BadValue(f"VSGN: dim {self.dim} does not divide into the {GROUPS} groups of its norms")
        if self.max_length % 2 ** (self.levels + 1):
            raise BadValue(
                f"VSGN: {self.levels} levels need a max_length that can be halved {self.levels + 1} times, "
                f"not {self.max_length}"
            )
        if self.graph and self.neighbours > self.max_length >> self.levels:
            raise BadValue(
                f"VSGN: the coarsest graph has {self.max_length >> self.levels} steps, fewer than {self.neighbours} "
                "neighbours; lower neighbours or levels, or raise max_length"
            )
        if not self.anchors or min(self.anchors) <= 0:
            raise BadValue(f"VSGN: anchors are lengths above 0, at least one; got {list(self.anchors)}")
        if not 0 <= self.gap < self.max_length // 2:
            raise BadValue(f"VSGN: gap is from 0 to below half of max_length {self.max_length}, not {self.gap}")

    @property
    def agnostic(self) -> bool:
        """Whether there is a single class with a sigmoid; otherwise there is a background class."""
        return self.classes == 1

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of positions of each level, the finest first."""
        return tuple(self.max_length // FINEST >> level for level in range(self.levels))


@dataclass(frozen=True)
class VsgnOutputs(Outputs):
    """Raw outputs at the anchors, the finest level first; `logits` begin with the background unless class-agnostic."""

    boxes: Tensor  # (B, N, 2) start and end on the grid of the window
    adjusted: Tensor  # (B, N, 2) the same with their ends moved
    curves: Tensor  # (B, 3, T) probabilities that an action goes on, starts, ends
    stitching: Stitching  # where the videos and their copies are


def _conv(inputs: int, dim: int, *, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.Conv1d(inputs, dim, 3, stride, padding=1), nn.ReLU())


class GraphPyramid(nn.Module):
    """U-shaped pyramid of graph blocks with skip connections."""

    def __init__(self, config: VsgnConfig) -> None:
        super().__init__()
        dim, levels = config.dim, config.levels
        self.conv0 = _conv(config.input_dim, dim, stride=2)
        self.levels_enc = nn.ModuleList(
            GraphBlock(dim, config.neighbours) if config.graph else _conv(dim, dim, stride=2) for _ in range(levels)
        )
        self.levels_dec = nn.ModuleList(
            nn.Sequential(nn.ConvTranspose1d(dim, dim, 3, 2, padding=1, output_padding=1), nn.ReLU())
            for _ in range(levels - 1)
        )
        self.levels1 = nn.ModuleList(_conv(dim, dim) for _ in range(levels))
        self.levels2 = nn.ModuleList(_conv(dim, dim) for _ in range(levels - 1))

    def forward(self, x: Tensor, stitching: Stitching) -> list[Tensor]:
        """Return the levels (B, D, T / 4), (B, D, T / 8), ..."""
        x = self.conv0(x)  # (B, D, T / 2)
        encoded = []
        for block in self.levels_enc:
            x = block(x, stitching) if isinstance(block, GraphBlock) else block(x)
            encoded.append(x)
        x = self.levels1[0](encoded.pop())
        levels = [x]
        for up, side, join in zip(self.levels_dec, self.levels2, list(self.levels1)[1:], strict=True):
            x = join(side(encoded.pop()) + up(x))
            levels.append(x)
        return levels[::-1]


class VSGN(FeatureDetector[VsgnConfig]):
    """VSGN detector, for windows of a fixed length, padded with zeros or a stretched copy."""

    row_centre: ClassVar[float] = 0.5
    aligned_ends: ClassVar[bool] = True
    cuts_at_edges: ClassVar[bool] = True
    anchors: Tensor

    def __init__(self, config: VsgnConfig) -> None:
        super().__init__(config)
        dim = config.dim
        self.xGPN = GraphPyramid(config)
        self.head_dec = AnchorHead(dim, len(config.anchors), 1 if config.agnostic else config.classes + 1)
        self.bd_adjust = EndShift(dim)
        self.head_actionness = BoundaryCurve(dim)
        self.head_startness = BoundaryCurve(dim)
        self.head_endness = BoundaryCurve(dim)
        self.register_buffer("anchors", make_anchors(config.sizes, config.anchors, FINEST), persistent=False)

    @classmethod
    def own_names(cls, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Rename tensors as in THUMOS14's files; ActivityNet's use `bd_refine` and include an unused head."""
        return {
            name.replace("bd_refine.", "bd_adjust.", 1): tensor
            for name, tensor in weights.items()
            if not name.startswith("head_enc.")
        }

    def windows(self, rows: int) -> list[tuple[int, int]]:
        """Return windows of `max_length` rows at every quarter of it; the last ones are shorter."""
        length = self.config.max_length
        if self.config.long_videos == "shrink":
            return [(0, rows)]
        return [(first, min(length, rows - first)) for first in range(0, rows, length // 4)]

    def steps(self, rows: int) -> int:
        """Return the number of steps of a window, at most `max_length`."""
        return min(rows, self.config.max_length)

    def forward(self, features: Tensor, lengths: Tensor) -> VsgnOutputs:
        config = self.config
        if features.shape[-1] > config.max_length:
            raise BadValue(f"VSGN: {features.shape[-1]} rows are more than the {config.max_length} of a window")
        stitching = Stitching.of(lengths, config.max_length, config.gap, on=config.stitch)
        pyramid = self.xGPN(stitching.fill(features), stitching)
        logits, codes = self.head_dec(pyramid)
        boxes, finest = decode_boxes(codes, self.anchors), pyramid[0]
        curves = (self.head_actionness, self.head_startness, self.head_endness)
        points = anchor_points(config.sizes, config.anchors, FINEST, features.device)
        centre, stride = points.position, points.stride
        return VsgnOutputs(
            points=points,
            mask=torch.ones(logits.shape[:2], dtype=torch.bool, device=logits.device),
            logits=logits,
            offsets=torch.stack([(centre - boxes[..., 0]) / stride, (boxes[..., 1] - centre) / stride], -1),
            padded=points.sizes,
            boxes=boxes,
            adjusted=self.bd_adjust(finest, boxes, config.max_length),
            curves=torch.stack([curve.over(finest, config.max_length) for curve in curves], 1),
            stitching=stitching,
        )

    def place_actions(self, outputs: Outputs, actions: Actions) -> Actions:
        """Return actions in the window (row g covers g to g + 1) and those of copies, in whole steps."""
        assert isinstance(outputs, VsgnOutputs)
        return outputs.stitching.place(replace(actions, segments=actions.segments + self.row_centre))

    def assign(self, outputs: Outputs, actions: Actions, *, radius: float | None) -> Targets:
        """Return the targets of anchors: each takes the placed action that it overlaps most."""
        positive, action = match(
            self.anchors.expand(len(outputs.mask), -1, -1),
            actions,
            threshold=self.config.match_threshold,
            reproduce_bugs=self.config.reproduce_bugs,
        )
        target = _chosen(actions.segments, action)
        centre, stride = outputs.points.position, outputs.points.stride
        offsets = torch.stack([(centre - target[..., 0]) / stride, (target[..., 1] - centre) / stride], -1)
        labels = F.one_hot(actions.labels.gather(1, action), self.config.classes).to(offsets.dtype)
        return Targets(labels * positive[..., None], offsets, positive, action)

    def loss(self, outputs: Outputs, actions: Actions) -> Losses:
        """Compute the losses of classes, anchor boxes, refined boundaries and the three curves."""
        assert isinstance(outputs, VsgnOutputs)
        config = self.config
        actions = self.place_actions(outputs, actions)
        targets = self.assign(outputs, actions, radius=None)
        classification = self._classification(outputs, actions)
        regression = self._ends(outputs.boxes, targets.positive, targets.action, actions)
        moved, action = self._matched(outputs, actions, config.adjust_threshold)
        adjustment = self._ends(outputs.adjusted, moved, action, actions)
        target_curves = curve_targets(actions, config.max_length)
        curves = {
            name: self._curve(outputs.curves[:, i], target_curves[:, i] > 0.5, config.end_epsilon if i else 1e-5)
            for i, name in enumerate(("action", "start", "end"))
        }
        total = classification + regression + adjustment
        total = total + config.curve_weight * (curves["action"] + curves["start"] + curves["end"])
        return Losses(total, classification, regression, targets.positive.sum(), {"adjustment": adjustment, **curves})

    def _matched(self, outputs: VsgnOutputs, actions: Actions, threshold: float) -> tuple[Tensor, Tensor]:
        return match(outputs.boxes, actions, threshold=threshold, reproduce_bugs=self.config.reproduce_bugs)

    def _classification(self, outputs: VsgnOutputs, actions: Actions) -> Tensor:
        """Compute the class loss of boxes (not anchors): cross-entropy, or focal loss for one class."""
        positive, action = self._matched(outputs, actions, self.config.match_threshold)
        count = self.counted(positive.sum())
        if self.config.agnostic:
            each = focal(outputs.logits[..., 0], positive.float(), alpha=0.35)
            return each.sum() / count.clamp(min=1)
        label = torch.where(positive, actions.labels.gather(1, action) + 1, 0)
        each = F.cross_entropy(outputs.logits.transpose(1, 2), label, reduction="none")
        yes, no = mean_of_both(each, positive, (count, self.counted((~positive).sum())))
        return yes + no

    def _ends(self, boxes: Tensor, positive: Tensor, action: Tensor, actions: Actions) -> Tensor:
        each = generalised_iou(boxes, _chosen(actions.segments, action))
        return torch.where(positive, each, 0.0).sum() / self.counted(positive.sum()).clamp(min=1)

    def _curve(self, curve: Tensor, target: Tensor, epsilon: float) -> Tensor:
        each = -torch.where(target, curve + epsilon, 1 - curve + epsilon).log()
        yes, no = mean_of_both(each, target, (self.counted(target.sum()), self.counted((~target).sum())))
        return (yes + no) / 2

    def decode(self, outputs: Outputs) -> list[Candidates]:
        """Candidates of each window on the rows of its video, after suppression within each class and window."""
        assert isinstance(outputs, VsgnOutputs)
        config = self.config
        inside = outputs.adjusted.clamp(0, config.max_length - 1)
        boundary_score = heights(outputs.curves[:, 1], inside[..., 0]) * heights(outputs.curves[:, 2], inside[..., 1])
        likely = outputs.logits.sigmoid() if config.agnostic else outputs.logits.softmax(-1)[..., 1:]
        boxes = outputs.stitching.back(inside)
        if not config.reproduce_bugs:  # of what lies beside the video nothing is left, and it can match nothing
            likely = likely * (boxes[..., 1:] > boxes[..., :1])
        decoded = []
        for i in range(len(boxes)):
            box, label = (likely[i] > config.min_probability).nonzero(as_tuple=True)
            score = likely[i, box, label] * boundary_score[i, box]
            row = (boxes[i, box].cpu().numpy(), score.cpu().numpy(), label.cpu().numpy())
            if config.window_threshold is not None and len(box):
                row = hard_nms(*row, threshold=config.window_threshold, max_segments=len(box))
            decoded.append(Candidates(*row))
        return decoded

    def suppress(self, candidates: Candidates, *, seconds_a_step: float) -> Candidates:
        """Apply soft-NMS to the candidates of all classes together."""
        config, most = self.config, self.config.max_segments
        scores = candidates.scores
        if config.max_duration is not None:
            seconds = (candidates.segments[:, 1] - candidates.segments[:, 0]) * seconds_a_step
            scores = np.where(seconds < config.max_duration, scores, np.float32(0))
        positive = np.flatnonzero(scores > 0)
        if config.reproduce_bugs:
            positive, most = np.arange(len(scores)), min(most, len(scores) - 1)
        if not len(positive) or not most:
            return candidates.take(slice(0))
        return Candidates(
            *soft_nms(
                candidates.segments[positive],
                scores[positive],
                candidates.labels[positive],
                sigma=config.sigma,
                min_score=config.min_score,
                max_segments=most,
                multiclass=False,
            )
        )


def _chosen(segments: Tensor, action: Tensor) -> Tensor:
    """Return (B, N, 2) the segments (B, M, 2) of the actions (B, N)."""
    return segments.gather(1, action[..., None].expand(-1, -1, 2))


_ANET_I3D = VsgnConfig(
    classes=1, min_probability=0.0, sigma=0.85, max_segments=100, neighbours=10, anchors=(8.0, 20.0),
    long_videos="shrink", match_threshold=0.6, curve_weight=1.0, end_epsilon=1e-6, window_threshold=None,
    max_duration=None,
)  # fmt: skip
_PUPPETS = VsgnConfig(
    input_dim=128, dim=128, classes=16, max_length=640, levels=4, neighbours=8, gap=16, anchors=(1.5, 2.5, 4.0),
)  # fmt: skip

VARIANTS = {
    "vsgn": ("VSGN with settings of your own, from those for THUMOS14.", VsgnConfig()),
    "vsgn_thumos_tsn": ("VSGN for THUMOS14 on two-stream TSN features of every frame, as published.", VsgnConfig()),
    "vsgn_anet_i3d": (
        "VSGN for ActivityNet on two-stream features, about five a second, as published: class-agnostic.",
        _ANET_I3D,
    ),
    "vsgn_anet_tsp": (
        "VSGN for ActivityNet on TSP features; jostle's own, the published settings with another input.",
        replace(_ANET_I3D, input_dim=512),
    ),
    "vsgn_puppets": ("VSGN in a small size for short videos of puppets; jostle's own.", _PUPPETS),
}
detector_variants(VSGN, VARIANTS)
