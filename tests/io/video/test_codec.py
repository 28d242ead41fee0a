"""In-memory codecs: the number of frames is preserved, also for damaged packets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from jostle.core.types.clip import Frame
from jostle.errors import BadValue, EncoderMissing, MediaError
from jostle.io.video.codec import Codec, decode, decode_source, encode, source_packets, transcode
from jostle.io.video.decode import Reader

CODECS = {
    "h264": Codec("libx264", "h264", {"crf": 24, "g": 20, "preset": "veryfast"}),
    "hevc": Codec("libx265", "hevc", {"crf": 24, "g": 20, "preset": "ultrafast"}),
    "mpeg1": Codec("mpeg1video", "mpeg1video", {"qmin": 4, "qmax": 4, "bf": 2}),
    "mpeg2": Codec("mpeg2video", "mpeg2video", {"qmin": 4, "qmax": 4, "bf": 2}),
    "mpeg4": Codec("mpeg4", "mpeg4", {"qmin": 4, "qmax": 4}),
    "mjpeg": Codec("mjpeg", "mjpeg", {"qmin": 4, "qmax": 4}, pixel_format="yuvj420p"),
    "vp9": Codec("libvpx-vp9", "vp9", {"crf": 24, "b": 0, "cpu-used": 8, "deadline": "realtime"}),
}
FPS = Fraction(30000, 1001)


def flip(rate: float) -> Callable[[bytes, int], bytes]:
    def damage(payload: bytes, number: int) -> bytes:
        rng = np.random.Generator(np.random.SFC64(number))
        data = np.frombuffer(payload, np.uint8).copy()
        indices = rng.integers(0, len(data), rng.binomial(len(data), rate))
        data[indices] ^= rng.integers(1, 256, len(indices)).astype(np.uint8)
        return data.tobytes()

    return damage


@pytest.mark.parametrize("name", CODECS)
def test_frames_keep_their_order(name: str) -> None:
    flat = [np.full((48, 64, 3), 20 + 3 * number, np.uint8) for number in range(60)]
    out = list(transcode(flat, CODECS[name], fps=FPS))
    assert len(out) == 60
    assert all(frame.shape == (48, 64, 3) and frame.dtype == np.uint8 for frame in out)
    numbers = np.array([(frame.mean() - 20) / 3 for frame in out])
    assert np.abs(numbers - np.arange(60)).max() < 0.8


@pytest.mark.parametrize("name", CODECS)
@pytest.mark.parametrize("shape", [(47, 63), (31, 64)])
def test_odd_sizes_are_preserved(name: str, shape: tuple[int, int], frames: list[Frame]) -> None:
    cut = [frame[: shape[0], : shape[1]] for frame in frames[:6]]
    out = list(transcode(cut, CODECS[name], fps=FPS))
    assert [frame.shape for frame in out] == [(*shape, 3)] * 6
    assert np.abs(out[0].astype(int) - cut[0]).mean() < 15


@pytest.mark.parametrize("name", CODECS)
def test_damage_changes_frames_but_not_their_number(name: str, frames: list[Frame]) -> None:
    clean = list(transcode(frames, CODECS[name], fps=FPS))
    for damage in (flip(0.002), lambda p, n: None if n % 5 == 3 else p, lambda p, n: p[: len(p) // 2]):
        first = list(transcode(frames, CODECS[name], fps=FPS, damage=damage))
        second = list(transcode(frames, CODECS[name], fps=FPS, damage=damage))
        assert len(first) == 60
        assert all(frame.shape == (48, 64, 3) for frame in first)
        assert np.array_equal(first, second)
        assert not np.array_equal(first, clean)


def test_a_lost_packet_repeats_the_previous_frame(frames: list[Frame]) -> None:
    codec = CODECS["mjpeg"]  # every packet is one frame, so what is lost is known
    clean = list(transcode(frames, codec, fps=FPS))
    out = list(transcode(frames, codec, fps=FPS, damage=lambda p, n: None if n in (5, 6, 59) else p))
    expected = [4 if i in (5, 6) else 58 if i == 59 else i for i in range(60)]
    assert all(np.array_equal(out[i], clean[expected[i]]) for i in range(60))


def test_losses_at_the_start_repeat_the_next_frame_or_give_grey(frames: list[Frame]) -> None:
    codec = CODECS["mjpeg"]
    clean = list(transcode(frames, codec, fps=FPS))
    out = list(transcode(frames, codec, fps=FPS, damage=lambda p, n: None if n < 3 else p))
    assert all(np.array_equal(out[i], clean[max(i, 3)]) for i in range(60))
    grey = list(transcode(frames, codec, fps=FPS, damage=lambda p, n: None))
    assert len(grey) == 60
    assert all((frame == 128).all() and frame.shape == (48, 64, 3) for frame in grey)
    assert list(transcode([], codec, fps=FPS)) == []


def test_split_packets_are_joined(frames: list[Frame]) -> None:
    expected = list(transcode(frames, CODECS["h264"], fps=FPS))
    pieces = list(transcode(frames, CODECS["h264"], fps=FPS, damage=lambda p, n: [p[:7], p[7:]]))
    assert np.array_equal(expected, pieces)


def test_a_coarser_quantiser_gives_larger_errors(frames: list[Frame]) -> None:
    errors = []
    for q in (2, 10, 30):
        codec = Codec("mpeg4", "mpeg4", {"qmin": q, "qmax": q})
        out = np.stack(list(transcode(frames, codec, fps=FPS)))
        errors.append(np.abs(out.astype(int) - frames).mean())
    assert errors[0] < errors[1] < errors[2]


@pytest.mark.parametrize("name", ["mpeg1", "mpeg2", "mpeg4"])
@pytest.mark.parametrize("fps", [Fraction(15), Fraction(981, 50), Fraction(1000000, 33333), Fraction(1, 2)])
def test_unusual_rates_are_coded(name: str, fps: Fraction, frames: list[Frame]) -> None:
    assert len(list(transcode(frames[:5], CODECS[name], fps=fps))) == 5


def test_frames_are_streamed_with_bounded_lookahead(frames: list[Frame]) -> None:
    frames_read = 0

    def source() -> Iterator[Frame]:
        nonlocal frames_read
        for number in range(400):
            frames_read += 1
            yield frames[number % 60]

    out = transcode(source(), CODECS["mpeg2"], fps=FPS)
    for yielded in range(1, 101):
        next(out)
        assert frames_read - yielded < 10
    out.close()


def test_encode_and_decode_equal_transcode(frames: list[Frame]) -> None:
    codec = CODECS["h264"]
    packets = list(encode(frames, codec, fps=FPS))
    assert sorted(number for number, _ in packets) == list(range(60))
    assert [number for number, _ in packets] != list(range(60)), "B-frames are coded out of order"
    out = dict(decode(packets, codec))
    expected = list(transcode(frames, codec, fps=FPS))
    assert all(np.array_equal(out[i], expected[i]) for i in range(60))


def test_invalid_requests_are_reported(frames: list[Frame]) -> None:
    with pytest.raises(EncoderMissing, match="no encoder libnone"):
        list(transcode(frames, Codec("libnone", "h264"), fps=FPS))
    with pytest.raises(MediaError, match=r"libx264 failed on 64x48 frames with \{'preset': 'nonsense'\}"):
        list(transcode(frames, Codec("libx264", "h264", {"preset": "nonsense"}), fps=FPS))
    with pytest.raises(BadValue, match="a stream has one size"):
        list(transcode([frames[0], frames[1][:40]], CODECS["mpeg4"], fps=FPS))


KINDS = ["h264_b_frames", "h264_open_gop", "h264_vfr", "mpeg4_avi", "mpeg2_ts", "vp9_mkv", "hevc_mp4", "mjpeg_mkv"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_files_own_packets_decode_to_its_frames(kind: str, videos: dict[str, Path]) -> None:
    with Reader(videos[kind]) as reader:
        expected = reader.block(0, 60)
    assert np.array_equal(list(decode_source(videos[kind])), expected)
    out = list(decode_source(videos[kind], lambda p, n: None if n == 20 else p))
    assert len(out) == 60
    assert np.array_equal(out[0], expected[0])
    assert not np.array_equal(out, expected)


def test_packets_of_an_mp4_carry_start_codes(videos: dict[str, Path]) -> None:
    stream = source_packets(videos["h264_b_frames"])
    packets = list(stream.packets)
    assert (stream.codec, stream.extradata, len(packets)) == ("h264", None, 60)
    assert all(payload[:4] == b"\0\0\0\1" or payload[:3] == b"\0\0\1" for _, payload in packets)


def test_real_clips_decode_from_their_packets(media_folder: Path) -> None:
    # XviD in AVI: decodes correctly only with the extradata of the container.
    path = media_folder / "v_SoccerJuggling_g23_c01.avi"
    with Reader(path) as reader:
        assert all(np.array_equal(a, b) for a, b in zip(decode_source(path), reader, strict=True))
