"""Generated inputs of the golden results of E2E-TAD; `detectors2/README.md` describes them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from golden import by_rule
from golden.basictad_rule import clip

OPS = 7001
SEED = 7101
CLIPS = (7111, 7112)
DIGESTS = {
    "small": "cd2e0b38291332ddd70faa43955b95029df56c1e08c015b03fe3e69080cb7ea5",
    "slowfast_r50": "f9cb50a939406d4a5a4c641cd7153836506addc5d33d14d56905c369d7fb332a",
    "tsm_r50": "75e9bb2cf88f418fef8a7207c768021a4c867e6a044817b3db8eb762e15aa0b3",
    "tsm_r18": "56392104728caaecfa2f56eae93d8f56781ba7da8eb06b56c86e51d1d69652d8",
}
TRUNKS = {"slowfast_r50": (7201, 32), "tsm_r50": (7211, 8), "tsm_r18": (7221, 8)}  # seed of the weights, frames
SIZES: dict[str, Any] = {
    "dim": 64, "classes": 5, "max_length": 64, "clip_stride": 48, "backbone_width": 0.25, "heads": 8, "points": 4,
    "encoder_layers": 2, "decoder_layers": 3, "mlp_dim": 96, "queries": 12, "dropout": 0.0,
}  # fmt: skip
RULE = (
    (r"running_var$", 0.6, 0.5),
    (r"running_mean$", 0.0, 0.3),
    (r"level_embed$", 0.0, 0.5),
    (r"query_embed\.weight$", 0.0, 1.5),
    (r"in_proj_bias$", 0.0, 0.2),
    (r"sampling_offsets\.bias$", 0.0, 2.5),
    (r"^class_embed\.\d+\.bias$", -2.5, 1.5),
    (r"^segment_embed\.\d+\.layers\.2\.bias$", -0.3, 0.4),
    (r"\.bias$", 0.0, 0.2),
)
GAINS = (
    (r"^backbone\..*(conv3\.conv|layer\d\.\d\.conv3)\.weight$", 0.4),
    (r"^backbone\.", 1.0),
    (r"sampling_offsets\.weight$", 0.5),
    (r"^segment_embed\.\d+\.layers\.2\.weight$", 0.25),
    (r"^class_embed\.", 0.8),
    (r"", 1.5),
)


def keys(name: str) -> list[str]:
    """Return names and sizes of the tensors, in their order, without the second copy of `segment_embed`."""
    return (by_rule.GOLDEN / f"detectors2/e2e_tad/keys_{name}.txt").read_text().splitlines()


def drawn(lines: list[str], seed: int) -> dict[str, npt.NDArray[Any]]:
    """Generate every tensor of these keys."""
    return by_rule.weights(lines, seed, lambda name: next(g for p, g in GAINS if re.search(p, name)), RULE)


def weights() -> dict[str, npt.NDArray[Any]]:
    """Generate every tensor of the small detector."""
    tensors = drawn(keys("small"), SEED)
    assert by_rule.digest(tensors.values()) == DIGESTS["small"]
    return tensors


def public() -> dict[str, npt.NDArray[Any]]:
    """Generate a checkpoint as the program saves it, which has `segment_embed` twice."""
    tensors = weights()
    duplicates = {
        f"transformer.decoder.{key}": value for key, value in tensors.items() if key.startswith("segment_embed.")
    }
    return {**tensors, **duplicates}


def trunk(name: str, shapes: dict[str, tuple[int, ...]]) -> dict[str, npt.NDArray[Any]]:
    """Generate every tensor of a backbone of the published width, with its own names.

    Args:
        shapes: shapes of its tensors; SlowFast has the order of the small detector.
    """
    prefix = "backbone.backbone."
    if name == "slowfast_r50":
        names = [line.split()[0] for line in keys("small") if line.startswith(prefix)]
        lines = [" ".join([key, *map(str, shapes[key.removeprefix(prefix)])]) for key in names]
    else:
        lines = keys(name)
    tensors = drawn(lines, TRUNKS[name][0])
    assert by_rule.digest(tensors.values()) == DIGESTS[name]
    return {key.removeprefix(prefix): value for key, value in tensors.items()}


def trunk_clip(name: str) -> npt.NDArray[np.float32]:
    """Generate the input clip of a backbone."""
    seed, frames = TRUNKS[name]
    return clip(frames, seed + 1)


def clips() -> npt.NDArray[np.float32]:
    """Generate two clips (2, 3, 64, 48, 64), normalised as for the network."""
    return np.concatenate([clip(64, seed) for seed in CLIPS])


def uniform(shape: tuple[int, ...], seed: int, low: float = -1.0, high: float = 1.0) -> npt.NDArray[np.float32]:
    """Generate uniform numbers from `low` to `high`."""
    rng = np.random.Generator(np.random.PCG64(OPS + seed))
    return (low + (high - low) * rng.random(shape)).astype(np.float32)
