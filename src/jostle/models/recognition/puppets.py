"""Four small recognisers of what a puppet does, one of each family that studies of corruption compare.

A network of 3D convolutions (after Tran et al., 2015), one that takes space and time in turn (R(2+1)D, Tran et al.,
2018), one whose channels are filtered apart (X3D, Feichtenhofer, 2020), and a transformer that attends over time and
over space in turn (TimeSformer, Bertasius et al., 2021). All see 16 frames, spread over a whole clip.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jostle.models.input_spec import InputSpec
from jostle.models.recognition.recogniser import Changes, Recogniser, Weights, changed, recogniser, with_weights

SPEC = InputSpec(
    frames=16, stride=16, resize=(112, 112), size=112, mean=(0.45, 0.45, 0.45), std=(0.25, 0.25, 0.25), step=5
)
CLASSES = 16
SOURCE = "clean or robust, which come with jostle, or a file that jostle train wrote"
HEAD = "classifier.bias"

Size = tuple[int, int, int]  # over time, height, width
ONE: Size = (1, 1, 1)


class Convolution(nn.Sequential):
    """A 3D convolution that keeps the edges, and batch norm."""

    def __init__(self, channels: int, out: int, size: Size, stride: Size = ONE) -> None:
        around = (size[0] // 2, size[1] // 2, size[2] // 2)
        super().__init__(nn.Conv3d(channels, out, size, stride, around, bias=False), nn.BatchNorm3d(out))


class Whole(Convolution):
    """A 3x3x3 convolution."""

    def __init__(self, channels: int, out: int, stride: Size = ONE) -> None:
        super().__init__(channels, out, (3, 3, 3), stride)


class Split(nn.Sequential):
    """A 3x3x3 convolution as one over space and one over time, a ReLU between them, with two thirds of the weights."""

    def __init__(self, channels: int, out: int, stride: Size = ONE) -> None:
        between = 18 * channels * out // (9 * channels + 3 * out)
        super().__init__(
            Convolution(channels, between, (1, 3, 3), (1, *stride[1:])),
            nn.ReLU(inplace=True),
            Convolution(between, out, (3, 1, 1), (stride[0], 1, 1)),
        )


class Residual(nn.Module):
    """Two filters beside which the input passes by, made to fit by a 1x1x1 convolution."""

    def __init__(self, channels: int, out: int, make: Callable[..., nn.Module]) -> None:
        super().__init__()
        halved = (2, 2, 2)
        self.inner = nn.Sequential(make(channels, out, halved), nn.ReLU(inplace=True), make(out, out))
        self.around = Convolution(channels, out, ONE, halved)

    def forward(self, x: Tensor) -> Tensor:
        """Half as many places and steps."""
        return F.relu(self.around(x) + self.inner(x))


class PuppetRecogniser(nn.Module):
    """What all four share: something is seen at each place and step, and its mean decides.

    Args:
        dim: channels of what is seen.
    """

    def __init__(self, classes: int, dim: int) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.3)
        self.classifier = nn.Linear(dim, classes)

    def see(self, clips: Tensor) -> Tensor:
        """(B, dim, T, 7, 7) of (B, 3, 16, 112, 112)."""
        raise NotImplementedError

    def forward(self, clips: Tensor) -> Tensor:
        """(B, classes) logits of (B, 3, 16, 112, 112)."""
        made: Tensor = self.classifier(self.drop(self.see(clips).mean((2, 3, 4))))
        return made


class ResidualNetwork(PuppetRecogniser):
    """A stem that takes every fourth pixel, and two residual blocks."""

    def __init__(self, classes: int, stem: nn.Module, make: Callable[..., nn.Module]) -> None:
        super().__init__(classes, 80)
        self.stem = stem  # (B, 32, 16, 28, 28)
        self.blocks = nn.Sequential(
            Residual(32, 64, make),  # (B, 64, 8, 14, 14)
            Residual(64, 80, make),  # (B, 80, 4, 7, 7)
        )

    def see(self, clips: Tensor) -> Tensor:
        """(B, 80, 4, 7, 7)."""
        made: Tensor = self.blocks(self.stem(clips.contiguous(memory_format=torch.channels_last_3d)))
        return made


def shifted(x: Tensor, by: int) -> Tensor:
    """(B, T, ...) `by` steps later (earlier if negative), with zeros where nothing comes from.

    >>> shifted(torch.tensor([[1.0, 2.0, 3.0]]), 1).tolist()
    [[0.0, 1.0, 2.0]]
    """
    made = torch.zeros_like(x)
    if by >= 0:
        made[:, by:] = x[:, : x.shape[1] - by]
    else:
        made[:, :by] = x[:, -by:]
    return made


def _clips(frames: Tensor, like: Tensor) -> Tensor:
    """(B, T, ...) of (B * T, ...), with as many clips as the other has."""
    return frames.reshape(len(like), -1, *frames.shape[1:])


class Apart(nn.Module):
    """A filter of each channel by itself, over some steps and a square of places.

    Libraries are slow at such filters in three dimensions and fast in two, so there is one in two for each step.
    """

    def __init__(self, channels: int, steps: int, side: int, *, halved: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(steps, channels, 1, side, side))
        self.stride = 2 if halved else 1
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Begin anew, by chance."""
        nn.init.normal_(self.weight, std=self.weight[:, 0].numel() ** -0.5)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C, H, W) from the same."""
        steps, channels, _, side, _ = self.weight.shape
        frames = x.flatten(0, 1)
        seen = [F.conv2d(frames, w, None, self.stride, side // 2, groups=channels) for w in self.weight]
        return torch.stack([shifted(_clips(s, x), steps // 2 - i) for i, s in enumerate(seen)]).sum(0)


class Inverted(nn.Module):
    """An X3D block: widened, filtered apart, weighed by what the whole clip shows, and narrowed."""

    def __init__(self, channels: int, out: int, *, halved: bool = False) -> None:
        super().__init__()
        wide = 2 * out
        self.widen = nn.Sequential(
            nn.Conv2d(channels, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU(inplace=True)
        )
        self.filter, self.norm = Apart(wide, 3, 3, halved=halved), nn.BatchNorm2d(wide)
        self.weigh = nn.Sequential(nn.Linear(wide, wide // 8), nn.ReLU(), nn.Linear(wide // 8, wide), nn.Sigmoid())
        self.narrow = nn.Sequential(nn.Conv2d(wide, out, 1, bias=False), nn.BatchNorm2d(out))
        self.passes_by = channels == out and not halved

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, C, H, W) from the same."""
        wide = _clips(self.widen(x.flatten(0, 1)), x)
        seen = _clips(self.norm(self.filter(wide).flatten(0, 1)), x)
        seen = F.silu(seen * self.weigh(seen.mean((1, 3, 4)))[:, None, :, None, None])
        made = _clips(self.narrow(seen.flatten(0, 1)), x)
        return x + made if self.passes_by else made


