"""Coded streams with damaged or lost packets, written to files for real decoders to conceal."""

from __future__ import annotations

from collections.abc import Collection
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

from jostle.core.types.clip import Frames

FPS, KEY_INTERVAL = Fraction(25), 20
ENCODERS = {
    "h264": ("libx264", {"preset": "veryfast", "tune": "zerolatency", "slices": "4"}),
    "mpeg4": ("mpeg4", {}),
    "mpeg2": ("mpeg2video", {}),
}
TS_PACKET = 188  # bytes


def encode(frames: Frames, codec: str) -> list[bytes]:
    """Return one packet a frame, without B-frames, with a key frame every `KEY_INTERVAL`."""
    name, options = ENCODERS[codec]
    encoder = av.CodecContext.create(name, "w")
    encoder.height, encoder.width, encoder.pix_fmt = *frames.shape[1:3], "yuv420p"
    encoder.time_base, encoder.framerate, encoder.gop_size = 1 / FPS, FPS, KEY_INTERVAL
    encoder.thread_count, encoder.bit_rate, encoder.options = 1, 1_500_000, options
    packets = []
    for t, frame in enumerate(frames):
        picture = av.VideoFrame.from_ndarray(frame, format="rgb24").reformat(format="yuv420p")
        picture.pts = t
        packets += encoder.encode(picture)
    return [bytes(packet) for packet in [*packets, *encoder.encode(None)]]


def write_stream(path: Path, frames: Frames, codec: str, damaged: Collection[int] = (), seed: int = 0) -> Path:
    """Write a film as a coded stream; bytes in the packets of some frames are overwritten."""
    rng = np.random.default_rng(seed)
    with av.open(str(path), "w") as container:
        stream = container.add_stream(ENCODERS[codec][0], rate=FPS)
        stream.height, stream.width, stream.pix_fmt = *frames.shape[1:3], "yuv420p"
        for number, packet in enumerate(encode(frames, codec)):
            data = bytearray(packet)
            if number in damaged:
                for at in rng.integers(len(data) // 8 + 12, len(data), 12):
                    data[at] ^= int(rng.integers(1, 256))
            one = av.Packet(bytes(data))
            one.pts = one.dts = number
            one.time_base, one.stream, one.is_keyframe = 1 / FPS, stream, number % KEY_INTERVAL == 0
            container.mux(one)
    return path


def lose_transport_packets(path: Path, lost: Collection[int]) -> Path:
    """Leave packets of 188 bytes out of an MPEG transport stream, as a network does."""
    data = path.read_bytes()
    parts = [data[lo : lo + TS_PACKET] for lo in range(0, len(data), TS_PACKET)]
    path.write_bytes(b"".join(part for number, part in enumerate(parts) if number not in lost))
    return path
