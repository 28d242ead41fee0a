"""ActionFormer, TriDet and TemporalMaxer as their original programs compute them, on padded sequences.

Written from the published definitions, with the originals' cost: inputs are padded to the training length and every
layer processes the padding; local attention copies overlapping chunks; heads, decoding and targets loop over levels
and videos; a test batch holds one video. Parameters have the originals' names, so that one checkpoint fits both
sides. Targets, losses and post-processing are in `detector_steps.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

RANGES = ((0, 4), (4, 8), (8, 16), (16, 32), (32, 64), (64, 10000))


@dataclass(frozen=True)
class Sizes:
    """Sizes and settings; the defaults are those published for THUMOS14 with 2048-dimensional features."""

    input_dim: int = 2048
    dim: int = 512
    classes: int = 20
    max_length: int = 2304
    heads: int = 4
    window: int = 19
    mlp: int = 2048
    sgp_mlp: int = 768
    bins: int = 16
    max_segments: int = 200


class Norm(nn.Module):
    """Layer normalisation over the channels of every step."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(1, dim, 1)), nn.Parameter(torch.zeros(1, dim, 1))

    def forward(self, x: Tensor) -> Tensor:
        rest = x - x.mean(1, keepdim=True)
        return rest / torch.sqrt((rest**2).mean(1, keepdim=True) + 1e-5) * self.weight + self.bias


class MaskedConv(nn.Module):
    """Convolution of the whole sequence, whose outputs in the padding are set to zero."""

    def __init__(
        self, dim: int, out: int, kernel: int, stride: int = 1, *, groups: int = 1, bias: bool = False
    ) -> None:
        super().__init__()
        self.conv = nn.Conv1d(dim, out, kernel, stride, kernel // 2, groups=groups, bias=bias)
        self.stride = stride

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        x = self.conv(x)
        if self.stride > 1:
            mask = F.interpolate(mask.to(x.dtype), size=x.shape[-1], mode="nearest").bool()
        return x * mask.to(x.dtype), mask


class DropPath(nn.Module):
    """Learned scale of each channel, and stochastic depth: residuals are dropped at random in training."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(1e-4 * torch.ones(1, dim, 1))

    def forward(self, x: Tensor) -> Tensor:
        x = self.scale * x
        if self.training:
            mask = torch.rand(len(x), 1, 1, device=x.device) < 0.9
            x = x / 0.9 * mask
        return x


class Scale(nn.Module):
    """Learned scale of a whole tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.0))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.scale


def copy_chunks(x: Tensor, size: int, step: int) -> Tensor:
    """Return (B, n, size, d) copies of overlapping chunks of (B, T, d), `step` apart."""
    return x.unfold(1, size, step).transpose(2, 3).contiguous()


