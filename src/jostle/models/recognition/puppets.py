"""Small recognisers of puppet actions, four of them one of each family that studies of corruption compare.

A network of 3D convolutions (after Tran et al., 2015), one that takes space and time in turn (R(2+1)D, Tran et al.,
2018), one whose channels are filtered apart (X3D, Feichtenhofer, 2020), and a transformer that attends over time and
over space in turn (TimeSformer, Bertasius et al., 2021). All see 16 frames, spread over a whole clip. SlowFast and TAM
have versions for puppets too; nothing but the sizes differs there, so that what is found out about them on puppets is
about the same computation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jostle.models.input_spec import InputSpec
from jostle.models.networks.frame_resnet import TamConfig, TamResNet
from jostle.models.networks.slowfast import SlowFast, SlowFastConfig
from jostle.models.recognition.recogniser import Changes, Recogniser, Weights, add_recogniser, changed, with_weights

SPEC = InputSpec(
    frames=16, stride=16, resize=(112, 112), size=112, mean=(0.45, 0.45, 0.45), std=(0.25, 0.25, 0.25), step=5
)
CLASSES = 16
SOURCE = "clean or robust, which come with jostle, or a file that jostle train wrote"
HEAD = "classifier.bias"

Size = tuple[int, int, int]  # over time, height, width
ONE: Size = (1, 1, 1)


class PuppetConvolution(nn.Sequential):
    """3D convolution with "same" padding, and batch norm."""

    def __init__(self, channels: int, out: int, size: Size, stride: Size = ONE) -> None:
        around = (size[0] // 2, size[1] // 2, size[2] // 2)
        super().__init__(nn.Conv3d(channels, out, size, stride, around, bias=False), nn.BatchNorm3d(out))


class Whole(PuppetConvolution):
    """Convolution of 3x3x3 that is not factorised."""

    def __init__(self, channels: int, out: int, stride: Size = ONE) -> None:
        super().__init__(channels, out, (3, 3, 3), stride)


class PuppetFactorisedConvolution(nn.Sequential):
    """3x3x3 convolution factorised over space and time, with two thirds of the weights."""

    def __init__(self, channels: int, out: int, stride: Size = ONE) -> None:
        between = 18 * channels * out // (9 * channels + 3 * out)
        super().__init__(
            PuppetConvolution(channels, between, (1, 3, 3), (1, *stride[1:])),
            nn.ReLU(inplace=True),
            PuppetConvolution(between, out, (3, 1, 1), (stride[0], 1, 1)),
        )


class PuppetResidual(nn.Module):
    """Residual block of two convolutions, with a 1x1x1 projection."""

    def __init__(self, channels: int, out: int, make: Callable[..., nn.Module]) -> None:
        super().__init__()
        halved = (2, 2, 2)
        self.inner = nn.Sequential(make(channels, out, halved), nn.ReLU(inplace=True), make(out, out))
        self.around = PuppetConvolution(channels, out, ONE, halved)

    def forward(self, x: Tensor) -> Tensor:
        """Return a map of half the size in space and time."""
        return F.relu(self.around(x) + self.inner(x))


class PuppetRecogniser(nn.Module):
    """Base of the four networks: a feature map, its mean and a linear classifier.

    Args:
        dim: channels of what is seen.
    """

    def __init__(self, classes: int, dim: int) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.3)
        self.classifier = nn.Linear(dim, classes)

    def see(self, clips: Tensor) -> Tensor:
        """Return (B, dim, T, 7, 7) of (B, 3, 16, 112, 112)."""
        raise NotImplementedError

    def forward(self, clips: Tensor) -> Tensor:
        """Return (B, classes) logits of (B, 3, 16, 112, 112)."""
        output: Tensor = self.classifier(self.drop(self.see(clips).mean((2, 3, 4))))
        return output


class ResidualNetwork(PuppetRecogniser):
    """A stem that takes every fourth pixel, and two residual blocks."""

    def __init__(self, classes: int, stem: nn.Module, make: Callable[..., nn.Module]) -> None:
        super().__init__(classes, 80)
        self.stem = stem  # (B, 32, 16, 28, 28)
        self.blocks = nn.Sequential(
            PuppetResidual(32, 64, make),  # (B, 64, 8, 14, 14)
            PuppetResidual(64, 80, make),  # (B, 80, 4, 7, 7)
        )

    def see(self, clips: Tensor) -> Tensor:
        """Return a tensor of shape (B, 80, 4, 7, 7)."""
        output: Tensor = self.blocks(self.stem(clips.contiguous(memory_format=torch.channels_last_3d)))
        return output


def shifted(x: Tensor, by: int) -> Tensor:
    """Return (B, T, ...) `by` steps later (earlier if negative), with zeros where nothing comes from.

    >>> shifted(torch.tensor([[1.0, 2.0, 3.0]]), 1).tolist()
    [[0.0, 1.0, 2.0]]
    """
    output = torch.zeros_like(x)
    if by >= 0:
        output[:, by:] = x[:, : x.shape[1] - by]
    else:
        output[:, :by] = x[:, -by:]
    return output


def _clips(frames: Tensor, like: Tensor) -> Tensor:
    """Return (B, T, ...) of (B * T, ...), with as many clips as the other has."""
    return frames.reshape(len(like), -1, *frames.shape[1:])


class Apart(nn.Module):
    """Depthwise convolution over time and space.

    Libraries are slow at such filters in three dimensions and fast in two, so there is one in two for each step.
    """

    def __init__(self, channels: int, steps: int, side: int, *, halved: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(steps, channels, 1, side, side))
        self.stride = 2 if halved else 1
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise the weights of the filters randomly."""
        nn.init.normal_(self.weight, std=self.weight[:, 0].numel() ** -0.5)

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of the same shape, (B, T, C, H, W)."""
        steps, channels, _, side, _ = self.weight.shape
        frames = x.flatten(0, 1)
        parts = [F.conv2d(frames, w, None, self.stride, side // 2, groups=channels) for w in self.weight]
        return torch.stack([shifted(_clips(s, x), steps // 2 - i) for i, s in enumerate(parts)]).sum(0)


class InvertedResidual(nn.Module):
    """X3D block: expansion, depthwise convolution, squeeze-and-excitation, projection."""

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
        """Return a tensor of the same shape, (B, T, C, H, W)."""
        wide = _clips(self.widen(x.flatten(0, 1)), x)
        filtered = _clips(self.norm(self.filter(wide).flatten(0, 1)), x)
        filtered = F.silu(filtered * self.weigh(filtered.mean((1, 3, 4)))[:, None, :, None, None])
        narrowed = _clips(self.narrow(filtered.flatten(0, 1)), x)
        return x + narrowed if self.passes_by else narrowed


class ChannelSeparated(PuppetRecogniser):
    """Network of depthwise and pointwise convolutions that keeps all 16 steps, as X3D."""

    def __init__(self, classes: int) -> None:
        super().__init__(classes, 256)
        self.stem = nn.Conv2d(3, 32, 7, stride=4, padding=3, bias=False)
        self.steps, self.norm = Apart(32, 5, 1), nn.BatchNorm2d(32)
        self.blocks = nn.Sequential(
            InvertedResidual(32, 64, halved=True),  # (B, 16, 64, 14, 14)
            InvertedResidual(64, 64),
            InvertedResidual(64, 64),
            InvertedResidual(64, 128, halved=True),  # (B, 16, 128, 7, 7)
            InvertedResidual(128, 128),
            InvertedResidual(128, 128),
        )
        self.last = nn.Sequential(nn.Conv2d(128, 256, 1, bias=False), nn.BatchNorm2d(256), nn.ReLU(inplace=True))

    def see(self, clips: Tensor) -> Tensor:
        """Return a tensor of shape (B, 256, 16, 7, 7)."""
        frames = clips.transpose(1, 2)
        x = _clips(self.stem(frames.flatten(0, 1).contiguous(memory_format=torch.channels_last)), frames)
        x = _clips(F.relu(self.norm(self.steps(x).flatten(0, 1))), frames)
        return _clips(self.last(self.blocks(x).flatten(0, 1)), frames).transpose(1, 2)


class TokenAttention(nn.Module):
    """Self-attention among the N tokens of a group after a norm, (..., N, D)."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.norm, self.heads = nn.LayerNorm(dim), heads
        self.ask, self.answer = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x: Tensor) -> Tensor:
        """Return the residual update of the tokens."""
        q, k, v = self.ask(self.norm(x)).unflatten(-1, (3, self.heads, -1)).transpose(-4, -2).unbind(-3)
        output: Tensor = self.answer(F.scaled_dot_product_attention(q, k, v).transpose(-3, -2).flatten(-2))
        return output


