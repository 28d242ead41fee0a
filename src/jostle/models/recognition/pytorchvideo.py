"""Recognisers of PyTorchVideo and the SlowFast code base, trained on Kinetics-400, with specs and weights.

Networks are our own; weights are taken by either project's names, MViT's by torchvision's too. Clips and crops are as
the published accuracies were measured: frames evenly over a span, so that those of an 8x8 network are 9 apart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from math import isqrt
from typing import Any

from torch import Tensor, nn

from jostle.errors import BadValue
from jostle.models.input_spec import InputSpec
from jostle.models.networks import mvit, slowfast, video_resnet, x3d
from jostle.models.recognition import public_names
from jostle.models.recognition.recogniser import Changes, Recogniser, Weights, recogniser, recognisers, with_weights

_ALL: dict[str, Any] = {
    "mean": (0.45, 0.45, 0.45),
    "std": (0.225, 0.225, 0.225),
    "fps": 30.0,
    "spread": "span",
    "antialias": False,
    "odd_margin": "larger",
    "floored": True,
}
_IMAGENET: dict[str, Any] = {"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}
THIRTY: Changes = {"clips": 10, "starts": "parts", "crops": "three"}
FIVE: Changes = {"clips": 5, "starts": "ends"}


def _spec(frames: int, step: int, size: int = 256) -> InputSpec:
    """Return the spec whose short side equals the size of test crops."""
    return InputSpec(frames, frames * step, size, size, step=step, **_ALL)


def _views(published: Changes, size: int = 224, others: Mapping[str, Changes] | None = None) -> dict[str, Changes]:
    """Return the published views, and those of the study of Kinetics400-P (Schiappa et al., 2023) for crops of a size.

    Its program takes the first frame of each part of the whole video, cuts out more than it shows, and scales values as
    for ImageNet, which is not what these weights were trained with.
    """
    more = size * 5 // 4
    study = {"spread": "first", "resize": more, "size": more, "shrunk": size, **_IMAGENET}
    return {"published": published, "kinetics400-p": study, **(others or {})}


def _source(file: str) -> str:
    place = "https://dl.fbaipublicfiles.com/pytorchvideo/model_zoo/kinetics"
    return f"{file} of {place}, or the same network's of the SlowFast code base"


# The study of Mini Kinetics-C (Yi et al., 2021) showed all networks as many frames, spread over the whole video.
MINI_KINETICS: Mapping[str, Changes] = {
    "kinetics-c": {"frames": 32, "spread": "even", "resize": 256, "size": 224, "joined": "logits"}
}


@recogniser("slow_r50", spec=_spec(8, 8), views=_views(THIRTY), source=_source("SLOW_8x8_R50.pyth"))
def slow_r50(weights: Weights, changes: Changes) -> Recogniser:
    """Slow: a ResNet of 50 layers that looks along time in its last two stages only; the "R3D" of Kinetics400-P."""
    return _residual("slow_r50", weights, changes)


@recogniser("slow_r50_4x16", spec=_spec(4, 16), views=_views(THIRTY), source=_source("SLOW_4x16_R50.pyth"))
def slow_r50_4x16(weights: Weights, changes: Changes) -> Recogniser:
    """The same on half as many frames, twice as far apart."""
    return _residual("slow_r50_4x16", weights, changes)


@recogniser("i3d_r50", spec=_spec(8, 8), views=_views(THIRTY), source=_source("I3D_8x8_R50.pyth"))
def i3d_r50(weights: Weights, changes: Changes) -> Recogniser:
    """A ResNet of 50 layers that looks along time in every second block; the "I3D" of Kinetics400-P."""
    return _residual("i3d_r50", weights, changes)


@recogniser("c2d_r50", spec=_spec(8, 8), views=_views(THIRTY), source=_source("C2D_8x8_R50.pyth"))
def c2d_r50(weights: Weights, changes: Changes) -> Recogniser:
    """A ResNet of 50 layers on single frames, pooled in pairs; the order of frames means little to it."""
    return _residual("c2d_r50", weights, changes)


@recogniser("r2plus1d_r50", spec=_spec(16, 4), views=_views(THIRTY), source=_source("R2PLUS1D_16x4_R50.pyth"))
def r2plus1d_r50(weights: Weights, changes: Changes) -> Recogniser:
    """A ResNet of 50 layers whose convolutions are over time and over space in turn."""
    return _residual("r2plus1d_r50", weights, changes)


@recogniser(
    "slowfast_r50",
    spec=_spec(32, 2),
    views=_views(THIRTY, 256, MINI_KINETICS),
    source=_source("SLOWFAST_8x8_R50.pyth"),
)
def slowfast_r50(weights: Weights, changes: Changes) -> Recogniser:
    """SlowFast 8x8: a slow path of 8 frames, and a narrow fast one of 32, which the clip is for."""
    return _two_paths("slowfast_r50", weights, changes)


@recogniser("slowfast_r50_4x16", spec=_spec(32, 2), views=_views(THIRTY, 256), source=_source("SLOWFAST_4x16_R50.pyth"))
def slowfast_r50_4x16(weights: Weights, changes: Changes) -> Recogniser:
    """SlowFast 4x16: a slow path of 4 frames."""
    return _two_paths("slowfast_r50_4x16", weights, changes)


@recogniser("x3d_xs", spec=_spec(4, 12, 182), views=_views(THIRTY, 160), source=_source("X3D_XS.pyth"))
def x3d_xs(weights: Weights, changes: Changes) -> Recogniser:
    """X3D, extra small: filters see each channel by itself."""
    return _channelwise("x3d_xs", weights, changes)


@recogniser("x3d_s", spec=_spec(13, 6, 182), views=_views(THIRTY, 160), source=_source("X3D_S.pyth"))
def x3d_s(weights: Weights, changes: Changes) -> Recogniser:
    """X3D, small: the same network on more frames."""
    return _channelwise("x3d_s", weights, changes)


@recogniser(
    "x3d_m",
    spec=_spec(16, 5),
    views=_views(THIRTY, 224, MINI_KINETICS),
    source=_source("X3D_M.pyth"),
)
def x3d_m(weights: Weights, changes: Changes) -> Recogniser:
    """X3D, medium: the same network on larger frames."""
    return _channelwise("x3d_m", weights, changes)


@recogniser("x3d_l", spec=_spec(16, 5, 356), views=_views(THIRTY, 312), source=_source("X3D_L.pyth"))
def x3d_l(weights: Weights, changes: Changes) -> Recogniser:
    """X3D, large: twice as many blocks."""
    return _channelwise("x3d_l", weights, changes)


@recogniser("mvit_base_16x4", spec=_spec(16, 4, 224), views=_views(FIVE), source=_source("MVIT_B_16x4.pyth"))
def mvit_base_16x4(weights: Weights, changes: Changes) -> Recogniser:
    """Multiscale transformer, first version, base; torchvision's mvit_v1_b is the same network."""
    return _multiscale("mvit_base_16x4", weights, changes)


