"""Networks of transformers so small that they are made in no time."""

from __future__ import annotations

import importlib
from typing import Any

from jostle.models.recognition.transformers import FAMILIES

TINY: dict[str, Any] = {
    "hidden_size": 24, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32, "num_labels": 3,
}  # fmt: skip
SIZES: dict[str, dict[str, Any]] = {
    "videomae": {"image_size": 32, "num_frames": 4, "decoder_hidden_size": 24, "decoder_num_attention_heads": 2},
    "timesformer": {"image_size": 32, "num_frames": 4},
    "vivit": {"image_size": 32, "num_frames": 4, "tubelet_size": [2, 16, 16]},
    "vjepa2": {
        "crop_size": 32, "frames_per_clip": 4, "pred_hidden_size": 24, "pred_num_attention_heads": 2,
        "pred_num_hidden_layers": 1, "num_pooler_layers": 1,
    },
}  # fmt: skip


def config_of(kind: str) -> Any:
    transformers = importlib.import_module("transformers")
    return getattr(transformers, FAMILIES[kind].config)(**TINY, **SIZES[kind])