class Divided(nn.Module):
    """Block of attention over time, attention over space, and an MLP."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.time, self.space = TokenAttention(dim, heads), TokenAttention(dim, heads)
        self.think = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 3 * dim), nn.GELU(), nn.Linear(3 * dim, dim))

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of the same shape, (B, T, N, D)."""
        x = x + self.time(x.transpose(1, 2)).transpose(1, 2)
        x = x + self.space(x)
        output: Tensor = x + self.think(x)
        return output


class DividedTransformer(PuppetRecogniser):
    """Transformer over tokens of 16 by 16 pixels, embedded by three convolutions as data are few."""

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
        """Initialise the position embeddings randomly."""
        nn.init.normal_(self.place, std=0.02)
        nn.init.normal_(self.moment, std=0.02)

    def see(self, clips: Tensor) -> Tensor:
        """Return a tensor of shape (B, 96, 16, 7, 7)."""
        frames = clips.transpose(1, 2)
        patches = self.read(frames.flatten(0, 1).contiguous(memory_format=torch.channels_last))
        x = _clips(patches.flatten(2).transpose(1, 2), frames)  # (B, T, N, D)
        output: Tensor = self.norm(self.blocks(x + self.place + self.moment))
        return output.permute(0, 3, 1, 2).reshape(len(clips), -1, SPEC.frames, 7, 7)


