"""ActionFormer: local self-attention over a feature pyramid, one stage, no anchors.

Zhang, Wu, Li: "ActionFormer: Localizing Moments of Actions with Transformers", ECCV 2022. Weights under the names of
github.com/happyharrycn/actionformer_release load as they are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor, nn

from jostle.errors import BadValue
from jostle.models.detection.blocks.attention import ConvAttention
from jostle.models.detection.blocks.convolution import ChannelNorm, pointwise
from jostle.models.detection.blocks.levels import Level, padded_length
from jostle.models.detection.blocks.pyramid import ClassTower, Embedding, Neck, OffsetTower, drop_path, halve
from jostle.models.detection.config import PointConfig
from jostle.models.detection.detector import detector_variants
from jostle.models.detection.feature_detector import PointDetector

STEM = 2  # blocks before the first halving


@dataclass(frozen=True, kw_only=True)
class ActionFormerConfig(PointConfig):
    """Settings of the ActionFormer detector.

    Attributes:
        window: odd number of keys that a query sees, of all levels or of each; 1 or less means all keys.
        heads: of attention.
        mlp_dim: width inside the feed-forward part; None for 4 `dim`.
        positions: add a table of sines after the embedding.
        drop_path: rate at which residual branches are dropped in training; 0 also removes their learned scales.
        dropout: in attention and feed-forward.
    """

    window: int | tuple[int, ...] = 19
    heads: int = 4
    mlp_dim: int | None = None
    positions: bool = False
    drop_path: float = 0.1
    dropout: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.windows) != self.levels:
            raise BadValue(f"ActionFormer: {len(self.windows)} windows were given for {self.levels} levels")
        if any(window > 1 and window % 2 == 0 for window in self.windows):
            raise BadValue(f"ActionFormer: a window is an odd number of steps, not {self.window}")
        if self.dim % self.heads:
            raise BadValue(f"ActionFormer: dim {self.dim} does not divide into {self.heads} heads")

    @property
    def windows(self) -> tuple[int, ...]:
        """Attention window of each level."""
        return (self.window,) * self.levels if isinstance(self.window, int) else tuple(self.window)

    @property
    def multiple(self) -> int:
        """Steps that a sequence longer than `max_length` is padded to a multiple of."""
        return max((w // 2 * 2 if w > 1 else 1) << level for level, w in enumerate(self.windows))


class TransformerBlock(nn.Module):
    """Pre-norm attention and feed-forward; with `stride` 2 the block halves time, by pooling on the residual path."""

    def __init__(self, config: ActionFormerConfig, *, stride: int, window: int) -> None:
        super().__init__()
        dim, inner = config.dim, config.mlp_dim or 4 * config.dim
        self.stride = stride
        self.ln1 = ChannelNorm(dim)
        self.ln2 = ChannelNorm(dim)
        self.attn = ConvAttention(dim, config.heads, stride=stride, window=window, dropout=config.dropout)
        self.mlp = nn.Sequential(
            pointwise(dim, inner),
            nn.GELU(),
            nn.Dropout(config.dropout),
            pointwise(inner, dim),
            nn.Dropout(config.dropout),
        )
        self.drop_path_attn = drop_path(dim, config.drop_path)
        self.drop_path_mlp = drop_path(dim, config.drop_path)

    def forward(self, x: Tensor, level: Level) -> Tensor:
        attended = self.drop_path_attn(self.attn(self.ln1(x), level))
        skipped = halve(x) if self.stride > 1 else x
        x = skipped * level.mask + attended  # (B, D, columns)
        output: Tensor = x + self.drop_path_mlp(self.mlp(self.ln2(x)) * level.mask)
        return output


class TransformerPyramid(Embedding):
    """Embedding, blocks on the finest level, and one halving block for each further level."""

    def __init__(self, config: ActionFormerConfig) -> None:
        super().__init__(config, table=config.max_length if config.positions else 0)
        first, *rest = config.windows
        self.stem = nn.ModuleList(TransformerBlock(config, stride=1, window=first) for _ in range(STEM))
        self.branch = nn.ModuleList(TransformerBlock(config, stride=2, window=window) for window in rest)

    def forward(self, features: Tensor, levels: tuple[Level, ...]) -> list[Tensor]:
        x = self.embed(features, levels[0])
        for block in self.stem:
            x = block(x, levels[0])
        pyramid = [x]
        for block, level in zip(self.branch, levels[1:], strict=True):
            pyramid.append(block(pyramid[-1], level))
        return pyramid


class ActionFormer(PointDetector[ActionFormerConfig]):
    """ActionFormer; outputs at valid points do not depend on padding, so little padding is computed."""

    def __init__(self, config: ActionFormerConfig) -> None:
        super().__init__(config)
        self.backbone = TransformerPyramid(config)
        self.neck = Neck([ChannelNorm(config.dim, config.eps) for _ in range(config.levels)])
        self.cls_head, self.reg_head = ClassTower(config, config.prior), OffsetTower(config, 2)

    def padded(self, length: int) -> int:
        """Return the length that the original pads to."""
        return padded_length(length, at_least=self.config.max_length, multiple=self.config.multiple)


_ANET_TSP = ActionFormerConfig(
    input_dim=512, dim=256, classes=1, max_length=192, window=(7, 7, 7, 7, 7, -1), positions=True, label_smoothing=0.1,
    loss_weight=2.0, normaliser=200.0, resize=True, min_duration=0.001, sigma=0.75, max_segments=100, multiclass=False,
    vote_threshold=0.9,
)  # fmt: skip

VARIANTS = {
    "actionformer": ("ActionFormer with settings of your own, from those for THUMOS14.", ActionFormerConfig()),
    "actionformer_thumos_i3d": (
        "ActionFormer for THUMOS14 on two-stream I3D features, as published.",
        ActionFormerConfig(),
    ),
    "actionformer_thumos_i3d_rgb": (
        "ActionFormer for THUMOS14 on the RGB half of I3D, as in the temporal robustness benchmark.",
        ActionFormerConfig(input_dim=1024),
    ),
    "actionformer_thumos_videomae": (
        "ActionFormer for THUMOS14 on VideoMAEv2-g features, as in the temporal robustness benchmark.",
        ActionFormerConfig(input_dim=1408),
    ),
    "actionformer_anet_tsp": (
        "ActionFormer for ActivityNet on TSP features, as published: class-agnostic, videos stretched to 192 steps.",
        _ANET_TSP,
    ),
    "actionformer_anet_i3d": (
        "ActionFormer for ActivityNet on two-stream I3D features, as published.",
        replace(_ANET_TSP, input_dim=2048),
    ),
    "actionformer_multithumos_i3d": (
        "ActionFormer for MultiTHUMOS on RGB I3D features; jostle's own, after TemporalMaxer's for that set.",
        ActionFormerConfig(input_dim=1024, classes=65, top_candidates=3000, max_segments=300),
    ),
    "actionformer_puppets": (
        "ActionFormer in a small size for short videos of puppets; jostle's own.",
        ActionFormerConfig(
            input_dim=128, dim=128, classes=16, max_length=640, levels=5, window=9, heads=4, normaliser=50.0
        ),
    ),
}
detector_variants(ActionFormer, VARIANTS)
