"""Generated inputs of the golden results of BasicTAD; `detectors2/README.md` describes them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from golden import by_rule

FORMS = ("ab6", "afs3", "afm6")
SEEDS = {"ab6": 8101, "afs3": 8201, "afm6": 8301}
CLIPS = {"ab6": 8111, "afs3": 8211, "afm6": 8311}  # seed of the first
OPS = 8001
DIGESTS = {
    "ab6": "c404e43f2cdb7f63b1d4138e9e3db61f31f66a0d28d68508695ca2143d6cf2d0",
    "afs3": "ec2df907d77e79ffa900e14fc3a2b3f62cb7aa7c764dfcd56d4068223b7a2a69",
    "afm6": "01eb0a166013240d1773972c2282a7bace7baf4f7cb2de9d62bbfed03af65d2c",
}
WINDOWS = {"ab6": ((0, 64), (48, 102)), "afs3": ((0, 32), (24, 51)), "afm6": ((0, 64), (48, 102))}  # first, end
LONG: dict[str, Any] = {"max_length": 64, "clip_stride": 48, "backbone_width": 0.125}
SIZES: dict[str, dict[str, Any]] = {
    "ab6": {**LONG, "dim": 32, "neck_dim": 64},
    "afs3": {**LONG, "dim": 256, "max_length": 32, "clip_stride": 24},
    "afm6": {**LONG, "dim": 256},
}
RULE = (
    (r"running_var$", 0.6, 0.5),
    (r"running_mean$", 0.0, 0.3),
    (r"p_conv\.bias$", 0.0, 1.2),
    (r"^head\.(retina_cls|fcos_cls)\.bias$", -5.0, 1.0),
    (r"^head\.cls\.bias$", 0.0, 1.0),
    (r"^head\.(retina_reg|fcos_reg|reg)\.bias$", 0.2, 0.5),
    (r"\.bias$", 0.0, 0.2),
)
GAINS = (
    (r"^backbone\..*branch2\.conv_c\.weight$", 0.4),
    (r"^backbone\.", 1.0),
    (r"^neck\.", 0.45),
    (r"^head\.(cls|reg)_convs\.\d\.conv\.weight$", 0.75),
    (r"^head\.retina_(cls|reg)\.weight$", 0.1),
    (r"^head\.", 1.0),
    (r"", 1.5),
)


def keys(form: str) -> list[str]:
    """Return names and sizes of the tensors, in their order, without the second copy of the backbone."""
    return (by_rule.GOLDEN / f"detectors2/basictad/keys_{form}.txt").read_text().splitlines()


def drawn(form: str, seed: int) -> dict[str, npt.NDArray[Any]]:
    """Generate every tensor of these keys."""
    return by_rule.weights(keys(form), seed, lambda name: next(g for p, g in GAINS if re.search(p, name)), RULE)


def weights(form: str) -> dict[str, npt.NDArray[Any]]:
    """Generate every tensor of a detector."""
    tensors = drawn(form, SEEDS[form])
    assert by_rule.digest(tensors.values()) == DIGESTS[form]
    return tensors


def public(form: str) -> dict[str, npt.NDArray[Any]]:
    """Generate a checkpoint as the program saves it: with a second backbone and an unused classifier."""
    tensors = weights(form)
    trunk = {key.replace("backbone.", "backbone._model."): value for key, value in tensors.items() if "backbone" in key}
    classifier = {"weight": np.zeros((400, 256), np.float32), "bias": np.zeros(400, np.float32)}
    return {**tensors, **trunk, **{f"backbone._model.blocks.5.proj.{key}": value for key, value in classifier.items()}}


def clip(frames: int, seed: int) -> npt.NDArray[np.float32]:
    """Generate a clip (1, 3, T, 48, 64) of coloured blocks with noise, normalised as for the network."""
    rng = np.random.Generator(np.random.PCG64(seed))
    blocks = rng.random((3, -(-frames // 4), 3, 4))
    fine = rng.random((3, frames, 48, 64))
    for axis, n in ((1, 4), (2, 16), (3, 16)):
        blocks = np.repeat(blocks, n, axis=axis)
    return (1.5 * (2.0 * blocks[:, :frames] - 1.0) + 0.5 * (2.0 * fine - 1.0)).astype(np.float32)[None]


def window(form: str, number: int) -> npt.NDArray[np.float32]:
    """Generate one of the two clips of a video, padded with 0 beyond its end."""
    length = SIZES[form]["max_length"]
    first, end = WINDOWS[form][number]
    result = clip(length, CLIPS[form] + number)
    result[:, :, end - first :] = 0
    return result


def uniform(shape: tuple[int, ...], seed: int, low: float = -1.0, high: float = 1.0) -> npt.NDArray[np.float32]:
    """Generate uniform numbers from `low` to `high`."""
    rng = np.random.Generator(np.random.PCG64(OPS + seed))
    return (low + (high - low) * rng.random(shape)).astype(np.float32)
