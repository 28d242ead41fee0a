"""The first draws of many generators at once: what `rng_for` would give for each key, without a generator for each.

NumPy's SFC64 (Chris Doty-Humphrey's small fast counting generator) and how NumPy seeds it. Making one takes NumPy
longer than a GPU takes for a frame.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.compiled import inlined, kernel

Array = npt.NDArray[Any]

POOL = 4  # words of 32 bits that a seed is spread over


def first_uniform(keys: npt.NDArray[np.uint64], low: float, high: float) -> npt.NDArray[np.float64]:
    """What `uniform(low, high)` gives first."""
    words = _first_words(keys, 1)[:, 0]
    return np.asarray(low + (high - low) * ((words >> np.uint64(11)) * 2.0**-53), np.float64)


def first_integers(keys: npt.NDArray[np.uint64], *stops: int) -> npt.NDArray[np.int64]:
    """(N, stops) what `integers(stop)` gives for each stop in turn; each from 1 to below 2**32."""
    made = np.zeros((len(keys), len(stops)), np.int64)
    _bounded(_states(keys), np.array(stops, np.uint64), made)
    return made


def _first_words(keys: npt.NDArray[np.uint64], count: int) -> npt.NDArray[np.uint64]:
    words = np.empty((len(keys), count), np.uint64)
    _follow(_states(keys), words)
    return words


def _states(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    states = np.empty((len(keys), 4), np.uint64)
    _seed(keys, states)
    return states


@inlined
def _hashed(value: np.uint32, constant: np.uint32, factor: np.uint32) -> tuple[np.uint32, np.uint32]:
    value = np.uint32(value ^ constant)
    constant = np.uint32(constant * factor)
    value = np.uint32(value * constant)
    return np.uint32(value ^ (value >> np.uint32(16))), constant


@inlined
def _joined(x: np.uint32, y: np.uint32) -> np.uint32:
    result = np.uint32(np.uint32(np.uint32(0xCA01F9DD) * x) - np.uint32(np.uint32(0x4973F715) * y))
    return np.uint32(result ^ (result >> np.uint32(16)))


@kernel
def _seed(keys: Array, states: Array) -> None:
    pool = np.empty(POOL, np.uint32)
    words = np.empty(6, np.uint32)
    for n in range(len(keys)):
        constant = np.uint32(0x43B0D7E5)
        for i in range(POOL):
            part = np.uint32(0)
            if i < 2:
                part = np.uint32((keys[n] >> np.uint64(32 * i)) & np.uint64(0xFFFFFFFF))
            pool[i], constant = _hashed(part, constant, np.uint32(0x931E8875))
        for source in range(POOL):
            for target in range(POOL):
                if source != target:
                    value, constant = _hashed(pool[source], constant, np.uint32(0x931E8875))
                    pool[target] = _joined(pool[target], value)
        constant = np.uint32(0x8B51F9DD)
        for i in range(6):
            words[i], constant = _hashed(pool[i % POOL], constant, np.uint32(0x58F38DED))
        for i in range(3):
            states[n, i] = np.uint64(words[2 * i]) | (np.uint64(words[2 * i + 1]) << np.uint64(32))
        states[n, 3] = np.uint64(1)
        for _ in range(12):
            _next(states[n])


@inlined
def _next(state: Array) -> np.uint64:
    drawn: np.uint64 = state[0] + state[1] + state[3]
    state[3] += np.uint64(1)
    state[0] = state[1] ^ (state[1] >> np.uint64(11))
    state[1] = state[2] + (state[2] << np.uint64(3))
    state[2] = ((state[2] << np.uint64(24)) | (state[2] >> np.uint64(40))) + drawn
    return drawn


@kernel
def _follow(states: Array, words: Array) -> None:
    for n in range(len(states)):
        for i in range(words.shape[1]):
            words[n, i] = _next(states[n])


@kernel
def _bounded(states: Array, stops: Array, made: Array) -> None:
    """By Lemire's method, from half words, the lower half first."""
    half = np.uint64(0xFFFFFFFF)
    for n in range(len(states)):
        kept, is_kept = np.uint64(0), False
        for i in range(len(stops)):
            stop = stops[i]
            if stop == np.uint64(1):
                continue
            least = (half - (stop - np.uint64(1))) % stop
            while True:
                if is_kept:
                    drawn, is_kept = kept, False
                else:
                    word = _next(states[n])
                    drawn, kept, is_kept = word & half, word >> np.uint64(32), True
                product = drawn * stop
                if (product & half) >= least:
                    break
            made[n, i] = np.int64(product >> np.uint64(32))
