"""Cache of coded streams on disk: identical frames, detection of damage and a quota."""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import jostle
from jostle.core.environment import DEFAULT_CODEC_QUOTA, codec_quota
from jostle.core.types import Clip
from jostle.core.types.video import ClipSource
from jostle.corruptions.engine.apply import masks_for
from jostle.corruptions.engine.placement import Timeline
from jostle.corruptions.engine.spec import Spec
from jostle.corruptions.engine.stages import chain
from jostle.errors import BadValue
from jostle.io.video.codec import Codec, transcode
from jostle.io.video.packet_store import PacketStore, StreamCache

CODEC = Codec("libx264", "h264", {"crf": 30})
FPS = Fraction(25)


@pytest.fixture
def frames() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 255, (20, 34, 46, 3), np.uint8)


@pytest.fixture
def streams(tmp_path: Path) -> StreamCache:
    return StreamCache(PacketStore(tmp_path / "coded", 10**7), lambda: "sha256:a")


def send(
    frames: np.ndarray, streams: StreamCache | None, indices: list[int] | None = None, **more: object
) -> np.ndarray:
    def source() -> Iterator[np.ndarray]:
        for number, frame in enumerate(frames):
            if indices is not None:
                indices.append(number)
            yield frame

    return np.stack(list(transcode(source(), CODEC, fps=FPS, streams=streams, **more)))


def test_a_cached_stream_reads_no_source_frame(frames: np.ndarray, streams: StreamCache) -> None:
    plain = send(frames, None)
    first, second = list[int](), list[int]()
    assert (send(frames, streams, first) == plain).all()
    assert (send(frames, streams, second) == plain).all()
    assert first == list(range(20))
    assert not second


def test_the_cached_stream_is_undamaged(frames: np.ndarray, streams: StreamCache) -> None:
    def drop_third(payload: bytes, number: int) -> bytes | None:
        return None if number == 3 else payload

    damaged = send(frames, None, damage=drop_third)
    assert (send(frames, streams, damage=drop_third) == damaged).all()
    assert (send(frames, streams) == send(frames, None)).all()
    assert (send(frames, streams, damage=drop_third) == damaged).all()


@pytest.mark.fault("F137")
def test_f137_a_stream_that_is_a_pipe_or_has_no_index_counts_as_missing(tmp_path: Path) -> None:
    store = PacketStore(tmp_path, 10**7)
    os.mkfifo(tmp_path / "pipe")
    index = b"[" * 100_000
    (tmp_path / "deep").write_bytes(index + struct.pack("<Q32s", len(index), hashlib.sha256(index).digest()))
    assert store.read("pipe") is None
    assert store.read("deep") is None


def test_another_video_setting_or_rate_is_another_stream(tmp_path: Path, streams: StreamCache) -> None:
    keys = {
        streams._key(CODEC, FPS),
        streams._key(Codec("libx264", "h264", {"crf": 31}), FPS),
        streams._key(CODEC, Fraction(30)),
        StreamCache(streams.store, lambda: "sha256:b")._key(CODEC, FPS),
    }
    assert len(keys) == 4


@pytest.mark.parametrize("damage", ["cut", "flipped", "emptied"])
def test_a_damaged_file_counts_as_absent(frames: np.ndarray, streams: StreamCache, tmp_path: Path, damage: str) -> None:
    plain = send(frames, streams)
    (path,) = (tmp_path / "coded").iterdir()
    data = bytearray(path.read_bytes())
    if damage == "flipped":
        data[len(data) // 2] ^= 1
    path.write_bytes({"cut": data[:-100], "flipped": data, "emptied": b""}[damage])
    indices: list[int] = []
    assert (send(frames, streams, indices) == plain).all()
    assert len(indices) == 20


def test_an_unfinished_stream_is_not_cached(frames: np.ndarray, streams: StreamCache, tmp_path: Path) -> None:
    stream = transcode(iter(frames), CODEC, fps=FPS, streams=streams)
    next(stream)
    stream.close()
    assert list((tmp_path / "coded").iterdir()) == []


def test_the_quota_evicts_the_least_recently_used(frames: np.ndarray, tmp_path: Path) -> None:
    folder, seconds = tmp_path / "coded", 10**9
    sources = {
        number: StreamCache(PacketStore(folder, 10**7), lambda number=number: str(number)) for number in range(4)
    }
    for number in range(3):
        send(frames, sources[number])
        os.utime(folder / sources[number]._key(CODEC, FPS), ns=(seconds * (1 + number), seconds * (1 + number)))
    size = (folder / sources[0]._key(CODEC, FPS)).stat().st_size
    send(frames, sources[0])  # used again, so the second is now the oldest
    send(frames, StreamCache(PacketStore(folder, int(3.5 * size)), sources[3].fingerprint))
    remaining = {number for number, stream in sources.items() if (folder / stream._key(CODEC, FPS)).exists()}
    assert remaining == {0, 2, 3}


def test_an_unusable_cache_folder_is_ignored(frames: np.ndarray, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    streams = StreamCache(PacketStore(tmp_path / "file" / "coded", 10**7), lambda: "x")
    assert (send(frames, streams) == send(frames, None)).all()


@pytest.mark.parametrize("spec", ["kinetics-c/packet_loss:3", "kinetics-c/h265_crf:3", "mpeg2:4"])
def test_a_chain_caches_its_first_corruption_only(spec: str, frames: np.ndarray, streams: StreamCache) -> None:
    clip = Clip.at_rate(frames, 25.0)

    def corrupt(specs: list[str], streams_used: StreamCache | None) -> np.ndarray:
        parsed = [Spec.parse(text) for text in specs]
        masks = masks_for(parsed, None, Timeline.of(clip.pts, clip.fps, None, seed=0, video_id="v"))
        top = chain(ClipSource(clip), parsed, masks, seed=0, video_id="v", streams=streams_used)
        return top.block(0, len(clip))

    expected = corrupt([spec], None)
    for _ in range(2):
        assert (corrupt([spec], streams) == expected).all()
    after_fog = corrupt(["fog:3", spec], None)
    assert (corrupt(["fog:3", spec], streams) == after_fog).all()
    assert (jostle.corrupt(clip, [spec], video_id="v").frames == expected).all()


@pytest.mark.parametrize(
    ("text", "expected"), [("", DEFAULT_CODEC_QUOTA), ("0", 0), ("500M", 500 * 2**20), ("20 GiB", 20 * 2**30)]
)
def test_quota_sizes_are_parsed(monkeypatch: pytest.MonkeyPatch, text: str, expected: int) -> None:
    monkeypatch.setenv("JOSTLE_CODEC_CACHE", text)
    assert codec_quota() == expected


def test_an_invalid_quota_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOSTLE_CODEC_CACHE", "lots")
    with pytest.raises(BadValue, match="500M or 20G"):
        codec_quota()