def band_products(q: Tensor, k: Tensor, w: int) -> Tensor:
    """Return (B, T, 2w + 1) products of queries with keys up to w steps away, -inf outside the sequence.

    Chunks of 2w steps, w apart, are multiplied in full; then their diagonals become columns. Viewed with rows
    one longer than they are, a chunk's products S[x, x + j] are in column j, followed by S[x + 1, x + j - 2w].
    """
    batch, length, _ = q.shape
    products = torch.einsum("bcxd,bcyd->bcxy", copy_chunks(q, 2 * w, w), copy_chunks(k, 2 * w, w))
    chunks = products.shape[1]
    flat = F.pad(products.flatten(2), (0, 2 * w))
    skewed = flat.view(batch, chunks, 2 * w, 2 * w + 1)
    band = q.new_full((batch, length // w, w, 2 * w + 1), -torch.inf)
    band[:, :-1, :, w:] = skewed[:, :, :w, : w + 1]
    band[:, -1, :, w:] = skewed[:, -1, w:, : w + 1]
    band[:, 1:, :, :w] = skewed[:, :, w - 1 : -1, w + 1 :]
    if w > 1:
        band[:, 0, 1:, 1:w] = skewed[:, 0, : w - 1, w + 2 :]
    band = band.view(batch, length, 2 * w + 1)
    step = torch.arange(length, device=q.device)[:, None] + torch.arange(-w, w + 1, device=q.device)
    return band.masked_fill((step < 0) | (step >= length), -torch.inf)


def band_sums(attention: Tensor, v: Tensor, w: int) -> Tensor:
    """Return (B, T, d) sums of values weighted by (B, T, 2w + 1) attention, chunk by chunk."""
    batch, length, _ = v.shape
    padded = F.pad(v, (0, 0, w, w))
    values = copy_chunks(padded, 3 * w, w)  # (B, T/w, 3w, d)
    rows = F.pad(attention.reshape(batch, length // w, w, 2 * w + 1), (0, w))  # row x starts x steps late
    flat = rows.flatten(2)[:, :, : w * 3 * w]
    return torch.einsum("bcxy,bcyd->bcxd", flat.reshape(batch, -1, w, 3 * w), values).reshape(batch, length, -1)


class LocalAttention(nn.Module):
    def __init__(self, dim: int, heads: int, window: int, stride: int) -> None:
        super().__init__()
        self.heads, self.w = heads, window // 2
        for name in ("query", "key", "value"):
            setattr(self, f"{name}_conv", MaskedConv(dim, dim, 3, stride, groups=dim))
            setattr(self, f"{name}_norm", Norm(dim))
            setattr(self, name, nn.Conv1d(dim, dim, 1))
        self.proj = nn.Conv1d(dim, dim, 1)

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        projections = []
        for name in ("query", "key", "value"):
            y, out_mask = getattr(self, f"{name}_conv")(x, mask)
            projections.append(getattr(self, name)(getattr(self, f"{name}_norm")(y)))
        batch, dim, length = projections[0].shape
        q, k, v = (
            y.view(batch, self.heads, -1, length).transpose(2, 3).reshape(batch * self.heads, length, -1)
            for y in projections
        )
        logits = band_products(q / (dim // self.heads) ** 0.5, k, self.w)
        penalty = (~out_mask).to(q.dtype).transpose(1, 2) * -1e4  # (B, T, 1)
        penalties = band_products(torch.ones_like(penalty), penalty, self.w)  # of keys in the padding, by chunks too
        logits = logits + penalties.repeat_interleave(self.heads, 0)
        attention = torch.softmax(logits, -1) * out_mask.transpose(1, 2).repeat_interleave(self.heads, 0)
        sums = band_sums(attention, v, self.w)
        y = sums.view(batch, self.heads, length, -1).transpose(2, 3).reshape(batch, dim, length)
        return self.proj(y) * out_mask, out_mask


class TransformerBlock(nn.Module):
    def __init__(self, sizes: Sizes, stride: int) -> None:
        super().__init__()
        dim = sizes.dim
        self.ln1, self.ln2 = Norm(dim), Norm(dim)
        self.attn = LocalAttention(dim, sizes.heads, sizes.window, stride)
        self.mlp = nn.Sequential(
            nn.Conv1d(dim, sizes.mlp, 1), nn.GELU(), nn.Dropout(0.0), nn.Conv1d(sizes.mlp, dim, 1), nn.Dropout(0.0)
        )
        self.drop_path_attn, self.drop_path_mlp = DropPath(dim), DropPath(dim)
        self.pool = nn.MaxPool1d(3, 2, 1) if stride > 1 else nn.Identity()

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        attended, mask = self.attn(self.ln1(x), mask)
        x = self.pool(x) * mask + self.drop_path_attn(attended)
        return x + self.drop_path_mlp(self.mlp(self.ln2(x)) * mask), mask


class SgpBlock(nn.Module):
    def __init__(self, sizes: Sizes, stride: int, *, stem: bool) -> None:
        super().__init__()
        dim = sizes.dim
        self.ln, self.gn = Norm(dim), nn.GroupNorm(16, dim)
        for name, kernel in (("psi", 1), ("fc", 1), ("convw", 1), ("convkw", 11), ("global_fc", 1)):
            setattr(self, name, nn.Conv1d(dim, dim, kernel, padding=kernel // 2, groups=dim))
        self.mlp = nn.Sequential(nn.Conv1d(dim, sizes.sgp_mlp, 1), nn.GELU(), nn.Conv1d(sizes.sgp_mlp, dim, 1))
        self.drop_path_out = nn.Identity() if stem else DropPath(dim)
        self.drop_path_mlp = nn.Identity() if stem else DropPath(dim)
        self.pool = nn.MaxPool1d(3, 2, 1) if stride > 1 else nn.Identity()

    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        x = self.pool(x)
        mask = F.interpolate(mask.to(x.dtype), size=x.shape[-1], mode="nearest").bool()
        y = self.ln(x)
        phi = torch.relu(self.global_fc(y.mean(-1, keepdim=True)))
        z = self.fc(y) * phi + (self.convw(y) + self.convkw(y)) * self.psi(y) + y
        x = x * mask + self.drop_path_out(z)
        return x + self.drop_path_mlp(self.mlp(self.gn(x))), mask


class MaxPoolBlock(nn.Module):
    def forward(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        x = F.max_pool1d(x, 3, 2, 1)
        mask = F.interpolate(mask.to(x.dtype), size=x.shape[-1], mode="nearest").bool()
        return x * mask, mask


class Backbone(nn.Module):
    def __init__(self, sizes: Sizes, stem: list[nn.Module], branch: list[nn.Module]) -> None:
        super().__init__()
        self.embd = nn.ModuleList(MaskedConv(n, sizes.dim, 3) for n in (sizes.input_dim, sizes.dim))
        self.embd_norm = nn.ModuleList(Norm(sizes.dim) for _ in range(2))
        self.stem, self.branch = nn.ModuleList(stem), nn.ModuleList(branch)

    def forward(self, x: Tensor, mask: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        for conv, norm in zip(self.embd, self.embd_norm, strict=True):
            x, mask = conv(x, mask)
            x = torch.relu(norm(x))
        for block in self.stem:
            x, mask = block(x, mask)
        levels, masks = [x], [mask]
        for block in self.branch:
            x, mask = block(x, mask)
            levels.append(x)
            masks.append(mask)
        return levels, masks


class Neck(nn.Module):
    def __init__(self, norms: list[nn.Module]) -> None:
        super().__init__()
        self.fpn_norms = nn.ModuleList(norms)

    def forward(self, levels: list[Tensor]) -> list[Tensor]:
        return [norm(x) for norm, x in zip(self.fpn_norms, levels, strict=True)]


class Tower(nn.Module):
    """Head of three convolutions, shared by all levels.

    Args:
        last: name of the third convolution in the original.
    """

    def __init__(self, dim: int, out: int, last: str, *, prior: float = 0.0, scaled: bool = False) -> None:
        super().__init__()
        self.head = nn.ModuleList(MaskedConv(dim, dim, 3) for _ in range(2))
        self.norm = nn.ModuleList(Norm(dim) for _ in range(2))
        self.last = last
        setattr(self, last, MaskedConv(dim, out, 3, bias=True))
        nn.init.constant_(getattr(self, last).conv.bias, prior)
        if scaled:
            self.scale = nn.ModuleList(Scale() for _ in RANGES)

    def forward(self, levels: list[Tensor], masks: list[Tensor]) -> list[Tensor]:
        outputs = []
        for level, (x, mask) in enumerate(zip(levels, masks, strict=True)):
            for conv, norm in zip(self.head, self.norm, strict=True):
                x, _ = conv(x, mask)
                x = torch.relu(norm(x))
            x, _ = getattr(self, self.last)(x, mask)
            if hasattr(self, "scale"):
                x = torch.relu(self.scale[level](x))
            outputs.append(x.transpose(1, 2))
        return outputs


class Original(nn.Module):
    """Network of one of the three detectors, as in its original program.

    Args:
        name: `actionformer`, `tridet` or `temporalmaxer`.
    """

    def __init__(self, name: str, sizes: Sizes) -> None:
        super().__init__()
        self.name, self.sizes = name, sizes
        dim = sizes.dim
        stem: list[nn.Module] = []
        if name == "actionformer":
            stem = [TransformerBlock(sizes, 1) for _ in range(2)]
            branch: list[nn.Module] = [TransformerBlock(sizes, 2) for _ in RANGES[1:]]
        elif name == "tridet":
            stem = [SgpBlock(sizes, 1, stem=True) for _ in range(2)]
            branch = [SgpBlock(sizes, 2, stem=False) for _ in RANGES[1:]]
        else:
            branch = [MaxPoolBlock() for _ in RANGES[1:]]
        self.backbone = Backbone(sizes, stem, branch)
        plain = name == "temporalmaxer"
        self.neck = Neck([nn.GroupNorm(4, dim, affine=False) if plain else Norm(dim) for _ in RANGES])
        prior = -4.595
        self.cls_head = Tower(dim, sizes.classes, "cls_head", prior=prior)
        if name == "tridet":
            self.start_head = Tower(dim, sizes.classes, "cls_head", prior=prior)
            self.end_head = Tower(dim, sizes.classes, "cls_head", prior=prior)
        self.reg_head = Tower(dim, 2 * (sizes.bins + 1) if name == "tridet" else 2, "offset_head", scaled=True)
        self.normaliser = 100.0

    def pad(self, features: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Pad (C, T) features of each video with zeros to (B, C, M), and return them with their (B, 1, M) mask."""
        longest, step = max(x.shape[-1] for x in features), 576 if self.name == "actionformer" else 32
        length = self.sizes.max_length if longest <= self.sizes.max_length else -(-longest // step) * step
        batch = features[0].new_zeros(len(features), features[0].shape[0], length)
        for row, x in zip(batch, features, strict=True):
            row[:, : x.shape[-1]].copy_(x)
        sizes = torch.tensor([x.shape[-1] for x in features], device=batch.device)
        return batch, (torch.arange(length, device=batch.device) < sizes[:, None])[:, None]

    def forward(self, features: list[Tensor]) -> dict[str, Any]:
        """Return the raw outputs of (C, T) sequences, a list over levels of (B, T_l, .) each."""
        levels, masks = self.backbone(*self.pad(features))
        levels = self.neck(levels)
        outputs: dict[str, Any] = {"cls": self.cls_head(levels, masks), "reg": self.reg_head(levels, masks)}
        if self.name == "tridet":
            detached = [x.detach() for x in levels]
            outputs["start"], outputs["end"] = self.start_head(detached, masks), self.end_head(detached, masks)
        outputs["mask"] = [mask[:, 0] for mask in masks]
        outputs["points"] = [self.points(level, x.shape[-1], x.device) for level, x in enumerate(levels)]
        return outputs

    @staticmethod
    def points(level: int, length: int, device: torch.device) -> Tensor:
        """Return the (T_l, 4) position, smallest and largest distance and stride of the points of a level."""
        position = torch.arange(length, device=device)[:, None] * 2.0**level
        rest = torch.tensor([*RANGES[level], 2**level], dtype=torch.float32, device=device)
        return torch.cat([position, rest.expand(length, 3)], 1)

    def offsets(self, outputs: dict[str, Any], level: int) -> Tensor:
        """Return (B, T_l, 2), or (B, T_l, K, 2) for TriDet, distances to start and end in units of the stride."""
        reg = outputs["reg"][level]
        if self.name != "tridet":
            return reg
        n = self.sizes.bins
        left, right = reg[..., None, : n + 1], reg[..., None, n + 1 :]  # (B, T, 1, N + 1)
        start = F.pad(outputs["start"][level].transpose(1, 2), (n, 0)).unfold(2, n + 1, 1).transpose(1, 2)
        end = F.pad(outputs["end"][level].transpose(1, 2), (0, n)).unfold(2, n + 1, 1).transpose(1, 2)
        bins = torch.arange(n + 1, dtype=reg.dtype, device=reg.device)
        before = (torch.softmax(start + left, -1) * (n - bins)).sum(-1)
        after = (torch.softmax(end + right, -1) * bins).sum(-1)
        return torch.nan_to_num(torch.stack([before, after], -1))
