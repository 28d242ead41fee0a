"""TemporalMaxer: a feature pyramid of max-pooling only.

Tang, Kim, Sohn: "TemporalMaxer: Maximize Temporal Context with only Max Pooling for Temporal Action Localization",
2023. Weights under the names of github.com/TuanTNG/TemporalMaxer load as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from torch import Tensor, nn

from jostle.errors import BadValue
from jostle.models.detection.blocks.assignment import Actions, Targets, assign_by_cost
from jostle.models.detection.blocks.convolution import ChannelNorm, SequenceGroupNorm
from jostle.models.detection.blocks.levels import Level, padded_length
from jostle.models.detection.blocks.pyramid import ClassTower, Embedding, Neck, OffsetTower, halve
from jostle.models.detection.config import PointConfig
from jostle.models.detection.detector import detector_variants
from jostle.models.detection.feature_detector import PointDetector
from jostle.models.detection.outputs import Outputs

GROUPS = 4  # of the group norm in the neck


@dataclass(frozen=True, kw_only=True)
class TemporalMaxerConfig(PointConfig):
    """Settings of the TemporalMaxer detector.

    Attributes:
        neck: `group` normalises four groups of channels over the whole padded video, without parameters (THUMOS14);
            `channel` is a LayerNorm that all levels share (MultiTHUMOS), which the files repeat for every level.
    """

    neck: Literal["group", "channel"] = "group"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.neck not in ("group", "channel"):
            raise BadValue(f"TemporalMaxer: neck is 'group' or 'channel', not {self.neck!r}")
        if self.neck == "group" and self.dim % GROUPS:
            raise BadValue(f"TemporalMaxer: dim {self.dim} does not divide into {GROUPS} groups")


class MaxPyramid(Embedding):
    """Embedding, and a max-pooling for each further level."""

    def forward(self, features: Tensor, levels: tuple[Level, ...]) -> list[Tensor]:
        pyramid = [self.embed(features, levels[0])]
        for level in levels[1:]:
            pyramid.append(halve(pyramid[-1]) * level.mask)
        return pyramid


class TemporalMaxer(PointDetector[TemporalMaxerConfig]):
    """TemporalMaxer; its group norms include the padding, whose values are known in advance."""

    def __init__(self, config: TemporalMaxerConfig) -> None:
        super().__init__(config)
        self.backbone = MaxPyramid(config)
        norm: nn.Module
        if config.neck == "group":
            norm = SequenceGroupNorm(GROUPS, config.dim, affine=False)
        else:
            norm = ChannelNorm(config.dim, config.eps)
        self.neck = Neck([norm] * config.levels)
        self.cls_head, self.reg_head = ClassTower(config, config.prior), OffsetTower(config, 2)

    def padded(self, length: int) -> int:
        """Return the length that the original pads to; OpenTAD's version does not pad at test."""
        if self.config.opentad and not self.training:
            return length
        return padded_length(length, at_least=self.config.max_length, multiple=2 ** (self.config.levels - 1))

    def assign(self, outputs: Outputs, actions: Actions, *, radius: float | None) -> Targets:
        """Assign targets by prediction cost: the closest of the actions around each point."""
        return assign_by_cost(
            outputs.points,
            actions,
            outputs.mask,
            radius=radius,
            logits=outputs.logits.float(),
            offsets=outputs.offsets.float(),
        )


_ANET_TSP = TemporalMaxerConfig(
    input_dim=512, dim=256, classes=1, max_length=192, label_smoothing=0.1, loss_weight=2.0, normaliser=200.0,
    resize=True, min_duration=0.001, sigma=0.75, max_segments=100, multiclass=False, vote_threshold=0.9,
)  # fmt: skip

VARIANTS = {
    "temporalmaxer": ("TemporalMaxer with settings of your own, from those for THUMOS14.", TemporalMaxerConfig()),
    "temporalmaxer_thumos_i3d": (
        "TemporalMaxer for THUMOS14 on two-stream I3D features, as published.",
        TemporalMaxerConfig(),
    ),
    "temporalmaxer_thumos_i3d_rgb": (
        "TemporalMaxer for THUMOS14 on the RGB half of I3D, as in the temporal robustness benchmark.",
        TemporalMaxerConfig(input_dim=1024),
    ),
    "temporalmaxer_thumos_videomae": (
        "TemporalMaxer for THUMOS14 on VideoMAEv2-g features; jostle's own, the I3D settings with another input.",
        TemporalMaxerConfig(input_dim=1408),
    ),
    "temporalmaxer_anet_tsp": (
        "TemporalMaxer for ActivityNet on TSP features; jostle's own, after ActionFormer's for that set.",
        _ANET_TSP,
    ),
    "temporalmaxer_anet_i3d": (
        "TemporalMaxer for ActivityNet on two-stream I3D features; jostle's own, after ActionFormer's for that set.",
        replace(_ANET_TSP, input_dim=2048),
    ),
    "temporalmaxer_multithumos_i3d": (
        "TemporalMaxer for MultiTHUMOS on RGB I3D features, as published.",
        TemporalMaxerConfig(
            input_dim=1024, classes=65, embedding_layers=3, neck="channel", top_candidates=3000, max_segments=300
        ),
    ),
    "temporalmaxer_puppets": (
        "TemporalMaxer in a small size for short videos of puppets; jostle's own.",
        TemporalMaxerConfig(input_dim=128, dim=128, classes=16, max_length=640, levels=5, normaliser=50.0),
    ),
}
detector_variants(TemporalMaxer, VARIANTS)
