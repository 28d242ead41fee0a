"""Weights saved by OpenTAD, renamed to the originals' parameter names."""

from __future__ import annotations

import re
from collections.abc import Mapping

from torch import Tensor

_RENAMED = (
    (r"^projection\.embed\.(\d+)\.conv\.", r"backbone.embd.\1.conv."),
    (r"^projection\.embed\.(\d+)\.norm\.", r"backbone.embd_norm.\1."),
    (r"^projection\.", r"backbone."),
    (r"^rpn_head\.scale\.", r"reg_head.scale."),
    (r"^rpn_head\.reg_head\.", r"reg_head.offset_head.conv."),
    (r"^rpn_head\.reg_convs\.(\d+)\.conv\.", r"reg_head.head.\1.conv."),
    (r"^rpn_head\.reg_convs\.(\d+)\.norm\.", r"reg_head.norm.\1."),
    (r"^rpn_head\.cls_(start|end)_head\.", r"\1_head.cls_head.conv."),
    (r"^rpn_head\.cls_(start|end)_convs\.(\d+)\.conv\.", r"\1_head.head.\2.conv."),
    (r"^rpn_head\.cls_(start|end)_convs\.(\d+)\.norm\.", r"\1_head.norm.\2."),
    (r"^rpn_head\.cls_head\.", r"cls_head.cls_head.conv."),
    (r"^rpn_head\.cls_convs\.(\d+)\.conv\.", r"cls_head.head.\1.conv."),
    (r"^rpn_head\.cls_convs\.(\d+)\.norm\.", r"cls_head.norm.\1."),
    (r"^rpn_head\.loss_normalizer$", r"loss_normalizer"),
)
_CHANNEL_NORM = re.compile(r"(^|\.)(ln\d?|\w+_norm|\w*norms?\.\d+|\w+_norm\.\d+)\.(weight|bias)$")


def is_opentad(weights: Mapping[str, Tensor]) -> bool:
    """Whether the names are OpenTAD's."""
    return any(name.startswith(("rpn_head.", "projection.")) for name in weights)


def opentad_names(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Rename OpenTAD's weights, and reshape channel norms to (1, C, 1), as in the originals.

    >>> import torch
    >>> {k: tuple(v.shape) for k, v in opentad_names({"projection.embed.0.norm.bias": torch.zeros(4)}).items()}
    {'backbone.embd_norm.0.bias': (1, 4, 1)}
    """
    tensors = {}
    for name, tensor in weights.items():
        for pattern, ours in _RENAMED:
            renamed, hits = re.subn(pattern, ours, name)
            if hits:
                name = renamed
                break
        if tensor.ndim == 1 and _CHANNEL_NORM.search(name):
            tensor = tensor.view(1, -1, 1)
        tensors[name] = tensor
    return tensors
