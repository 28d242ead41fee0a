"""MViT, first version, base: a transformer with pooled, increasingly wide tokens.

Fan et al., "Multiscale Vision Transformers", ICCV 2021. Tensors are named as in PyTorchVideo.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jostle.models.networks.layers import FrameConvolution, Head, Triple, convolution, named

HEAD_DIM = 96  # width of an attention head
EPSILON = 1e-6  # of every norm
WIDEN = 4  # inner width of the layers after attention


@dataclass(frozen=True)
class MvitConfig:
    """Settings of a network; the base for 16 frames by default.

    Attributes:
        frames, size: of a clip, which give the sizes of the tables of positions.
        classes: number of classes.
        depth: blocks.
        halving: blocks with queries at every second position, which are twice as wide from then on.
        kept: of the answers in the first block, one for so many places, along either side.
    """

    frames: int = 16
    size: int = 224
    classes: int = 400
    depth: int = 16
    halving: tuple[int, ...] = (1, 3, 14)
    kept: int = 8

    @property
    def places(self) -> Triple:
        """Number of tokens of a clip over time, height and width."""
        return self.frames // 2, self.size // 4, self.size // 4


class PatchEmbed(nn.Module):
    """Embedding of overlapping cubes as tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.patch_model = convolution(3, HEAD_DIM, (3, 7, 7), (2, 4, 4), bias=True)

    def forward(self, clips: Tensor) -> tuple[Tensor, Triple]:
        """Return (B, N, 96) tokens, and how they lie over time, height and width."""
        output = self.patch_model(clips)
        _, _, t, h, w = output.shape
        return output.flatten(2).transpose(1, 2), (t, h, w)


class Positions(nn.Module):
    """Class token and position embeddings."""

    def __init__(self, places: Triple) -> None:
        super().__init__()
        time, high, wide = places
        self.cls_token = nn.Parameter(torch.zeros(1, 1, HEAD_DIM))
        self.pos_embed_spatial = nn.Parameter(torch.empty(1, high * wide, HEAD_DIM))
        self.pos_embed_temporal = nn.Parameter(torch.empty(1, time, HEAD_DIM))
        self.pos_embed_class = nn.Parameter(torch.empty(1, 1, HEAD_DIM))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the position embeddings randomly."""
        nn.init.zeros_(self.cls_token)
        for marks in (self.pos_embed_spatial, self.pos_embed_temporal, self.pos_embed_class):
            nn.init.trunc_normal_(marks, std=0.02)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return (B, 1 + N, 96) of (B, N, 96)."""
        time, space = self.pos_embed_temporal.shape[1], self.pos_embed_spatial.shape[1]
        marks = self.pos_embed_spatial.repeat(1, time, 1) + self.pos_embed_temporal.repeat_interleave(space, dim=1)
        first = (self.cls_token + self.pos_embed_class).expand(len(tokens), -1, -1)
        return torch.cat([first, tokens + marks], dim=1)


class PoolingAttention(nn.Module):
    """Attention with pooled keys and values, and in some blocks pooled queries."""

    def __init__(self, dim: int, q_stride: int, kv_stride: int) -> None:
        super().__init__()
        self.heads = dim // HEAD_DIM
        self.q, self.k, self.v = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.proj = nn.Linear(dim, dim)
        self.pool_q = None if q_stride == 1 else _pool(q_stride)
        self.norm_q = None if q_stride == 1 else nn.LayerNorm(HEAD_DIM, EPSILON)
        self.pool_k, self.norm_k = _pool(kv_stride), nn.LayerNorm(HEAD_DIM, EPSILON)
        self.pool_v, self.norm_v = _pool(kv_stride), nn.LayerNorm(HEAD_DIM, EPSILON)

    def forward(self, x: Tensor, places: Triple) -> tuple[Tensor, Triple]:
        """Return (B, 1 + N', D), and how the tokens lie now."""
        q, k, v = (layer(x).unflatten(2, (self.heads, HEAD_DIM)).transpose(1, 2) for layer in (self.q, self.k, self.v))
        query_places = places
        if self.pool_q is not None and self.norm_q is not None:
            q, query_places = _pooled(q, places, self.pool_q, self.norm_q)
        k, _ = _pooled(k, places, self.pool_k, self.norm_k)
        v, _ = _pooled(v, places, self.pool_v, self.norm_v)
        attended = F.scaled_dot_product_attention(q, k, v)  # (B, heads, 1 + N', 96)
        return self.proj(attended.transpose(1, 2).flatten(2)), query_places


