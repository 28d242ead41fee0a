"""AFSD: anchor-free coarse segments from frames, refined by salient boundary features.

Lin, Xu, Luo, Wang, Tai, Wang, Li, Huang, Fu: "Learning Salient Boundary Feature for Anchor-free Temporal Action
Localization", CVPR 2021. Weights under the names of github.com/TencentYoutuResearch/ActionDetection-AFSD load as they
are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from jostle.core.types.segments import Segments
from jostle.errors import BadValue
from jostle.models.detection.blocks.afsd import (
    Form,
    Refinement,
    answers,
    average_losses,
    end_maps,
    frame_regions,
    level_regions,
    quality_loss,
    side_loss,
    softmax_focal,
    triplet_loss,
)
from jostle.models.detection.blocks.assignment import Actions, iou
from jostle.models.detection.blocks.boundaries import pool_levels
from jostle.models.detection.blocks.convolution import GROUPS, LearnedScaleVector, SameConv, WholeFrame, normed, same
from jostle.models.detection.blocks.reach import Reach
from jostle.models.detection.blocks.trunks import I3D_STAGES, Trunk
from jostle.models.detection.detector import detector_variants, need_above_zero
from jostle.models.detection.frame_detector import FrameConfig, FrameDetector, join_candidates
from jostle.models.detection.nms import soft_nms, soft_nms_until_one
from jostle.models.detection.outputs import Candidates, Losses, likely_candidates

ASIDE = 0.1  # weight of what is learned on the finest level beside the frames


@dataclass(frozen=True, kw_only=True)
class AfsdConfig(FrameConfig):
    """Settings of AFSD; the defaults are those published for THUMOS14.

    Attributes:
        form: the program's form for `thumos14` or `activitynet`: which stage the finest level is made of, the unit of
            distances, which level answers for what, how losses are shared out.
        loss_weight: of the two losses of ends.
        backbone_width: share of I3D's channels.
        reproduce_bugs: repeat what the released program does wrong: the gradient of boundary pooling, the place of
            regions in ActivityNet's lesson without labels, and the loss of the last candidate of a class.
    """

    max_length: int = 256
    min_probability: float = 0.01
    max_segments: int = 5000
    video_classes: int = 1
    form: Form = "thumos14"
    loss_weight: float = 10.0
    backbone_width: float = 1.0
    reproduce_bugs: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self._need_one_of("form", "thumos14", "activitynet")
        if self.dim % GROUPS:
            raise BadValue(f"AFSD: dim {self.dim} does not divide into the {GROUPS} groups of its norms")
        if self.levels < 2 or (self.form == "activitynet" and self.levels > 6):
            raise BadValue(f"AFSD: levels are from 2, for ActivityNet to 6, not {self.levels}")
        if self.max_length % (self.finest * 2 ** (self.levels - 1)):
            raise BadValue(
                f"AFSD: {self.levels} levels need a max_length that is a multiple of "
                f"{self.finest * 2 ** (self.levels - 1)}, not {self.max_length}"
            )
        if self.crop % 32:
            raise BadValue(f"AFSD: crop is a multiple of 32, not {self.crop}")
        self._need_shares("AFSD", "backbone_width")

    @property
    def finest(self) -> int:
        """Number of frames per step of the finest level."""
        return 4 if self.form == "thumos14" else 8

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of steps of each level."""
        return tuple(self.max_length // self.finest >> level for level in range(self.levels))


@dataclass(frozen=True)
class AfsdOutputs:
    """Raw outputs at the points of all levels, one level after the other."""

    offsets: Tensor  # (B, N, 2) distances to start and end, in frames
    logits: Tensor  # (B, N, K + 1) of the coarse segments, background first
    shifts: Tensor  # (B, N, 2) how far to move each end, in half lengths
    refined_logits: Tensor  # (B, N, K + 1) of the refined segments
    quality: Tensor  # (B, N) logit of how well the refined segment fits
    frame_sides: Tensor  # (B, D, T) what starts and ends are pooled from, frame by frame: half of the channels each
    offset_sides: Tensor  # (B, 2 D, t) the same of the finest level, for distances
    logit_sides: Tensor  # (B, 2 D, t) and for classes

    @property
    def refined(self) -> Tensor:
        """Refined (B, N, 2) distances, after the shift."""
        return self.offsets + 0.5 * self.offsets.sum(-1, keepdim=True) * self.shifts

    def averaged(self, other: AfsdOutputs) -> AfsdOutputs:
        """Return the mean of the outputs of two networks; training-only outputs stay the first one's."""
        names = ("offsets", "logits", "shifts", "refined_logits", "quality")
        return replace(self, **{name: (getattr(self, name) + getattr(other, name)) / 2 for name in names})


class CoarsePyramid(nn.Module):
    """Feature pyramid with coarse predictions at its points, and their refinement."""

    def __init__(self, config: AfsdConfig) -> None:
        super().__init__()
        self.config = config
        dim, outputs = config.dim, config.classes + 1
        fine, coarse = Trunk.channels(config.backbone_width)
        first: list[nn.Module] = [normed(WholeFrame(coarse, dim, config.crop // 32), dim)]
        if config.form == "thumos14":
            first.insert(0, normed(WholeFrame(fine, dim, config.crop // 16), dim))
        self.pyramids = nn.ModuleList([*first, *(same(dim, dim, 3, 2) for _ in range(config.levels - len(first)))])
        self.loc_heads = nn.ModuleList(LearnedScaleVector() for _ in range(config.levels))
        self.loc_tower = nn.Sequential(same(dim, dim, 3), same(dim, dim, 3))
        self.conf_tower = nn.Sequential(same(dim, dim, 3), same(dim, dim, 3))
        self.loc_head = SameConv(dim, 2, 3)
        self.conf_head = SameConv(dim, outputs, 3)
        self.loc_proposal_branch = Refinement(dim)
        self.conf_proposal_branch = Refinement(dim)
        self.prop_loc_head = SameConv(dim, 2, 1)
        self.prop_conf_head = SameConv(dim, outputs, 1)
        self.center_head = SameConv(dim, 1, 3)
        self.deconv = nn.Sequential(*same(dim, dim, 3), *same(dim, dim, 3), *same(dim, dim, 1))
        for name, module in self.named_modules():
            if isinstance(module, nn.Conv1d | nn.Conv3d):
                assert module.bias is not None
                nn.init.zeros_(module.bias)
                if config.form == "activitynet" and not name.startswith(("pyramids.", "deconv.")):
                    nn.init.normal_(module.weight, std=0.01)
                else:
                    nn.init.xavier_uniform_(module.weight)

    def levels_of(self, stages: list[Tensor]) -> list[Tensor]:
        """Return (B, D, t) of each level."""
        layers = list(self.pyramids)
        levels = [layers[0](stages[0])] if self.config.form == "thumos14" else []
        levels.append(layers[len(levels)](stages[1]))
        for layer in layers[len(levels) :]:
            levels.append(layer(levels[-1]))
        if self.config.form == "thumos14":
            levels[0] = levels[0] + levels[1].repeat_interleave(2, -1)
        return levels

    def forward(self, stages: list[Tensor], points: Tensor) -> AfsdOutputs:
        config = self.config
        pyramid = self.levels_of(stages)
        sides = self.deconv(pyramid[0].repeat_interleave(config.finest, -1))  # (B, D, T)
        towers = [(self.loc_tower(x), self.conf_tower(x)) for x in pyramid]
        offsets = []
        for level, (x, _) in enumerate(towers):
            unit = 4.0 * 2**level if config.form == "activitynet" else 1.0
            offsets.append(self.loc_heads[level](self.loc_head(x)).float().exp().transpose(1, 2) * unit)
        every = torch.cat(offsets, 1)
        segments = torch.stack([points - every[..., 0], points + every[..., 1]], -1)
        faults = config.reproduce_bugs
        around = pool_levels(sides, torch.split(frame_regions(segments), list(config.sizes), 1), reproduce_bugs=faults)
        shifts, quality, refined, finest = [], [], [], []
        for level, (loc, conf) in enumerate(towers):
            regions = level_regions(offsets[level], config.sizes[level] / config.max_length)
            u, loc_sides = self.loc_proposal_branch(loc, around[level], regions, reproduce_bugs=faults)
            v, conf_sides = self.conf_proposal_branch(conf, around[level], regions, reproduce_bugs=faults)
            shifts.append(self.prop_loc_head(u))
            quality.append(self.center_head(u))
            refined.append(self.prop_conf_head(v))
            finest.append((loc_sides, conf_sides))
        return AfsdOutputs(
            offsets=every,
            logits=_joined([self.conf_head(conf) for _, conf in towers]),
            shifts=_joined(shifts),
            refined_logits=_joined(refined),
            quality=_joined(quality)[..., 0],
            frame_sides=sides,
            offset_sides=finest[0][0],
            logit_sides=finest[0][1],
        )


def _joined(levels: list[Tensor]) -> Tensor:
    """Return (B, N, C) from (B, C, t) of each level."""
    return torch.cat(levels, -1).transpose(1, 2).float()


class AFSD(FrameDetector[AfsdConfig]):
    """AFSD detector, for clips of a fixed length, trained end to end from pixels."""

    layered_at_once: ClassVar[Mapping[str, int]] = {"cpu": 8}
    points: Tensor
    level: Tensor

    def __init__(self, config: AfsdConfig) -> None:
        super().__init__(config)
        self.coarse_pyramid_detection = CoarsePyramid(config)
        self.backbone = Trunk(config.input_dim, config.backbone_width, fixed_norms=config.fixed_norms)
        stride = [config.finest * 2.0**level for level in range(config.levels)]
        points = [(torch.arange(size) + 0.5) * step for size, step in zip(config.sizes, stride, strict=True)]
        level = [torch.full((size,), number) for number, size in enumerate(config.sizes)]
        self.register_buffer("points", torch.cat(points), persistent=False)  # (N,) in frames
        self.register_buffer("level", torch.cat(level), persistent=False)

    def join(self, encodings: Tensor) -> AfsdOutputs:
        """Return the raw outputs of clips (B, T, channels, crop, crop), by the library's 3D convolutions."""
        clips = encodings.transpose(1, 2)
        return self.coarse_pyramid_detection(self.backbone(clips), self.points)  # type: ignore[no-any-return]

    @property
    def layers(self) -> Sequence[Reach]:
        """Layers of I3D, each of which mixes a few neighbouring steps; none on a GPU, whose 3D kernels are fast."""
        return [] if self.device.type == "cuda" else [layer.reach for layer in self.backbone.steps]

    @property
    def finished(self) -> Sequence[int]:
        """The two stages of I3D that the pyramid is made of; without layers, the pictures."""
        if not self.layers:
            return super().finished
        return [1 + number for number, layer in enumerate(self.backbone.steps) if layer.stage in I3D_STAGES]

    def layer(self, number: int, near: Tensor) -> Tensor:
        """Return (N, c, h, w) of (N, kernel, C, H, W)."""
        return self.backbone.steps[number](near)

    def finish(self, rows: Sequence[Tensor]) -> AfsdOutputs:
        """Return the raw outputs of clips from both stages of I3D, (B, T / 4, ...) and (B, T / 8, ...)."""
        if not self.layers:
            return self.join(*rows)
        stages = [steps.transpose(1, 2) for steps in rows]
        return self.coarse_pyramid_detection(stages, self.points)  # type: ignore[no-any-return]

    def loss(self, outputs: AfsdOutputs, actions: Actions) -> Losses:
        """Compute the losses of coarse and refined segments, quality, and start and end curves.

        Args:
            actions: in frames of the clip.
        """
        form, weight = self.config.form, self.config.loss_weight
        targets = answers(self.points, self.level, outputs.offsets, actions, form)
        coarse, fine = targets.labels > 0, targets.refined > 0
        everywhere = torch.ones_like(coarse)
        half = 0.5 * outputs.offsets.sum(-1, keepdim=True).detach()
        apart = outputs.shifts - (targets.offsets - outputs.offsets.detach()) / half
        size = apart.abs().sum(-1)
        if form == "activitynet":
            size = torch.where(apart.abs() < 1, 0.5 * apart.square(), apart.abs() - 0.5).sum(-1)
        fit = quality_loss(outputs.quality, iou(outputs.refined, targets.offsets))
        regression = average_losses(1 - iou(outputs.offsets, targets.offsets), coarse, coarse, form)
        classification = average_losses(softmax_focal(outputs.logits, targets.labels), everywhere, coarse, form)
        others = {
            "refined_regression": average_losses(size, fine, fine, form),
            "refined_classification": average_losses(
                softmax_focal(outputs.refined_logits, targets.refined), everywhere, fine, form
            ),
            "quality": average_losses(fit, coarse, coarse, form),
        }
        maps = end_maps(actions, self.config.max_length)
        others["start"], others["end"] = side_loss(outputs.frame_sides, maps)
        for sides in (outputs.offset_sides, outputs.logit_sides):
            start, end = side_loss(sides, maps[..., :: self.config.finest])
            others["start"], others["end"] = others["start"] + ASIDE * start, others["end"] + ASIDE * end
        total = classification + weight * (regression + others["refined_regression"])
        total = total + others["refined_classification"] + others["quality"] + others["start"] + others["end"]
        return Losses(total, classification, regression, coarse.sum(), others)

    def triplet(self, outputs: AfsdOutputs, segments: Tensor) -> Tensor:
        """Compute the self-supervised triplet loss of clips with background moved into an action.

        Args:
            segments: (B, 3, 2) of `jostle.models.detection.blocks.afsd.Cut`, in frames.
        """
        faults = self.config.reproduce_bugs
        loss = triplet_loss(outputs.frame_sides, segments, reproduce_bugs=faults)
        for sides in (outputs.offset_sides, outputs.logit_sides):
            stride = 4 if faults else self.config.finest  # ActivityNet's program divides by 4 too, where steps are of 8
            loss = loss + ASIDE * triplet_loss(sides, segments, stride=stride, reproduce_bugs=faults)
        return loss

    def output_segments(self, outputs: AfsdOutputs) -> Tensor:
        """Return (B, N, 2) the refined segments of the points, in frames of the clip."""
        refined = outputs.refined
        return torch.stack([self.points - refined[..., 0], self.points + refined[..., 1]], -1)

    def match_actions(self, outputs: AfsdOutputs, actions: Actions) -> tuple[Tensor, Tensor]:
        """Return (B, N) which points answer for an action, and (B, N) which row of the actions that is."""
        targets = answers(self.points, self.level, outputs.offsets, actions, self.config.form)
        return targets.labels > 0, targets.action

    def decode(self, outputs: AfsdOutputs, flow: AfsdOutputs | None = None) -> list[Candidates]:
        """Decode the refined segments of each clip, in frames, before suppression.

        Args:
            flow: what a second network says of the flow of the same clips. Its answers are averaged in; on ActivityNet
                segments are, by the geometric mean of their ends.
        """
        config = self.config
        if flow is None or config.form == "thumos14":
            outputs = outputs if flow is None else outputs.averaged(flow)
            segments = self.output_segments(outputs).clamp(0, config.max_length)
        else:
            one, other = (self.output_segments(part).clamp(0, config.max_length) for part in (outputs, flow))
            segments, outputs = (one * other).sqrt(), outputs.averaged(flow)
        likely = 0.5 * (outputs.logits.softmax(-1) + outputs.refined_logits.softmax(-1))[..., 1:]
        likely = likely * outputs.quality.sigmoid()[..., None]
        return likely_candidates(segments, likely, config.min_probability)

    def detect(
        self,
        frames: npt.ArrayLike,
        *,
        fps: float,
        duration: float,
        video_scores: npt.ArrayLike | None = None,
        flow: npt.ArrayLike | None = None,
        flow_detector: AFSD | None = None,
    ) -> Segments:
        """Detect the segments of one video, in seconds, best first.

        Args:
            frames: (T, H, W, 3) uint8, all frames of the video.
            fps: how many there are a second.
            duration: of the video, in seconds.
            video_scores: (classes,) scores of the whole video by a classifier, for class-agnostic detectors.
            flow: (T, H, W, 2) uint8, the flow at each frame.
            flow_detector: a second network, with `input_dim=2`, that looks at it.
        """
        if flow is None and flow_detector is None:
            return super().detect(frames, fps=fps, duration=duration, video_scores=video_scores)
        if flow is None or flow_detector is None:
            raise BadValue("AFSD: flow and flow_detector go together")
        need_above_zero(fps=fps, duration=duration)
        video, other = np.asarray(frames), np.asarray(flow)
        if len(video) != len(other):
            raise BadValue(f"AFSD: {len(video)} frames have the flow of {len(other)}")
        indices, rate = self.sample_indices(len(video), float(fps))
        both = zip(self.outputs_of(video[indices]), flow_detector.outputs_of(other[indices]), strict=True)
        candidates = join_candidates([(first, self.decode_finite(one, two)[0]) for (first, one), (_, two) in both])
        return self.to_seconds(candidates, rate, duration, video_scores)

    def suppress(self, candidates: Candidates) -> Candidates:
        """Apply soft-NMS within each class."""
        config = self.config
        suppress = soft_nms_until_one if config.reproduce_bugs else soft_nms
        ways: dict[str, Any] = {"sigma": config.sigma, "min_score": config.min_score}
        return Candidates(*suppress(*candidates.columns, max_segments=config.max_segments, **ways))


_PUPPETS = AfsdConfig(
    dim=128, classes=16, max_length=128, fps=8.0, levels=5, frame_size=112, crop=96, clip_stride=64,
    backbone_width=0.25, fixed_norms=False,
)  # fmt: skip
_ANET = AfsdConfig(
    classes=1, max_length=768, fps=None, clip_stride=768, form="activitynet", loss_weight=1.0, min_probability=1e-9,
    sigma=0.85, min_score=1e-9,
)  # fmt: skip

VARIANTS = {
    "afsd": ("AFSD with settings of your own, from those for THUMOS14.", AfsdConfig()),
    "afsd_thumos": ("AFSD for THUMOS14, as published: RGB frames, ten a second, in clips of 256.", AfsdConfig()),
    "afsd_anet": ("AFSD for ActivityNet, as published: RGB frames, a video in a clip of 768; class-agnostic.", _ANET),
    "afsd_puppets": ("AFSD in a small size for videos of puppets; jostle's own.", _PUPPETS),
}
detector_variants(AFSD, VARIANTS)
