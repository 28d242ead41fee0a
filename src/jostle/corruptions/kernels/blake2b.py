"""Keys of many frames at once, equal to `FrameContext.key` or `key_for` of each.

BLAKE2b (Saarinen and Aumasson, RFC 7693) of at most a few hundred bytes, with eight bytes as its answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.core.kernels import inlined, kernel
from jostle.core.random import Part, encode_parts

Array = npt.NDArray[Any]

BLOCK = 128  # bytes that are hashed at a time
HEAD = 0x01010008  # no key, one thread, eight bytes wanted
LONGEST = 8 + 20  # bytes that a number is spelt with

START = np.array(
    [
        0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1,
        0x510E527FADE682D1, 0x9B05688C2B3E6C1F, 0x1F83D9ABFB41BD6B, 0x5BE0CD19137E2179,
    ],
    np.uint64,
)  # fmt: skip
ORDER = np.array(
    [
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
        [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
        [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
        [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
        [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
        [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
        [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
        [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
        [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    ],
    np.int64,
)  # fmt: skip


def frame_keys(
    seed: int, name: str, video_ids: Sequence[str], clip: Array, index: Array, *parts: Part
) -> npt.NDArray[np.uint64]:
    """Return the keys of frames under a corruption, by the index of each frame's video and its number."""
    words = messages(seed, name, video_ids, clip, index, *parts)
    keys = np.empty(len(index), np.uint64)
    _hash(words, keys)
    return keys


