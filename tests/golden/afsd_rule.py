"""Generated inputs of the golden results of AFSD; `detectors2/README.md` describes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from golden import by_rule

FORMS = ("thumos", "anet")
SEEDS = {"thumos": 6107, "anet": 6201}
NEAR = {"thumos": 2.4, "anet": 0.8}  # mean of the logarithms of distances
DIGESTS = {
    "thumos": "72646d35c4f8da245a7dfdab73f16fb4179b6a5dae5166bd51a2ef2d45ebe0f6",
    "anet": "50c5670dede7ba7a58dfcea008b72322cdb536838ffda508678e55dc1bb56618",
}
NAMES = {"thumos": "afsd_thumos", "anet": "afsd_anet"}
SMALL: dict[str, Any] = {"frame_size": 40, "crop": 32}
SIZES: dict[str, dict[str, Any]] = {
    "thumos": {**SMALL, "max_length": 128, "clip_stride": 64},
    "anet": {**SMALL, "max_length": 256, "clip_stride": 256},
}
# Frames and seed of the videos, in their order.
VIDEOS = {
    "thumos": {"vid_a": (300, 71), "vid_b": (200, 72), "vid_c": (128, 73)},
    "anet": {"v_p": (256, 81), "v_q": (190, 82), "v_r": (256, 81), "v_s": (190, 82)},
}


def keys(form: str) -> list[str]:
    """Return names and sizes of the tensors, in their order."""
    return (by_rule.GOLDEN / f"detectors2/afsd/{form}_keys.txt").read_text().splitlines()


def weights(form: str) -> dict[str, npt.NDArray[Any]]:
    """Generate every tensor of a public checkpoint."""
    rule = ((r"coarse_pyramid_detection\.loc_head\.conv1d\.bias$", NEAR[form], 0.3), *by_rule.RULE)
    tensors = by_rule.weights(keys(form), SEEDS[form], lambda name: 0.9 if name.startswith("backbone.") else 1.5, rule)
    assert by_rule.digest(tensors.values()) == DIGESTS[form]
    return tensors


def frames(form: str, video: str) -> npt.NDArray[np.uint8]:
    """Generate the frames (T, 40, 40, 3) of a video."""
    count, seed = VIDEOS[form][video]
    values = by_rule.clip(count, 40, seed)[0]
    pixels = np.clip(np.floor((values + np.float32(1)) * np.float32(128)), 0, 255).astype(np.uint8)
    return np.ascontiguousarray(pixels.transpose(1, 2, 3, 0))