class ChannelSeparated(PuppetRecogniser):
    """Filters mix either places and steps or channels, and all 16 steps are kept to the end, as in X3D."""

    def __init__(self, classes: int) -> None:
        super().__init__(classes, 256)
        self.stem = nn.Conv2d(3, 32, 7, stride=4, padding=3, bias=False)
        self.steps, self.norm = Apart(32, 5, 1), nn.BatchNorm2d(32)
        self.blocks = nn.Sequential(
            Inverted(32, 64, halved=True),  # (B, 16, 64, 14, 14)
            Inverted(64, 64),
            Inverted(64, 64),
            Inverted(64, 128, halved=True),  # (B, 16, 128, 7, 7)
            Inverted(128, 128),
            Inverted(128, 128),
        )
        self.last = nn.Sequential(nn.Conv2d(128, 256, 1, bias=False), nn.BatchNorm2d(256), nn.ReLU(inplace=True))

    def see(self, clips: Tensor) -> Tensor:
        """(B, 256, 16, 7, 7)."""
        frames = clips.transpose(1, 2)
        x = _clips(self.stem(frames.flatten(0, 1).contiguous(memory_format=torch.channels_last)), frames)
        x = _clips(F.relu(self.norm(self.steps(x).flatten(0, 1))), frames)
        return _clips(self.last(self.blocks(x).flatten(0, 1)), frames).transpose(1, 2)