def keys_for(seeds: npt.NDArray[np.uint64], *parts: Part) -> npt.NDArray[np.uint64]:
    """Return `key_for` of each of these seeds, which are keys themselves."""
    after = np.frombuffer(encode_parts(*parts), np.uint8)
    words = np.zeros((len(seeds), -(-(LONGEST + len(after)) // BLOCK) * (BLOCK // 8) + 1), np.uint64)
    _spell_seeds(seeds, after, words, words.view(np.uint8))
    keys = np.empty(len(seeds), np.uint64)
    _hash(words, keys)
    return keys


def messages(seed: int, name: str, video_ids: Sequence[str], clip: Array, index: Array, *parts: Part) -> Array:
    """Return the (N, words) zero-padded messages to hash; the last word is the size in bytes."""
    first, after = (np.frombuffer(letters, np.uint8) for letters in (encode_parts(seed), encode_parts(*parts)))
    videos = spelt_videos(name, tuple(video_ids))
    room = -(-(len(first) + 8 * videos.shape[1] + LONGEST + len(after)) // BLOCK) * BLOCK
    words = np.zeros((len(index), room // 8 + 1), np.uint64)
    _spell(first, videos, videos.view(np.uint8), clip, index, after, words, words.view(np.uint8))
    return words


@lru_cache(64)
def spelt_videos(name: str, video_ids: tuple[str, ...]) -> npt.NDArray[np.uint64]:
    """Return the (videos, words) zero-padded part of each message between seed and frame number.

    The last word is its size in bytes. The same clips come again with other seeds and severities, so it is kept.
    """
    behind = encode_parts(name, "frame")
    each = [_named(video_id) + behind for video_id in video_ids]
    sizes = [len(one) for one in each]
    room = -(-max(sizes) // 8) * 8 + 8
    words = np.frombuffer(bytearray().join([one.ljust(room, b"\0") for one in each]), np.uint64)
    words = words.reshape(len(each), -1)
    words[:, -1] = sizes
    words.flags.writeable = False
    return words


@lru_cache(1 << 14)
def _named(video_id: str) -> bytes:
    """Return a video's id as it is hashed; cached, as the same videos recur in every epoch."""
    return encode_parts(video_id)


@kernel
def _spell(
    first: Array, videos: Array, named: Array, clip: Array, index: Array, after: Array, words: Array, letters: Array
) -> None:
    """Write the messages; `named` and `letters` are the bytes of `videos` and `words`."""
    for n in range(len(index)):
        own = clip[n]
        size = np.int64(len(first))
        for i in range(size):
            letters[n, i] = first[i]
        more = np.int64(videos[own, -1])
        for i in range(more):
            letters[n, size + i] = named[own, i]
        size = _spell_number(letters[n], size + more, np.uint64(index[n]))
        for i in range(len(after)):
            letters[n, size + i] = after[i]
        words[n, -1] = size + len(after)


@kernel
def _spell_seeds(seeds: Array, after: Array, words: Array, letters: Array) -> None:
    """Write the messages of seeds; `letters` are the bytes of `words`."""
    for n in range(len(seeds)):
        size = _spell_number(letters[n], np.int64(0), seeds[n])
        for i in range(len(after)):
            letters[n, size + i] = after[i]
        words[n, -1] = size + len(after)


@inlined
def _spell_number(letters: Array, size: np.int64, number: np.uint64) -> np.int64:
    """Append the digits of a number, and return the new length."""
    ten = np.uint64(10)
    digits, rest = 1, number // ten
    while rest:
        digits += 1
        rest //= ten
    letters[size] = digits  # the other seven bytes of its length are 0
    size += 8 + digits
    rest = number
    for i in range(digits):
        letters[size - 1 - i] = 48 + np.int64(rest % ten)
        rest //= ten
    return size


@kernel
def _hash(words: Array, keys: Array) -> None:
    state = np.empty(8, np.uint64)
    for n in range(len(keys)):
        size = np.int64(words[n, -1])
        state[:] = START
        state[0] ^= np.uint64(HEAD)
        blocks = (size + BLOCK - 1) // BLOCK
        for block in range(blocks):
            last = block == blocks - 1
            count_bytes = np.uint64(size if last else BLOCK * (block + 1))
            _join(state, words[n, 16 * block : 16 * block + 16], count_bytes, last)
        keys[n] = state[0]


@inlined
def _join(h: Array, m: Array, count_bytes: np.uint64, last: bool) -> None:
    """Hash one more block; its sixteen words are variables, so that they stay in registers."""
    a, b, c, d, e, f, g, i = h[0], h[1], h[2], h[3], h[4], h[5], h[6], h[7]
    p, q, r, s = START[0], START[1], START[2], START[3]
    t, u, v, w = START[4] ^ count_bytes, START[5], START[6], START[7]
    if last:
        v = ~v
    for turn in range(12):
        o = ORDER[turn]
        a, e, p, t = _stir(a, e, p, t, m[o[0]], m[o[1]])
        b, f, q, u = _stir(b, f, q, u, m[o[2]], m[o[3]])
        c, g, r, v = _stir(c, g, r, v, m[o[4]], m[o[5]])
        d, i, s, w = _stir(d, i, s, w, m[o[6]], m[o[7]])
        a, f, r, w = _stir(a, f, r, w, m[o[8]], m[o[9]])
        b, g, s, t = _stir(b, g, s, t, m[o[10]], m[o[11]])
        c, i, p, u = _stir(c, i, p, u, m[o[12]], m[o[13]])
        d, e, q, v = _stir(d, e, q, v, m[o[14]], m[o[15]])
    h[0] ^= a ^ p
    h[1] ^= b ^ q
    h[2] ^= c ^ r
    h[3] ^= d ^ s
    h[4] ^= e ^ t
    h[5] ^= f ^ u
    h[6] ^= g ^ v
    h[7] ^= i ^ w


@inlined
def _stir(
    a: np.uint64, b: np.uint64, c: np.uint64, d: np.uint64, x: np.uint64, y: np.uint64
) -> tuple[np.uint64, np.uint64, np.uint64, np.uint64]:
    a = a + b + x
    d = _turned(d ^ a, np.uint64(32))
    c = c + d
    b = _turned(b ^ c, np.uint64(24))
    a = a + b + y
    d = _turned(d ^ a, np.uint64(16))
    c = c + d
    return a, _turned(b ^ c, np.uint64(63)), c, d


@inlined
def _turned(z: np.uint64, by: np.uint64) -> np.uint64:
    return (z >> by) | (z << (np.uint64(64) - by))
