"""Checkpoints in the layouts of the public programs, with generated weights."""

from __future__ import annotations

import argparse
import sys
import types
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from golden import by_rule

# File, epoch, warm-up epochs, total epochs, weight decay.
ORIGINALS: dict[str, tuple[str, int, int, int, float]] = {
    "actionformer": ("epoch_035.pth.tar", 35, 5, 35, 0.05),
    "tridet": ("epoch_039.pth.tar", 39, 20, 40, 0.025),
    "temporalmaxer": ("bestmodel.pth.tar", 65, 5, 65, 0.05),
}
OPENTAD = {"actionformer": ("epoch_34.pth", 34), "tridet": ("epoch_37.pth", 37), "temporalmaxer": ("epoch_50.pth", 50)}
NORMALISER = 87.25  # buffer of the head in OpenTAD


def drawn(name: str, *, averaged: bool = True) -> dict[str, torch.Tensor]:
    """Generate the weights of a detector with the original names; the raw ones are another draw."""
    keys = by_rule.stored(f"detectors/{name}.npz")["keys"].tolist()
    tensors = by_rule.weights(keys, by_rule.SEEDS[name] + (not averaged))
    return {key: torch.from_numpy(value) for key, value in tensors.items()}


def write_original(name: str, folder: Path) -> Path:
    """Write a checkpoint as the original program does, with fewer fields of the schedule and the optimiser.

    That of TemporalMaxer has a NumPy scalar, which an unsafe reader would unpickle by running code.
    """
    file, epoch, warmup, epochs, decay = ORIGINALS[name]
    decayed = by_rule.stored(f"detectors/{name}.npz")["optim_decayed"]
    groups = [(decay, np.flatnonzero(decayed)), (0.0, np.flatnonzero(~decayed))]
    content: dict[str, Any] = {
        "epoch": epoch,
        "state_dict": OrderedDict(_wrapped(drawn(name, averaged=False))),
        "scheduler": {"warmup_epochs": warmup, "max_epochs": epochs, "eta_min": 1e-8, "base_lrs": [1e-4, 1e-4]},
        "optimizer": {
            "state": {},
            "param_groups": [{"weight_decay": d, "lr": 0.0, "params": rows.tolist()} for d, rows in groups],
        },
        "state_dict_ema": OrderedDict(_wrapped(drawn(name))),
    }
    if name == "temporalmaxer":
        content["mAP"] = np.float64(0.6771)
    torch.save(content, folder / file)
    return folder / file


def write_opentad(name: str, folder: Path) -> Path:
    """Write a checkpoint as OpenTAD does: the same weights with its names, and the normaliser of the loss."""
    file, epoch = OPENTAD[name]
    content = {
        "epoch": epoch,
        "state_dict": _wrapped(_renamed(name, drawn(name, averaged=False))),
        "optimizer": {},
        "scheduler": {},
        "state_dict_ema": _wrapped(_renamed(name, drawn(name))),
    }
    torch.save(content, folder / file)
    return folder / file


class EasyDict(dict[str, Any]):
    """Dictionary with attribute access, in place of the class of the package `easydict`."""

    def __init__(self, content: Mapping[str, Any]) -> None:
        super().__init__(content)
        for key, value in content.items():
            setattr(self, key, value)


def write_e2e_tad(weights: Mapping[str, torch.Tensor], folder: Path) -> Path:
    """Write a checkpoint as E2E-TAD does, with arguments and settings of classes that are not needed for weights."""
    file = folder / "thumos14_e2e_slowfast_tadtr_reference.pth"
    settings = EasyDict({"lr": 1e-4, "lr_step": [14], "inner": EasyDict({"backbone": "slowfast"})})
    arguments = argparse.Namespace(seed=42, opt=[])
    content = {"model": weights, "epoch": 15, "args": arguments, "cfg": settings, "best_metric": 0.542}
    package = types.ModuleType("easydict")
    package.__dict__["EasyDict"] = EasyDict
    before = EasyDict.__module__
    sys.modules["easydict"], EasyDict.__module__ = package, "easydict"
    try:
        torch.save(content, file)
    finally:
        del sys.modules["easydict"]
        EasyDict.__module__ = before
    return file


def opentad_shapes(name: str) -> dict[str, tuple[int, ...]]:
    """Return the names and shapes of OpenTAD, in its order."""
    return {key: shape for key, _, shape in _opentad_keys(name)}


def _opentad_keys(name: str) -> list[tuple[str, str, tuple[int, ...]]]:
    lines = (line.split() for line in by_rule.stored(f"detectors/{name}.npz")["opentad_keys"].tolist())
    return [(key, original, tuple(map(int, shape))) for key, original, *shape in lines]


def _renamed(name: str, weights: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    keys = _opentad_keys(name)
    return {
        key: torch.tensor(NORMALISER) if original == "-" else weights[original].reshape(shape)
        for key, original, shape in keys
    }


def _wrapped(weights: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Add the prefix of torch's DataParallel to the names."""
    return {f"module.{key}": value for key, value in weights.items()}
