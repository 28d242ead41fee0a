"""Recognisers of PyTorchVideo and the SlowFast code base, trained on Kinetics-400, with specs and weights.

Networks are our own, with PyTorchVideo's parameter names. The SlowFast code base names the same tensors otherwise,
torchvision stacks some of MViT's, and programs put words in front of all of them; renamed tensors give the same scores.
Clips and crops are as the published accuracies were measured: frames evenly over a span, so that those of an 8x8
network are 9 apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from math import isqrt
from typing import Any

import torch
from torch import Tensor, nn

from jostle.errors import BadValue
from jostle.models.input_spec import InputSpec
from jostle.models.networks import mvit, slowfast, video_resnet, x3d
from jostle.models.recognition.recogniser import Changes, Recogniser, Weights, add_recogniser, recognisers, with_weights

Tensors = Mapping[str, Tensor]
Renaming = Iterable[tuple[str, str]]

IN_FRONT = ("module.", "model.", "_orig_mod.")

# Of a residual stage, for the convolutional networks alike.
_BLOCK = (
    (r"branch1\.", "branch1_conv."),
    (r"branch1_bn\.", "branch1_norm."),
    (r"branch2\.se\.fc1\.", "branch2.norm_b.1.block.0."),
    (r"branch2\.se\.fc2\.", "branch2.norm_b.1.block.2."),
    (r"branch2\.([abc])\.", r"branch2.conv_\1."),
    (r"branch2\.([abc])_bn\.", r"branch2.norm_\1."),
)
_TORCHVISION_MVIT = (
    (r"^conv_proj\.", "patch_embed.patch_model."),
    (r"^pos_encoding\.class_token$", "cls_positional_encoding.cls_token"),
    (r"^pos_encoding\.(spatial|temporal|class)_pos$", r"cls_positional_encoding.pos_embed_\1"),
    (r"\.attn\.project\.0\.", ".attn.proj."),
    (r"\.attn\.pool_([qkv])\.pool\.", r".attn.pool_\1."),
    (r"\.attn\.pool_([qkv])\.norm_act\.0\.", r".attn.norm_\1."),
    (r"\.mlp\.0\.", ".mlp.fc1."),
    (r"\.mlp\.3\.", ".mlp.fc2."),
    (r"^(blocks\.\d+)\.project\.", r"\1.proj."),
    (r"^norm\.", "norm_embed."),
    (r"^head\.1\.", "head.proj."),
)
_SLOWFAST_MVIT = (
    (r"^patch_embed\.proj\.", "patch_embed.patch_model."),
    (r"^(cls_token|pos_embed_\w+)$", r"cls_positional_encoding.\1"),
    (r"^norm\.", "norm_embed."),
    (r"^head\.projection\.", "head.proj."),
)


def strip_prefixes(weights: Tensors) -> Tensors:
    """Strip the prefixes that programs add to every name."""
    for _ in range(len(IN_FRONT)):
        for word in IN_FRONT:
            if weights and all(name.startswith(word) for name in weights):
                weights = {name.removeprefix(word): tensor for name, tensor in weights.items()}
    return weights


def convolutional(weights: Tensors, *, pooled: bool = False, channelwise: bool = False) -> Tensors:
    """Rename the weights of a video ResNet, whose stages are numbered as blocks.

    Args:
        pooled: whether a pool between the first two stages counts as a block too.
        channelwise: whether it is X3D, whose stem has two convolutions and whose head has layers of its own.
    """
    tensors = strip_prefixes(weights)
    if not any(re.match(r"s\d", name) for name in tensors):
        return tensors
    paths = 2 if any("pathway1" in name for name in tensors) else 1
    head = 6 if pooled or paths == 2 else 5
    return {_convolutional(name, paths, head, pooled, channelwise): tensor for name, tensor in tensors.items()}


def _convolutional(name: str, paths: int, head: int, pooled: bool, channelwise: bool) -> str:
    path = r"multipathway_blocks.\1." if paths == 2 else ""
    if match := re.match(r"s(\d+)", name):
        number = int(match[1])
        block = f"blocks.{number if pooled and number >= 3 else number - 1}."
        if "_stem." in name:
            # The one over time first: the new name of the other holds its old one.
            stem = (
                ((r"\.conv\.weight", ".conv.conv_xy.weight"), (r"m\.conv_xy\.", "m.conv.conv_t."))
                if channelwise
                else ()
            )
            for old, new in (*stem, (r"\.bn\.", ".norm.")):
                name = re.sub(old, new, name)
            return re.sub(r"^s\d+\.pathway(\d)_stem\.", block + path, name)
        if "_fuse." in name:
            name = name.replace("conv_f2s.", "conv_fast_to_slow.").replace("bn.", "norm.")
            return re.sub(r"^s\d+_fuse\.", block + "multipathway_fusion.", name)
        name = re.sub(r"^s\d+\.pathway(\d)_res(\d+)\.", rf"{block}{path}res_blocks.\2.", name)
        for old, new in _BLOCK:
            name = re.sub(old, new, name)
        return re.sub(r"\.norm_b\.(?!\d)", ".norm_b.0.", name) if channelwise else name
    parts = {"conv_5.": "pool.pre_conv.", "conv_5_bn.": "pool.pre_norm.", "lin_5.": "pool.post_conv."}
    for old, new in {**parts, "projection.": "proj."}.items():
        name = re.sub(rf"^head\.{re.escape(old)}", f"blocks.{head}.{new}", name)
    return name


def multiscale(weights: Tensors) -> Tensors:
    """Rename the weights of MViT, from PyTorchVideo, the SlowFast code base or torchvision."""
    tensors = strip_prefixes(weights)
    renaming: Renaming = ()
    if any(name.startswith("conv_proj.") for name in tensors):
        renaming = _TORCHVISION_MVIT
    elif "cls_token" in tensors:
        renaming = _SLOWFAST_MVIT
    renamed: dict[str, Tensor] = {}
    for old, tensor in tensors.items():
        if "_attention_pool_" in old:  # the same pools once more
            continue
        name = old
        for pattern, new in renaming:
            name = re.sub(pattern, new, name)
        if ".attn.qkv." in name:
            for part, third in zip("qkv", torch.tensor_split(tensor, 3), strict=True):
                renamed[name.replace(".qkv.", f".{part}.")] = third
        elif name.startswith("cls_positional_encoding."):
            renamed[name] = tensor.reshape(1, -1, tensor.shape[-1])
        else:
            renamed[name] = tensor
    return renamed


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


def _spec(frames: int, step: int, size: int) -> InputSpec:
    """Return the spec whose short side equals the size of test crops."""
    return InputSpec(frames, frames * step, size, size, step=step, **_ALL)


def _views(published: Changes, size: int, others: Mapping[str, Changes] | None) -> dict[str, Changes]:
    """Return the published views, and those of the study of Kinetics400-P (Schiappa et al., 2023) for crops of a size.

    Its program takes the first frame of each part of the whole video, cuts out more than it shows, and scales values as
    for ImageNet, which is not what these weights were trained with.
    """
    more = size * 5 // 4
    study = {"spread": "first", "resize": more, "size": more, "shrunk": size, **_IMAGENET}
    return {"published": published, "kinetics400-p": study, **(others or {})}


_ZOO = "https://dl.fbaipublicfiles.com/pytorchvideo/model_zoo/kinetics, or the same network's of the SlowFast code base"
# The study of Mini Kinetics-C (Yi et al., 2021) showed all networks as many frames, spread over the whole video.
MINI_KINETICS: Mapping[str, Changes] = {
    "kinetics-c": {"frames": 32, "spread": "even", "resize": 256, "size": 224, "joined": "logits"}
}


Build = Callable[[int], nn.Module]


def _residual(name: str, weights: Weights, changes: Changes) -> Recogniser:
    config = video_resnet.CONFIGS[name]
    block = 6 if config.halves_time else 5
    tensors = _renamed(weights, partial(convolutional, pooled=config.halves_time))
    return _filled(name, lambda n: video_resnet.VideoResNet(replace(config, classes=n)), tensors, changes, block)


def _two_paths(name: str, weights: Weights, changes: Changes) -> Recogniser:
    tensors = _renamed(weights, convolutional)
    config = slowfast.CONFIGS[name]
    return _filled(name, lambda n: slowfast.SlowFast(replace(config, classes=n)), tensors, changes, 6)


def _channelwise(name: str, weights: Weights, changes: Changes) -> Recogniser:
    tensors = _renamed(weights, partial(convolutional, channelwise=True))
    normed = isinstance(tensors, Mapping) and "blocks.1.res_blocks.0.branch1_norm.weight" in tensors
    config = replace(x3d.CONFIGS[name], first_norm=normed)
    return _filled(name, lambda n: x3d.X3d(replace(config, classes=n)), tensors, changes, 5)


def _multiscale(name: str, weights: Weights, changes: Changes) -> Recogniser:
    spec = recognisers[name].input_spec(changes)
    tensors = _renamed(weights, multiscale)
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


# What each is; its public weights, frames of a clip, frames from one to the next, and sizes of test crops, the second
# in the study of Kinetics400-P.
Row = tuple[str, tuple[str, int, int, int, int]]
RESIDUAL: dict[str, Row] = {
    "slow_r50": (
        'Slow: a ResNet of 50 layers that looks along time in its last two stages only; the "R3D" of Kinetics400-P.',
        ("SLOW_8x8_R50.pyth", 8, 8, 256, 224),
    ),
    "slow_r50_4x16": ("The same on half as many frames, twice as far apart.", ("SLOW_4x16_R50.pyth", 4, 16, 256, 224)),
    "i3d_r50": (
        'A ResNet of 50 layers that looks along time in every second block; the "I3D" of Kinetics400-P.',
        ("I3D_8x8_R50.pyth", 8, 8, 256, 224),
    ),
    "c2d_r50": (
        "A ResNet of 50 layers on single frames, pooled in pairs; the order of frames means little to it.",
        ("C2D_8x8_R50.pyth", 8, 8, 256, 224),
    ),
    "r2plus1d_r50": (
        "A ResNet of 50 layers whose convolutions are over time and over space in turn.",
        ("R2PLUS1D_16x4_R50.pyth", 16, 4, 256, 224),
    ),
}
TWO_PATHS: dict[str, Row] = {
    "slowfast_r50": (
        "SlowFast 8x8: a slow path of 8 frames, and a narrow fast one of 32, which the clip is for.",
        ("SLOWFAST_8x8_R50.pyth", 32, 2, 256, 256),
    ),
    "slowfast_r50_4x16": ("SlowFast 4x16: a slow path of 4 frames.", ("SLOWFAST_4x16_R50.pyth", 32, 2, 256, 256)),
}
CHANNELWISE: dict[str, Row] = {
    "x3d_xs": ("X3D, extra small: filters see each channel by itself.", ("X3D_XS.pyth", 4, 12, 182, 160)),
    "x3d_s": ("X3D, small: the same network on more frames.", ("X3D_S.pyth", 13, 6, 182, 160)),
    "x3d_m": ("X3D, medium: the same network on larger frames.", ("X3D_M.pyth", 16, 5, 256, 224)),
    "x3d_l": ("X3D, large: twice as many blocks.", ("X3D_L.pyth", 16, 5, 356, 312)),
}
MULTISCALE: dict[str, Row] = {
    "mvit_base_16x4": (
        "Multiscale transformer, first version, base; torchvision's mvit_v1_b is the same network.",
        ("MVIT_B_16x4.pyth", 16, 4, 224, 224),
    ),
    "mvit_base_32x3": ("The same on twice as many frames.", ("MVIT_B_32x3_f294077834.pyth", 32, 3, 224, 224)),
}
for _load, _rows in (
    (_residual, RESIDUAL),
    (_two_paths, TWO_PATHS),
    (_channelwise, CHANNELWISE),
    (_multiscale, MULTISCALE),
):
    _published = FIVE if _load is _multiscale else THIRTY
    for _name, (_summary, (_file, _frames, _step, _size, _crop)) in _rows.items():
        _others = MINI_KINETICS if _name in ("slowfast_r50", "x3d_m") else None
        add_recogniser(
            _name,
            _summary,
            _load,
            spec=_spec(_frames, _step, _size),
            views=_views(_published, _crop, _others),
            source=f"{_file} of {_ZOO}",
        )
