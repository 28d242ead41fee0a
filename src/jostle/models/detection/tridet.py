"""TriDet: a convolutional pyramid, with boundaries as expectations over bins.

Shi, Zhong, Cao, Ma, Li, Tao: "TriDet: Temporal Action Detection with Relative Boundary Modeling", CVPR 2023. Weights
under the names of github.com/dingfengshi/TriDet load as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jostle.errors import BadValue
from jostle.models.detection.blocks.assignment import Actions, distance_iou, focal, iou
from jostle.models.detection.blocks.attention import GROUPS, SGPBlock, reach_of
from jostle.models.detection.blocks.convolution import ChannelNorm
from jostle.models.detection.blocks.levels import Level, Row, padded_length, reaching_levels
from jostle.models.detection.blocks.pyramid import KERNEL, ClassTower, Embedding, Neck, OffsetTower, Points
from jostle.models.detection.config import PointConfig
from jostle.models.detection.detector import detector_variants
from jostle.models.detection.feature_detector import PointDetector
from jostle.models.detection.outputs import Losses, Outputs

STEM = 2  # blocks before the first halving; their window is always 1


@dataclass(frozen=True, kw_only=True)
class TriDetConfig(PointConfig):
    """Settings of the TriDet detector.

    Attributes:
        sgp_window: width of the window branch of the halving blocks.
        sgp_k: the wide convolution beside it has (window + 1) k steps, made odd.
        mlp_dim: width inside the feed-forward part.
        bins: an end lies at most this many strides from its point.
        iou_power: the classification loss of a positive is weighted by its IoU to this power.
        positions: add a table of sines after the embedding.
        depthwise_spread: standard deviation of the depthwise weights at the start.
        input_noise: standard deviation of what is added to the features in training.
        drop_path: rate at which residual branches are dropped in training; 0 also removes their learned scales.
    """

    max_segments: int = 2000
    sgp_window: int = 1
    sgp_k: float = 5.0
    mlp_dim: int = 768
    bins: int = 16
    iou_power: float = 0.2
    positions: bool = False
    depthwise_spread: float = 0.0
    input_noise: float = 5e-4
    drop_path: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dim % GROUPS:
            raise BadValue(f"TriDet: dim {self.dim} does not divide into the {GROUPS} groups of its norm")
        if self.sgp_window < 1 or self.sgp_window % 2 == 0:
            raise BadValue(f"TriDet: sgp_window is an odd number of steps, not {self.sgp_window}")
        if self.bins < 1:
            raise BadValue(f"TriDet: bins must be at least 1, not {self.bins}")

    @property
    def reach(self) -> tuple[int, ...]:
        """Number of columns that the blocks of each level cover to either side."""
        return (STEM * reach_of(1, self.sgp_k),) + (reach_of(self.sgp_window, self.sgp_k),) * (self.levels - 1)


@dataclass(frozen=True)
class TridentOutputs(Outputs):
    """Raw outputs of the Trident head."""

    starts: Tensor  # (B, K, S) logits that a class starts at a column; every level has `bins` zeros before and after it
    ends: Tensor  # (B, K, S) logits that it ends there
    places: Tensor  # (N,) where the reach of each point begins in these rows: `bins` columns before its own


class SGPPyramid(Embedding):
    """Embedding, SGP blocks on the finest level, and one halving block for each further level."""

    def __init__(self, config: TriDetConfig) -> None:
        super().__init__(config, table=config.max_length if config.positions else 0)
        self.noise = config.input_noise

        def block(window: int, *, halves: bool, drop: float) -> SGPBlock:
            return SGPBlock(
                config.dim,
                window=window,
                k=config.sgp_k,
                mlp_dim=config.mlp_dim,
                halves=halves,
                spread=config.depthwise_spread,
                drop=drop,
            )

        self.stem = nn.ModuleList(block(1, halves=False, drop=0.0) for _ in range(STEM))
        self.branch = nn.ModuleList(
            block(config.sgp_window, halves=True, drop=config.drop_path) for _ in range(config.levels - 1)
        )

    def forward(self, features: Tensor, levels: tuple[Level, ...]) -> list[Tensor]:
        if self.training and self.noise > 0:
            # The padding is noisy too, as far as a valid column can see it.
            features = F.pad(features, (0, min(1, levels[0].columns - features.shape[-1])))
            features = features + self.noise * torch.randn_like(features)
        x = self.embed(features, levels[0])
        for block in self.stem:
            x = block(x, levels[0])
        pyramid = [x]
        for block, level in zip(self.branch, levels[1:], strict=True):
            pyramid.append(block(pyramid[-1], level))
        return pyramid


class TriDet(PointDetector[TriDetConfig]):
    """TriDet; its means include the padding, of which only the part that is not constant is computed."""

    cuts_at_edges: ClassVar[bool] = True

    def __init__(self, config: TriDetConfig) -> None:
        super().__init__(config)
        prior = 0.0 if config.opentad else config.prior
        self.backbone = SGPPyramid(config)
        self.neck = Neck([ChannelNorm(config.dim, config.eps) for _ in range(config.levels)])
        self.cls_head = ClassTower(config, config.prior)
        self.start_head, self.end_head = ClassTower(config, prior), ClassTower(config, prior)
        self.reg_head = OffsetTower(config, 2 * (config.bins + 1))

    def padded(self, length: int) -> int:
        """Return the length that the original pads to."""
        multiple = 2 ** (self.config.levels - 1) * self.config.sgp_window
        return padded_length(length, at_least=self.config.max_length, multiple=multiple)

    def forward(self, features: Tensor, lengths: Tensor) -> TridentOutputs:
        config, length = self.config, features.shape[-1]
        beyond = config.bins if config.opentad else 1  # OpenTAD's ends are not masked, and are read `bins` ahead
        levels = reaching_levels(lengths, length, self.padded(length), reach=config.reach, beyond=beyond)
        pyramid = self.neck(self.backbone(features, levels), levels)
        row = Row.of(levels, gap=KERNEL // 2, beyond=beyond)
        x = row.join(pyramid)  # (B, D, S)
        frozen = x.detach()  # the boundary towers do not teach the pyramid
        sizes = [level.points for level in levels]
        centres = row.points(self.reg_head(x, row))  # (B, N, 2 (bins + 1))
        return TridentOutputs(
            points=Points.of(sizes, config.level_ranges, features.device),
            mask=row.points(row.valid)[..., 0],  # (B, N)
            logits=row.points(self.cls_head(x, row)),  # (B, N, K)
            offsets=centres.reshape(*centres.shape[:2], 2, config.bins + 1),  # (B, N, 2, bins + 1)
            padded=tuple(level.padded for level in levels),
            starts=self._spaced(self.start_head(frozen, row), row),
            ends=self._spaced(self.end_head(frozen, row), row),
            places=self._places(sizes, row, features.device),
        )

    def _spaced(self, x: Tensor, row: Row) -> Tensor:
        """Return (B, K, S) the levels of a row apart, with zeros as far as a point may look past either end."""
        pieces = [x[..., a : a + width] for a, width in zip(row.starts, row.widths, strict=True)]
        return torch.cat([F.pad(piece, (self.config.bins, self.config.bins)) for piece in pieces], -1)

    def _places(self, sizes: list[int], row: Row, device: torch.device) -> Tensor:
        """Return (N,) where in the spaced row the column `bins` before each point is."""
        places, start = [], 0
        for size, width in zip(sizes, row.widths, strict=True):
            places.append(torch.arange(start, start + size, device=device))
            start += width + 2 * self.config.bins
        return torch.cat(places)

    def offsets_at(self, outputs: Outputs, video: Tensor, point: Tensor, label: Tensor) -> Tensor:
        """Return (n, 2) expected distances over bins: boundary logits around, plus the point's own bins."""
        assert isinstance(outputs, TridentOutputs)
        bins = self.config.bins
        steps = torch.arange(bins + 1, device=video.device)
        columns = outputs.places[point][:, None] + steps  # (n, bins + 1)
        video, label = video[:, None], label[:, None]
        centre = outputs.offsets[video[:, 0], point].float()  # (n, 2, bins + 1)
        left = (outputs.starts[video, label, columns].float() + centre[:, 0]).softmax(-1)
        right = (outputs.ends[video, label, columns + bins].float() + centre[:, 1]).softmax(-1)
        distance = steps.to(left.dtype)
        return torch.stack([left @ (bins - distance), right @ distance], -1)

    def every_offset(self, outputs: Outputs) -> Tensor:
        """Return (B, N, K, 2) the distances of every class."""
        shape = outputs.logits.shape
        triples = torch.ones(shape, dtype=torch.bool, device=outputs.logits.device).nonzero(as_tuple=True)
        return self.offsets_at(outputs, *triples).view(*shape, 2)

    def loss(self, outputs: Outputs, actions: Actions) -> Losses:
        """Compute the base losses with every (positive, class) pair regressed, focal loss weighted by IoU^power.

        The gradient of the weight is kept, as in the original. An IoU of 0 gives the weight 0 without a gradient, where
        the original has an infinite one.
        """
        targets = self.assign(outputs, actions, radius=self.config.centre_radius)
        normaliser = self.normaliser(targets.positive.sum())
        each = focal(outputs.logits.float(), self.smoothed(targets.classes)) * outputs.mask[..., None]
        video, point, label = ((targets.classes > 0) & targets.positive[..., None]).nonzero(as_tuple=True)
        offsets, target = self.offsets_at(outputs, video, point, label), targets.offsets[video, point]
        overlap = iou(offsets, target)
        weight = torch.where(overlap > 0, overlap.clamp(min=1e-12) ** self.config.iou_power, 0.0)
        classification = each.sum() + (each[video, point, label] * (weight - 1)).sum()
        regression = distance_iou(offsets, target).sum()
        return self.losses(classification / normaliser, regression / normaliser, targets)


