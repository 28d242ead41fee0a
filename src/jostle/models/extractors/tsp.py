"""R(2+1)D of 34 layers as trained by TSP: 3D convolutions factorised over space and time.

Tran et al., "A Closer Look at Spatiotemporal Convolutions for Action Recognition", CVPR 2018; Alwassel et al., "TSP:
Temporally-Sensitive Pretraining of Video Encoders for Localization Tasks", ICCVW 2021. Names of the parameters are
those of torchvision's video networks, as in the public weights. Numbers of channels and the epsilon of the norms are
those of the Caffe2 network that these descend from, and differ from torchvision's.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from jostle.models.extractors.extractor import Tensors, extractor
from jostle.models.input_spec import InputSpec

DIM = 512
# (channels, blocks, stride) of a layer; the stride is that of time, height and width alike.
LAYERS = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
EPSILON = 1e-3
BACKBONE = "features."  # what the public weights put in front of the network that makes features

SPEC = InputSpec(
    frames=16,
    stride=16,
    resize=(128, 171),
    size=112,
    mean=(0.43216, 0.394666, 0.37645),
    std=(0.22803, 0.22145, 0.216989),
    fps=15,
    antialias=False,
    odd_margin="even",
)
SOURCE = (
    "r2plus1d_34-tsp_on_activitynet-max_gvf...pth of https://github.com/HumamAlwassel/TSP (releases, model_weights)"
)


def channels_between(channels: int, out: int) -> int:
    """Return the inner channels of a factorised 3x3x3 convolution that keep its number of weights.

    >>> channels_between(64, 64), channels_between(64, 128), channels_between(512, 512)
    (144, 230, 1152)
    """
    return (channels * out * 27) // (channels * 9 + out * 3)


def _norm(channels: int) -> nn.BatchNorm3d:
    return nn.BatchNorm3d(channels, eps=EPSILON)


class FactorisedConvolution(nn.Sequential):
    """Convolution over space, norm, ReLU, and convolution over time."""

    def __init__(self, channels: int, out: int, stride: int = 1) -> None:
        between = channels_between(channels, out)
        super().__init__(
            nn.Conv3d(channels, between, (1, 3, 3), (1, stride, stride), (0, 1, 1), bias=False),
            _norm(between),
            nn.ReLU(inplace=True),
            nn.Conv3d(between, out, (3, 1, 1), (stride, 1, 1), (1, 0, 0), bias=False),
        )


class R2Plus1DBlock(nn.Module):
    """Residual block of two factorised convolutions, with a projection where the size changes."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Sequential(FactorisedConvolution(channels, out, stride), _norm(out), nn.ReLU(inplace=True))
        self.conv2 = nn.Sequential(FactorisedConvolution(out, out), _norm(out))
        fits = channels == out and stride == 1
        self.downsample = None if fits else nn.Sequential(nn.Conv3d(channels, out, 1, stride, bias=False), _norm(out))

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of shape (B, out, T/stride, H/stride, W/stride)."""
        around = x if self.downsample is None else self.downsample(x)
        return F.relu(around + self.conv2(self.conv1(x)), inplace=True)


class R2Plus1D34(nn.Module):
    """R(2+1)D network up to its global mean, without classifiers."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv3d(3, 45, (1, 7, 7), (1, 2, 2), (0, 3, 3), bias=False),
            _norm(45),
            nn.ReLU(inplace=True),
            nn.Conv3d(45, 64, (3, 1, 1), 1, (1, 0, 0), bias=False),
            _norm(64),
            nn.ReLU(inplace=True),
        )
        channels = 64
        for number, (out, blocks, stride) in enumerate(LAYERS, 1):
            first = R2Plus1DBlock(channels, out, stride)
            self.add_module(
                f"layer{number}", nn.Sequential(first, *(R2Plus1DBlock(out, out, 1) for _ in range(blocks - 1)))
            )
            channels = out

    def features(self, clips: Tensor) -> Tensor:
        """Return (B, 512) of (B, 3, T, H, W)."""
        x: Tensor = self.stem(clips)  # (B, 64, T, H/2, W/2)
        for number in range(1, len(LAYERS) + 1):
            x = self.get_submodule(f"layer{number}")(x)
        return x.mean((2, 3, 4))  # of (B, 512, T/8, H/16, W/16)


def rename_public_weights(weights: Tensors, network: nn.Module) -> Tensors:
    """Rename public weights to the names of the network, and drop its classifiers."""
    inner = {name.removeprefix(BACKBONE): tensor for name, tensor in weights.items() if name.startswith(BACKBONE)}
    return {name: tensor for name, tensor in (inner or weights).items() if not name.startswith("fc")}


@extractor("tsp", spec=SPEC, dim=DIM, source=SOURCE, translate=rename_public_weights)
def tsp() -> R2Plus1D34:
    """As ActivityNet features are made: 15 frames a second, windows of 16 that do not overlap."""
    return R2Plus1D34()
