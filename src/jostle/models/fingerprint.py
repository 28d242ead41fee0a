"""Fingerprints of the weights of networks."""

from __future__ import annotations

import hashlib

import torch
from torch import nn


def tensors_fingerprint(thing: object) -> str | None:
    """Return `sha256:` and a hash of the names, shapes and values of a module's tensors, or None."""
    network = getattr(thing, "network", thing)  # a recogniser has its network inside
    if not isinstance(network, nn.Module):
        return None
    digest = hashlib.sha256()
    for name, tensor in sorted(network.state_dict().items()):
        plain = tensor.detach().cpu().contiguous()
        digest.update(f"{name} {plain.dtype} {tuple(plain.shape)}\n".encode())
        digest.update(plain.reshape(-1).view(torch.uint8).numpy().data)
    return f"sha256:{digest.hexdigest()}"
