"""Keyed random streams inside compiled kernels: one stream a row, so rows may be done in any order or at once.

The generator is xoroshiro128+ (Blackman and Vigna, 2018), started by splitmix64 (Steele, Lea and Flood, 2014).
"""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.core.kernels import inlined, kernel

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@inlined
def mix(z: np.uint64) -> np.uint64:
    """Return Splitmix64's scrambling of one word."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inlined
def start(key: np.uint64, row: int) -> tuple[np.uint64, np.uint64]:
    """Return the initial state of the stream of one row."""
    first = mix(key + np.uint64(2 * row + 1) * GOLDEN)
    return first, mix(first + GOLDEN)


@inlined
def step(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the next state; the word drawn is the sum of the state before."""
    b ^= a
    a = ((a << np.uint64(24)) | (a >> np.uint64(40))) ^ b ^ (b << np.uint64(16))
    return a, (b << np.uint64(37)) | (b >> np.uint64(27))


@kernel
def draw(words: npt.NDArray[np.uint64], key: np.uint64, row: int) -> None:
    """Fill `words` from the stream of one row."""
    a, b = start(key, row)
    for i in range(len(words)):
        words[i] = a + b
        a, b = step(a, b)


@kernel
def draw_two(words: npt.NDArray[np.uint64], key: np.uint64, row: int) -> None:
    """Fill two lines of `words` from the streams of this row and the next; each word waits for the one before it."""
    (a, b), (c, d) = start(key, row), start(key, row + 1)
    line, other = words[0], words[1]
    for i in range(len(line)):
        line[i] = a + b
        other[i] = c + d
        a, b = step(a, b)
        c, d = step(c, d)


@inlined
def pick_folded(line: npt.NDArray[Any], chance: npt.NDArray[np.uint16], table: npt.NDArray[Any]) -> None:
    """Fill `line` by random bits, from the 32,768 values above the middle of a symmetric table.

    16 bits stand for a place in the whole table. Places below the middle, whose highest bit is 0, are folded upwards;
    the caller turns their values round.
    """
    # Folded in a loop of its own, which is done for many values at once; the look-ups then wait for nothing.
    for x in range(len(line)):
        below = np.uint16(0x7FFF) if chance[x] < np.uint16(0x8000) else np.uint16(0)
        chance[x] ^= below
    for x in range(len(line)):
        line[x] = table[chance[x] & np.uint16(0x7FFF)]


@lru_cache(1)
def upper_quantiles() -> npt.NDArray[np.float64]:
    """The standard normal at the midpoints of the upper half of 65,536 equal slices, up to 4.33 sigma."""
    return np.array([NormalDist().inv_cdf((i + 0.5) / 65536) for i in range(32768, 65536)])


def normal_quantiles() -> npt.NDArray[np.float64]:
    """Return both halves of the standard normal quantiles."""
    upper = upper_quantiles()
    return np.concatenate([-upper[::-1], upper])
