"""Generated inputs of the golden results: weights, features and clips, reproduced from their seeds."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

GOLDEN = Path(__file__).parent

DETECTORS = ("actionformer", "tridet", "temporalmaxer")
SMALL: dict[str, Any] = {"input_dim": 32, "dim": 64, "classes": 5, "max_length": 576, "levels": 6}
SIZES: dict[str, dict[str, Any]] = {
    "actionformer": {**SMALL, "window": 19, "heads": 4, "mlp_dim": 256},
    "tridet": {**SMALL, "mlp_dim": 96, "sgp_window": 1, "sgp_k": 5, "bins": 16},
    "temporalmaxer": SMALL,
}
SEEDS = {"actionformer": 1101, "tridet": 1201, "temporalmaxer": 1301}  # of the averaged weights; the raw ones have + 1
VIDEOS = {"vid_a": (400, 11, 53.7333), "vid_b": (576, 21, 77.2)}  # rows, seed, seconds

# Centre and half-width of the weights, by the first expression that fits their name.
RULE = (
    (r"(pos_embed_\w+|cls_token)$", 0.0, 0.5),
    (r"running_var$", 0.6, 0.5),
    (r"running_mean$", 0.0, 0.3),
    (r"drop_path_\w+\.scale$", 0.3, 0.2),
    (r"reg_head\.scale\.\d+\.scale$", 1.0, 0.4),
    (r"^cls_head\.cls_head\.conv\.bias$", -6.2, 1.5),
    (r"^(start|end)_head\.cls_head\.conv\.bias$", -1.0, 1.0),
    (r"^reg_head\.offset_head\.conv\.bias$", 0.4, 0.6),
    (r"\.bias$", 0.0, 0.2),
)


def stored(name: str) -> dict[str, Any]:
    """Load the arrays of a golden file."""
    with np.load(GOLDEN / name) as file:
        return {key: file[key] for key in file.files}


def shapes(keys: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Parse lines of a tensor name and its sizes into shapes by name."""
    return {name: tuple(int(n) for n in sizes) for name, *sizes in (line.split() for line in keys)}


def weights(
    keys: Iterable[str],
    seed: int,
    gain: float | Callable[[str], float] = 1.5,
    rule: Sequence[tuple[str, float, float]] = RULE,
) -> dict[str, npt.NDArray[Any]]:
    """Generate every tensor in the order of the keys, uniformly distributed around its centre."""
    rng = np.random.Generator(np.random.PCG64(seed))
    tensors: dict[str, npt.NDArray[Any]] = {}
    for name, shape in shapes(keys).items():
        if name.endswith("num_batches_tracked"):
            tensors[name] = np.zeros((), np.int64)
            continue
        norm = len(shape) == 1 or (len(shape) == 3 and shape[0] == 1 and shape[2] == 1)
        wide = (1.0, 0.4) if norm else (0.0, _gain(gain, name) * math.sqrt(3.0 / max(math.prod(shape[1:]), 1)))
        centre, half = next(((c, a) for pattern, c, a in rule if re.search(pattern, name)), wide)
        values = rng.random(math.prod(shape))  # centre + half * (2 * value - 1), in place as there are many millions
        values *= 2.0
        values -= 1.0
        values *= half
        values += centre
        tensors[name] = values.astype(np.float32).reshape(shape)
    return tensors


def features(video: str, *, corrupted: bool = False) -> npt.NDArray[np.float32]:
    """Generate the features of a video; if corrupted, two rows in five are replaced by another draw."""
    rows, seed, _ = VIDEOS[video]
    result = rows_of(rows, 32, seed)
    if corrupted:
        corrupted_rows = np.isin(np.arange(rows) % 5, (1, 2))
        result[corrupted_rows] = rows_of(rows, 32, seed + 1)[corrupted_rows]
    return result


def digest(arrays: Iterable[npt.NDArray[Any]]) -> str:
    """Return the SHA-256 of the float32 arrays, in order."""
    hasher = hashlib.sha256()
    for x in arrays:
        if x.dtype == np.float32:
            hasher.update(np.ascontiguousarray(x).astype("<f4").tobytes())
    return hasher.hexdigest()


def _gain(gain: float | Callable[[str], float], name: str) -> float:
    return gain(name) if callable(gain) else gain


def clip(frames: int, size: int, seed: int) -> npt.NDArray[np.float32]:
    """Generate a clip (1, 3, T, H, W) of coloured blocks with noise, from -1 to 1."""
    rng = np.random.Generator(np.random.PCG64(seed))
    blocks = rng.random((3, -(-frames // 4), -(-size // 32), -(-size // 32)))
    fine = rng.random((3, frames, size, size))
    for axis, n in ((1, 4), (2, 32), (3, 32)):
        blocks = np.repeat(blocks, n, axis=axis)
    pixels = 0.7 * (2.0 * blocks[:, :frames, :size, :size] - 1.0) + 0.3 * (2.0 * fine - 1.0)
    return pixels.astype(np.float32)[None]


def rows_of(rows: int, width: int, seed: int) -> npt.NDArray[np.float32]:
    """Generate feature rows, each with its own magnitude."""
    rng = np.random.Generator(np.random.PCG64(seed))
    strength = rng.random(rows)
    noise = rng.random((rows, width))
    return ((0.02 + 1.5 * strength * strength)[:, None] * (2.0 * noise - 1.0)).astype(np.float32)
