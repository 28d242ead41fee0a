"""Keys of corrupted frames, and the random streams that they begin, on the device of the frames.

A stream is drawn word after word, so a GPU follows one in each of its threads.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from jostle.core.random import Part, encode_parts
from jostle.core.triton_support import has_triton
from jostle.corruptions.gpu.contexts import FrameContexts
from jostle.corruptions.gpu.device_tables import device_table, send_values
from jostle.corruptions.kernels.blake2b import BLOCK, HEAD, ORDER, START, spelt_videos

if has_triton():
    from jostle.corruptions.gpu.stream_program import follow, hash_frames

LANES = 32  # keys of one program
ROWS = 128  # streams of one program
NUMBER = 2 * 8  # bytes that a program spells the number of a frame with
# What a hash begins with, what each of its blocks does, and in which order their words are taken.
_TABLE = np.concatenate([START ^ np.array([HEAD, *[0] * 7], np.uint64), START, ORDER.ravel().astype(np.uint64)])


def keys_on(frames: Tensor, at: FrameContexts, *parts: Part) -> Tensor:
    """Return (N,) `FrameContext.key` of each frame as signed integers, on the device of `frames`."""
    device, count, places = frames.device, len(at), at.places
    first, videos = encode_parts(at.seed), spelt_videos(at.name, tuple(at.video_ids))
    before = np.frombuffer(bytearray(first.ljust(-(-len(first) // 8) * 8, b"\0") + videos.tobytes()), np.int64)
    table, behind = _table_with(parts)
    words = videos.shape[1]
    room = -(-(len(first) + 8 * words + NUMBER + behind) // BLOCK) * (BLOCK // 8)
    out = torch.empty((1 + room, count), dtype=torch.int64, device=device)
    rows = out if places.every else send_values(places.rows, device)
    sizes = (count, places.frames, len(first), words, behind, room)
    arguments = (send_values(before, device), rows, device_table(table, device), out, *sizes)
    hash_frames[(-(-count // LANES),)](*arguments, EVERY=places.every, LANES=LANES, num_warps=1)
    return out[0]


@lru_cache(64)
def _table_with(parts: tuple[Part, ...]) -> tuple[npt.NDArray[np.int64], int]:
    """Return the hash table followed by the message after a frame's number, and its size in bytes."""
    letters = encode_parts(*parts)
    words = np.frombuffer(letters.ljust(-(-len(letters) // 8) * 8, b"\0"), np.uint64)
    return np.concatenate([_TABLE, words]).view(np.int64), len(letters)


def words_of(keys: Tensor, rows: range, count: int) -> Tensor:
    """(words, N * rows) words of 64 bits, as many as have `count` numbers of 16, from the streams of these rows."""
    many, streams = (count + 3) // 4, len(keys) * len(rows)
    out = torch.empty((many, streams), dtype=torch.int64, device=keys.device)
    follow[(-(-streams // ROWS),)](keys, out, streams, len(rows), rows.start, many, ROWS=ROWS)
    return out
