"""Faults on the way: bits and packets of the coded stream that do not arrive as they were sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal

import numpy as np

from jostle.core.kernels import kernel
from jostle.core.types.clip import Frame
from jostle.corruptions.engine.context import ClipContext
from jostle.corruptions.engine.corruption import corruption
from jostle.io.video.encoders import require_encoder

if TYPE_CHECKING:
    from jostle.io.video.packet_store import StreamCache

DATAGRAM = 1472  # bytes of payload; a coded picture is cut into these, and no two pictures share one


@corruption(level="codec", scale=(1e-6, 3e-6, 1e-5, 3e-5, 1e-4), cites="yi2021")
def bit_error(
    frames: Iterator[Frame], amount: float, scene: ClipContext, *, rule: Literal["bits", "bytes"] = "bits"
) -> Iterator[Frame]:
    """Bits of the coded stream flipped with chance `amount`.

    Frames from a file are decoded from that file's own stream, damaged; frames without one are sent as H.264 first.

    Args:
        rule: `bytes` replaces bytes as FFmpeg's `noise` filter does, about one in `amount`; its choice is a function
            of the stream alone.
    """
    damage = ByteNoise(int(amount)) if rule == "bytes" else BitFlips(amount, scene)
    if scene.path is not None:
        from jostle.io.video.codec import decode_source

        return decode_source(scene.path, damage, as_stored=rule == "bytes")
    return _sent(frames, scene, scene.streams, damage)


@corruption(level="codec", scale=(0.005, 0.01, 0.03, 0.06, 0.12), cites="yi2021")
def packet_loss(frames: Iterator[Frame], share: float, scene: ClipContext, *, encodings: int = 1) -> Iterator[Frame]:
    """Datagrams of an H.264 stream lost, each with chance `share`; the decoder conceals what it can.

    Args:
        encodings: how often the clip is encoded before it is sent; the published set-up encodes twice.
    """
    streams = scene.streams
    for _ in range(encodings - 1):
        frames, streams = _sent(frames, scene, streams), None
    return _sent(frames, scene, streams, LostDatagrams(share, scene))


def _sent(
    frames: Iterator[Frame],
    scene: ClipContext,
    streams: StreamCache | None,
    damage: Callable[[bytes, int], bytes | None] | None = None,
) -> Iterator[Frame]:
    """Encode frames as H.264 at the default quality and damage the stream; `streams` caches the clip's own."""
    require_encoder("libx264")
    from jostle.io.video.codec import Codec, transcode  # loads FFmpeg, which the other corruptions do without

    return transcode(frames, Codec("libx264", "h264", {"crf": 23}), fps=scene.fps, damage=damage, streams=streams)


class ByteNoise:
    """FFmpeg's `noise` bitstream filter: a running sum of bytes picks which to replace, and by what.

    >>> list(ByteNoise(2)(bytes([0, 0, 5]), 0))
    [0, 2, 8]
    """

    def __init__(self, amount: int) -> None:
        self._amount = amount
        self._state = 0

    def __call__(self, payload: bytes, number: int) -> bytes:
        data = np.frombuffer(payload, np.uint8).copy()
        self._state = int(_noise_bytes(data, np.uint32(self._amount), np.uint32(self._state)))
        return data.tobytes()


class BitFlips:
    """Independent bit errors, keyed by the number of the packet."""

    def __init__(self, chance: float, scene: ClipContext) -> None:
        self._chance, self._scene = chance, scene

    def __call__(self, payload: bytes, number: int) -> bytes:
        rng = self._scene.rng("packet", number)
        bits = len(payload) * 8
        flips = rng.integers(0, bits, rng.binomial(bits, self._chance)) if bits else np.zeros(0, np.int64)
        data = np.frombuffer(payload, np.uint8).copy()
        np.bitwise_xor.at(data, flips >> 3, (1 << (flips & 7)).astype(np.uint8))
        return data.tobytes()


class LostDatagrams:
    """Independent losses of datagrams, keyed by the number of the packet."""

    def __init__(self, chance: float, scene: ClipContext) -> None:
        self._chance, self._scene = chance, scene

    def __call__(self, payload: bytes, number: int) -> bytes | None:
        pieces = [payload[i : i + DATAGRAM] for i in range(0, len(payload), DATAGRAM)]
        arrived = self._scene.rng("packet", number).random(len(pieces)) >= self._chance
        return b"".join(piece for piece, here in zip(pieces, arrived, strict=True) if here) or None


@kernel
def _noise_bytes(data: np.ndarray, amount: np.uint32, state: np.uint32) -> np.uint32:
    total = np.int64(state)
    for i in range(len(data)):
        total = (total + data[i] + 1) & 0xFFFFFFFF
        if total % amount == 0:
            data[i] = total & 0xFF
    return np.uint32(total)