def _pool(stride: int) -> FrameConvolution:
    """Return a depthwise pooling convolution that all heads share."""
    return convolution(HEAD_DIM, HEAD_DIM, (3, 3, 3), (1, stride, stride), groups=HEAD_DIM)


def _pooled(x: Tensor, places: Triple, pool: FrameConvolution, norm: nn.LayerNorm) -> tuple[Tensor, Triple]:
    """Pool (B, heads, 1 + N, 96) tokens to (B, heads, 1 + N', 96); the class token is only normed."""
    batch, heads = x.shape[:2]
    first, rest = x[:, :, :1], x[:, :, 1:]
    maps = torch.unflatten(rest.flatten(0, 1).transpose(1, 2), 2, places)  # (B * heads, 96, T, H, W)
    pooled = pool(maps)
    _, _, t, h, w = pooled.shape
    rest = torch.unflatten(pooled.flatten(2).transpose(1, 2), 0, (batch, heads))
    return norm(torch.cat([first, rest], dim=2)), (t, h, w)


class MViTBlock(nn.Module):
    """Attention and MLP; the MLP widens tokens where the next block is wider."""

    def __init__(self, dim: int, out: int, q_stride: int, kv_stride: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim, EPSILON), nn.LayerNorm(dim, EPSILON)
        self.attn = PoolingAttention(dim, q_stride, kv_stride)
        self.mlp = named(fc1=nn.Linear(dim, WIDEN * dim), gelu=nn.GELU(), fc2=nn.Linear(WIDEN * dim, out))
        self.proj = None if dim == out else nn.Linear(dim, out)
        self.halves = q_stride > 1

    def forward(self, x: Tensor, places: Triple) -> tuple[Tensor, Triple]:
        """Return (B, 1 + N', out), and how the tokens lie now."""
        attended, now = self.attn(self.norm1(x), places)
        x = (_largest(x, places) if self.halves else x) + attended
        normed = self.norm2(x)
        around = x if self.proj is None else self.proj(normed)
        return around + self.mlp(normed), now


def _largest(x: Tensor, places: Triple) -> Tensor:
    """Max-pool the tokens by two; the class token is unchanged."""
    maps = torch.unflatten(x[:, 1:].transpose(1, 2), 2, places)
    pooled = F.max_pool3d(maps, (1, 3, 3), (1, 2, 2), (0, 1, 1))
    return torch.cat([x[:, :1], pooled.flatten(2).transpose(1, 2)], dim=1)


class Mvit(nn.Module):
    """MViT transformer with its classifier."""

    def __init__(self, config: MvitConfig = MvitConfig()) -> None:  # noqa: B008
        super().__init__()
        self.config = config
        self.patch_embed = PatchEmbed()
        self.cls_positional_encoding = Positions(config.places)
        blocks = []
        dim, kept_blocks = HEAD_DIM, config.kept
        for number in range(config.depth):
            halves = number in config.halving
            kept_blocks = kept_blocks // 2 if halves else kept_blocks
            out = 2 * dim if number + 1 in config.halving else dim
            blocks.append(MViTBlock(dim, out, 2 if halves else 1, kept_blocks))
            dim = out
        self.blocks = nn.ModuleList(blocks)
        self.norm_embed = nn.LayerNorm(dim, EPSILON)
        self.head = Head(dim, config.classes)

    def forward(self, clips: Tensor) -> Tensor:
        """Return (B, classes) logits of (B, 3, T, H, W) clips with the length and size of the position tables."""
        tokens, places = self.patch_embed(clips)
        if places != self.config.places:
            raise ValueError(
                f"its positions are for {self.config.frames} frames of {self.config.size}x{self.config.size}, not "
                f"{clips.shape[2]} of {clips.shape[4]}x{clips.shape[3]}"
            )
        x = self.cls_positional_encoding(tokens)
        for block in self.blocks:
            x, places = block(x, places)
        output: Tensor = self.head(self.norm_embed(x)[:, 0])
        return output


CONFIGS = {"mvit_base_16x4": MvitConfig(), "mvit_base_32x3": MvitConfig(frames=32)}
