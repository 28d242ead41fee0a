"""How detectors are trained in the study: each treatment is what it changes in the settings of a clean run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jostle.core.config import make_settings
from jostle.training.detection_config import TrainingConfig
from studies.cells import CORRUPTIONS

DETECTORS = ("actionformer", "tridet", "temporalmaxer")
# Of the term that sums over all points of a batch: the released weights are for two videos a step, here are sixteen.
WEIGHT = {"actionformer": 0.3 / 8, "tridet": 1.3 / 8, "temporalmaxer": 1.3 / 8, "vsgn": 1.3 / 8}

OPTIMISER: dict[str, Any] = {
    "lr": 1.5e-3,
    "warmup_epochs": 5,
    "epochs": 25,
    "weight_decay": 0.05,
    "batch": 16,
    "average": 0.99,
    "average_ramp": False,
}


@dataclass(frozen=True)
class Treatment:
    """A way to train.

    Attributes:
        data: changes to `data`; `{features}` stands for the folder of the extractor's features.
        consistency: changes to `consistency`, besides its weight.
        weight: of the consistency, as a multiple of the detector's own; 0 for none.
    """

    data: Mapping[str, Any]
    consistency: Mapping[str, Any]
    weight: float = 1.0


def _drop(**changes: Any) -> dict[str, Any]:
    return {"drop": {"struck": "{features}/black_frame", "placement": "pair", **changes}}


def _fixed(corruption: str) -> dict[str, Any]:
    return {"corrupted": "{features}/pair-" + corruption}


TREATMENTS: dict[str, Treatment] = {
    "clean": Treatment({}, {}),
    "clean, two views": Treatment({"views": 2}, {}),
    "drop": Treatment({**_drop(), "learn_from": "corrupted"}, {}, 0.0),
    "drop + TRC": Treatment(_drop(), {}),
    # Table E
    "drop in actions + TRC": Treatment(_drop(placement="each:1"), {}),
    "drop in actions": Treatment({**_drop(placement="each:1"), "learn_from": "corrupted"}, {}, 0.0),
    # The released program: pairs that end with their action, drawn once.
    "released drop + TRC": Treatment(_drop(placement="pair:released", fresh=False), {}),
    "fixed drop": Treatment({**_drop(fresh=False), "learn_from": "corrupted"}, {}, 0.0),
    # Tables A and B
    "drop + TRC, action": Treatment(_drop(), {"selection": "action"}),
    "drop + TRC, video": Treatment(_drop(), {"selection": "video"}),
    "drop + MSE": Treatment(_drop(), {"divergence": "mse"}, 8.0),
    "drop + KL": Treatment(_drop(), {"divergence": "kl"}),
    # Why TRC gives what it gives
    "drop + TRC x 1/4": Treatment(_drop(), {}, 0.25),
    "drop + TRC x 4": Treatment(_drop(), {}, 4.0),
    "drop + TRC x 16": Treatment(_drop(), {}, 16.0),
    "drop + TRC, paper": Treatment(_drop(), {"form": "paper"}, 8.0),
    "drop + TRC, paper x 10": Treatment(_drop(), {"form": "paper"}, 80.0),
    "both": Treatment({**_drop(), "learn_from": "both"}, {}, 0.0),
    "both + TRC": Treatment({**_drop(), "learn_from": "both"}, {}),
    # A stronger drop than the paper's: as many frames in a row as the hardest cells strike.
    "drop x 8": Treatment({**_drop(placement="pair:x8"), "learn_from": "corrupted"}, {}, 0.0),
    "drop x 8 + TRC": Treatment(_drop(placement="pair:x8"), {}),
    "both x 8 + TRC": Treatment({**_drop(placement="pair:x8"), "learn_from": "both"}, {}),
    # Table 6
    **{f"fixed {name} + TRC": Treatment(_fixed(name), {}) for name in CORRUPTIONS},
    **{f"fixed {name}": Treatment({**_fixed(name), "learn_from": "corrupted"}, {}, 0.0) for name in CORRUPTIONS},
}


def settings_for(
    detector: str, treatment: str, *, features: Path, truth: Path, network: Path, seed: int
) -> TrainingConfig:
    """The settings of one training run."""
    found = TREATMENTS[treatment]
    data: dict[str, Any] = {"features": str(features / "clean"), "truth": str(truth), "train": "training"}
    for key, value in found.data.items():
        if isinstance(value, dict):
            filled = {k: v.format(features=features) if isinstance(v, str) else v for k, v in value.items()}
            data[key] = {**filled, "weights": str(network)}
        else:
            data[key] = value.format(features=features) if isinstance(value, str) else value
    return make_settings(
        TrainingConfig,
        {
            "detector": f"{detector}_puppets",
            "data": data,
            "optimiser": OPTIMISER,
            "consistency": {"weight": found.weight * WEIGHT[detector], **found.consistency},
            "seed": seed,
            "save_every": 1e9,
        },
    )
