"""What the weights of a network are known by, wherever they came from."""

from __future__ import annotations

import hashlib

import torch
from torch import nn


def tensors_fingerprint(thing: object) -> str | None:
    """`sha256:` and a hash of the names, shapes and values of a module's tensors; None for what is no module."""
    network = getattr(thing, "network", thing)  # a recogniser has its network inside
    if not isinstance(network, nn.Module):
        return None
    made = hashlib.sha256()
    for name, tensor in sorted(network.state_dict().items()):
        plain = tensor.detach().cpu().contiguous()
        made.update(f"{name} {plain.dtype} {tuple(plain.shape)}\n".encode())
        made.update(plain.reshape(-1).view(torch.uint8).numpy().data)
    return f"sha256:{made.hexdigest()}"
