"""Damage to coded streams: FFmpeg's byte noise, bit flips and lost datagrams."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import jostle
from jostle import Clip
from jostle.corruptions.engine.context import ClipContext
from jostle.corruptions.transmission import DATAGRAM, BitFlips, ByteNoise, LostDatagrams


def scene(clip: Clip) -> ClipContext:
    return ClipContext("x", clip.size, clip.pts, clip.fps, np.ones(len(clip), np.bool_))


def test_byte_noise() -> None:
    """The state adds each byte plus one; if it is a multiple of the amount, its low byte replaces the byte."""
    data = np.random.default_rng(0).integers(0, 256, 5000, dtype=np.uint8).tobytes()
    state, expected = 0, bytearray()
    for byte in data:
        state = (state + byte + 1) & 0xFFFFFFFF
        expected.append(state & 0xFF if state % 97 == 0 else byte)
    noise = ByteNoise(97)
    assert noise(data[:1234], 0) + noise(data[1234:], 1) == bytes(expected)


def test_byte_noise_equals_the_filter_of_ffmpeg(media_folder: Path) -> None:
    import av
    from av.bitstream import BitStreamFilterContext

    with av.open(str(media_folder / "R6llTwEh07w.mp4")) as container:
        stream = container.streams.video[0]
        ffmpeg_filter = BitStreamFilterContext("noise=amount=10000", stream)
        noise = ByteNoise(10000)
        changed = 0
        for number, packet in enumerate(container.demux(stream)):
            if not packet.size:
                continue
            payload = noise(bytes(packet), number)
            changed += payload != bytes(packet)
            assert [bytes(part) for part in ffmpeg_filter.filter(packet)] == [payload]
    assert changed > 5


def test_bits_flip_at_their_rate(clip: Clip) -> None:
    flips = BitFlips(0.01, scene(clip))
    data = bytes(20000)
    rate = np.unpackbits(np.frombuffer(flips(data, 0), np.uint8)).mean()
    assert rate == pytest.approx(0.01, rel=0.1)
    assert flips(data, 0) == flips(data, 0)
    assert flips(data, 0) != flips(data, 1)
    assert flips(b"", 0) == b""


def test_whole_datagrams_are_lost(clip: Clip) -> None:
    data = b"".join(bytes([i]) * DATAGRAM for i in range(100)) + b"end"
    loss = LostDatagrams(0.3, scene(clip))
    arrived = loss(data, 0)
    assert arrived is not None
    pieces = [arrived[i : i + DATAGRAM] for i in range(0, len(arrived) - len(arrived) % DATAGRAM, DATAGRAM)]
    assert all(len(set(piece)) == 1 for piece in pieces)
    assert 55 <= len(pieces) <= 85
    assert LostDatagrams(1.0, scene(clip))(data, 0) is None


def test_a_file_is_damaged_in_its_own_stream(media_folder: Path, tmp_path: Path) -> None:
    """Undamaged frames equal those of the file, which a second encoding would change."""
    path = media_folder / "v_SoccerJuggling_g23_c01.avi"
    out = tmp_path / "hit.mkv"
    done = jostle.corrupt_file(path, "kinetics-c/bit_error:1", out, lossless=True)
    clean, damaged = jostle.read(path), jostle.read(out)
    assert done.frames == len(clean) == len(damaged)
    same = (clean.frames == damaged.frames).all((1, 2, 3))
    assert 0 < same.sum() < len(clean)