_ANET_TSP = TriDetConfig(
    input_dim=512, dim=256, head_dim=512, classes=1, max_length=768, sgp_window=15, sgp_k=1.3, mlp_dim=2048, bins=12,
    iou_power=1.0, positions=True, depthwise_spread=0.2, input_noise=0.5, label_smoothing=0.1, normaliser=400.0,
    min_duration=0.1, sigma=0.7, max_segments=200, multiclass=False, vote_threshold=0.95, vote_weight="score",
)  # fmt: skip
_PUPPETS = TriDetConfig(
    input_dim=128, dim=128, classes=16, max_length=640, levels=5, mlp_dim=192, max_segments=200, normaliser=50.0,
)  # fmt: skip

VARIANTS = {
    "tridet": ("TriDet with settings of your own, from those for THUMOS14.", TriDetConfig()),
    "tridet_thumos_i3d": ("TriDet for THUMOS14 on two-stream I3D features, as published.", TriDetConfig()),
    "tridet_thumos_i3d_rgb": (
        "TriDet for THUMOS14 on the RGB half of I3D, as in the temporal robustness benchmark.",
        TriDetConfig(input_dim=1024),
    ),
    "tridet_thumos_videomae": (
        "TriDet for THUMOS14 on VideoMAEv2-g features, as in the temporal robustness benchmark.",
        TriDetConfig(input_dim=1408),
    ),
    "tridet_anet_tsp": (
        "TriDet for ActivityNet on TSP features, as published: class-agnostic, padded to 768 steps.",
        _ANET_TSP,
    ),
    "tridet_anet_i3d": (
        "TriDet for ActivityNet on two-stream I3D features; jostle's own, the TSP settings with another input.",
        replace(_ANET_TSP, input_dim=2048),
    ),
    "tridet_multithumos_i3d": (
        "TriDet for MultiTHUMOS on RGB I3D features; jostle's own, after TemporalMaxer's for that set.",
        TriDetConfig(input_dim=1024, classes=65, top_candidates=3000),
    ),
    "tridet_puppets": ("TriDet in a small size for short videos of puppets; jostle's own.", _PUPPETS),
}
detector_variants(TriDet, VARIANTS)
