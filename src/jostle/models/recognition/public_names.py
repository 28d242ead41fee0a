"""Renaming of public weights to the parameter names of the networks, which are PyTorchVideo's.

The SlowFast code base names the same tensors otherwise, torchvision stacks some of MViT's, and programs put words in
front of all of them. Renamed tensors give the same scores.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import torch
from torch import Tensor

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