def c3d(classes: int) -> PuppetRecogniser:
    """Return the network with 3x3x3 convolutions."""
    stem = nn.Sequential(PuppetConvolution(3, 32, (3, 7, 7), (1, 4, 4)), nn.ReLU(inplace=True))
    return ResidualNetwork(classes, stem, Whole)


def r2plus1d(classes: int) -> PuppetRecogniser:
    """Return the network with factorised convolutions."""
    spatial, moved = PuppetConvolution(3, 32, (1, 7, 7), (1, 4, 4)), PuppetConvolution(32, 32, (3, 1, 1))
    stem = nn.Sequential(spatial, nn.ReLU(inplace=True), moved, nn.ReLU(inplace=True))
    return ResidualNetwork(classes, stem, PuppetFactorisedConvolution)


NETWORKS: dict[str, Callable[[int], PuppetRecogniser]] = {
    "puppet_c3d": c3d,
    "puppet_r2plus1d": r2plus1d,
    "puppet_x3d": ChannelSeparated,
    "puppet_divided": DividedTransformer,
}


def _load(name: str, weights: Weights, changes: Changes) -> Recogniser:
    build, head = (NETWORKS[name], HEAD) if name in NETWORKS else PAPERS[name]
    return with_weights(name, build, changed(name, SPEC, changes), weights, head=head, classes=CLASSES)


SLOWFAST = SlowFastConfig(windows=((4, 4, 4), (16, 4, 4)), depths=(1, 1, 1, 1), width=16)
TAM = TamConfig(18, width=16)
PAPERS: dict[str, tuple[Callable[[int], nn.Module], str]] = {  # and the names of their classifiers' biases
    "puppet_slowfast": (lambda classes: SlowFast(replace(SLOWFAST, classes=classes)), "blocks.6.proj.bias"),
    "puppet_tam": (lambda classes: TamResNet(replace(TAM, classes=classes)), "fc.bias"),
    "puppet_tam_wide": (lambda classes: TamResNet(replace(TAM, classes=classes, width=2 * TAM.width)), "fc.bias"),
}
SUMMARIES = {
    "puppet_c3d": "3D convolutions, for clips of puppets.",
    "puppet_r2plus1d": "Convolutions over space and over time in turn, for clips of puppets.",
    "puppet_x3d": "Channels filtered apart, as in X3D, for clips of puppets.",
    "puppet_divided": "A transformer that attends over time and over space in turn, for clips of puppets.",
    "puppet_slowfast": (
        "SlowFast with a quarter of the channels and one block a stage, for clips of puppets; 4 slow frames of 16."
    ),
    "puppet_tam": "TAM on a ResNet of 18 layers with a quarter of the channels, for clips of puppets.",
    "puppet_tam_wide": "The same with half of the channels, four times as many weights: what does capacity buy?",
}
for _name, _summary in SUMMARIES.items():
    _source = SOURCE if _name in NETWORKS else "a file that jostle train wrote"
    add_recogniser(_name, _summary, _load, spec=SPEC, source=_source)