class Attention(nn.Module):
    """Each of N tokens looks at all others of its group, after a norm; (..., N, D) from the same."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.norm, self.heads = nn.LayerNorm(dim), heads
        self.ask, self.answer = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        """What to add to the tokens."""
        q, k, v = self.ask(self.norm(x)).unflatten(-1, (3, self.heads, -1)).transpose(-4, -2).unbind(-3)
        made: Tensor = self.answer(F.scaled_dot_product_attention(q, k, v).transpose(-3, -2).flatten(-2))
        return made


class Divided(nn.Module):
    """Attention over time, attention over space, and what each token makes of it."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.time, self.space = Attention(dim, heads), Attention(dim, heads)
        self.think = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 3 * dim), nn.GELU(), nn.Linear(3 * dim, dim))

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, N, D) from the same."""
        x = x + self.time(x.transpose(1, 2)).transpose(1, 2)
        x = x + self.space(x)
        made: Tensor = x + self.think(x)
        return made


class DividedTransformer(PuppetRecogniser):
    """Tokens of 16 by 16 pixels, read by three small convolutions, as so few clips could not teach it to read."""

    def __init__(self, classes: int, dim: int = 96, heads: int = 3, depth: int = 4) -> None:
        super().__init__(classes, dim)
        self.read = nn.Sequential(
            nn.Conv2d(3, 32, 7, stride=4, padding=3, bias=False),
            nn.BatchNorm2d(32),
            nn.GELU(),
            nn.Conv2d(32, 64, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(64),
            nn.GELU(),
            nn.Conv2d(64, dim, 2, stride=2),
        )
        self.place = nn.Parameter(torch.empty(49, dim))
        self.moment = nn.Parameter(torch.empty(SPEC.frames, 1, dim))
        self.blocks = nn.Sequential(*(Divided(dim, heads) for _ in range(depth)))
        self.norm = nn.LayerNorm(dim)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Begin the marks of place and time anew, by chance."""
        nn.init.normal_(self.place, std=0.02)
        nn.init.normal_(self.moment, std=0.02)

    def see(self, clips: Tensor) -> Tensor:
        """(B, 96, 16, 7, 7)."""
        frames = clips.transpose(1, 2)
        seen = self.read(frames.flatten(0, 1).contiguous(memory_format=torch.channels_last))
        x = _clips(seen.flatten(2).transpose(1, 2), frames)  # (B, T, N, D)
        made: Tensor = self.norm(self.blocks(x + self.place + self.moment))
        return made.permute(0, 3, 1, 2).reshape(len(clips), -1, SPEC.frames, 7, 7)


def c3d(classes: int) -> PuppetRecogniser:
    """All convolutions over space and time at once."""
    stem = nn.Sequential(Convolution(3, 32, (3, 7, 7), (1, 4, 4)), nn.ReLU(inplace=True))
    return ResidualNetwork(classes, stem, Whole)


def r2plus1d(classes: int) -> PuppetRecogniser:
    """Each convolution one over space and one over time."""
    seen, moved = Convolution(3, 32, (1, 7, 7), (1, 4, 4)), Convolution(32, 32, (3, 1, 1))
    stem = nn.Sequential(seen, nn.ReLU(inplace=True), moved, nn.ReLU(inplace=True))
    return ResidualNetwork(classes, stem, Split)


NETWORKS: dict[str, Callable[[int], PuppetRecogniser]] = {
    "puppet_c3d": c3d,
    "puppet_r2plus1d": r2plus1d,
    "puppet_x3d": ChannelSeparated,
    "puppet_divided": DividedTransformer,
}


def _load(name: str, weights: Weights, changes: Changes) -> Recogniser:
    return with_weights(name, NETWORKS[name], changed(name, SPEC, changes), weights, head=HEAD, classes=CLASSES)


@recogniser("puppet_c3d", spec=SPEC, source=SOURCE)
def puppet_c3d(weights: Weights, changes: Changes) -> Recogniser:
    """3D convolutions, for clips of puppets."""
    return _load("puppet_c3d", weights, changes)


@recogniser("puppet_r2plus1d", spec=SPEC, source=SOURCE)
def puppet_r2plus1d(weights: Weights, changes: Changes) -> Recogniser:
    """Convolutions over space and over time in turn, for clips of puppets."""
    return _load("puppet_r2plus1d", weights, changes)


@recogniser("puppet_x3d", spec=SPEC, source=SOURCE)
def puppet_x3d(weights: Weights, changes: Changes) -> Recogniser:
    """Channels filtered apart, as in X3D, for clips of puppets."""
    return _load("puppet_x3d", weights, changes)


@recogniser("puppet_divided", spec=SPEC, source=SOURCE)
def puppet_divided(weights: Weights, changes: Changes) -> Recogniser:
    """A transformer that attends over time and over space in turn, for clips of puppets."""
    return _load("puppet_divided", weights, changes)