@recogniser("mvit_base_32x3", spec=_spec(32, 3, 224), views=_views(FIVE), source=_source("MVIT_B_32x3_f294077834.pyth"))
def mvit_base_32x3(weights: Weights, changes: Changes) -> Recogniser:
    """The same on twice as many frames."""
    return _multiscale("mvit_base_32x3", weights, changes)


Build = Callable[[int], nn.Module]


def _residual(name: str, weights: Weights, changes: Changes) -> Recogniser:
    config = video_resnet.CONFIGS[name]
    block = 6 if config.halves_time else 5
    tensors = _renamed(weights, partial(public_names.convolutional, pooled=config.halves_time))
    return _filled(name, lambda n: video_resnet.VideoResNet(replace(config, classes=n)), tensors, changes, block)


def _two_paths(name: str, weights: Weights, changes: Changes) -> Recogniser:
    tensors = _renamed(weights, public_names.convolutional)
    config = slowfast.CONFIGS[name]
    return _filled(name, lambda n: slowfast.SlowFast(replace(config, classes=n)), tensors, changes, 6)


def _channelwise(name: str, weights: Weights, changes: Changes) -> Recogniser:
    tensors = _renamed(weights, partial(public_names.convolutional, channelwise=True))
    normed = isinstance(tensors, Mapping) and "blocks.1.res_blocks.0.branch1_norm.weight" in tensors
    config = replace(x3d.CONFIGS[name], first_norm=normed)
    return _filled(name, lambda n: x3d.X3d(replace(config, classes=n)), tensors, changes, 5)


def _multiscale(name: str, weights: Weights, changes: Changes) -> Recogniser:
    spec = recognisers[name].input_spec(changes)
    tensors = _renamed(weights, public_names.multiscale)
    config = mvit.MvitConfig(spec.frames, spec.shrunk or spec.size)
    if isinstance(tensors, Mapping):
        config = _clip_of_positions(tensors, config)
        if (config.frames, config.size) != (spec.frames, spec.shrunk or spec.size):
            raise BadValue(
                f"{name}: these weights know positions of {config.frames} frames of {config.size} by {config.size}; "
                f"leave frames and size at that"
            )
    return with_weights(name, lambda n: mvit.Mvit(replace(config, classes=n)), spec, tensors, head="head.proj.bias")


def _clip_of_positions(weights: Mapping[str, Tensor], default: mvit.MvitConfig) -> mvit.MvitConfig:
    """Return the config of the position tables in the weights; `default` if they are missing."""
    space, time = (weights.get(f"cls_positional_encoding.pos_embed_{axis}") for axis in ("spatial", "temporal"))
    if space is None or time is None:
        return default
    return mvit.MvitConfig(2 * time.shape[1], 4 * isqrt(space.shape[1]))


def _renamed(weights: Weights, rename: Callable[[Mapping[str, Tensor]], Mapping[str, Tensor]]) -> Weights:
    return rename(weights) if isinstance(weights, Mapping) else weights


def _filled(name: str, build: Build, weights: Weights, changes: Changes, block: int) -> Recogniser:
    return with_weights(name, build, recognisers[name].input_spec(changes), weights, head=f"blocks.{block}.proj.bias")
