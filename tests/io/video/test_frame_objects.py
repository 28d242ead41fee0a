"""Decoder objects of other libraries: recognised by attributes, with the frames and times of the file."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import jostle
from helpers.refusals import refused
from jostle.api.video import video_path
from jostle.errors import BadValue, MediaError
from jostle.io.video.encode import Writer
from jostle.io.video.frame_objects import ObjectReader, is_frame_object, write_object
from jostle.io.video.source import fingerprint_of, source_state

COUNT, SIZE = 40, (36, 48)


class Decoder:
    """Fake of torchcodec's `VideoDecoder`: channels first, times of the stream."""

    def __init__(self, frames: np.ndarray, seconds: np.ndarray, fps: float, first_s: float = 0.0) -> None:
        self._frames, self._seconds = frames, seconds + first_s
        self.metadata = SimpleNamespace(average_fps=fps, num_frames=len(frames))
        self.most = 0  # largest number of frames requested at once

    def __len__(self) -> int:
        return len(self._frames)

    def get_frames_in_range(self, start: int, stop: int) -> Any:
        assert 0 <= start < stop <= len(self)
        self.most = max(self.most, stop - start)
        return SimpleNamespace(
            data=self._frames[start:stop].transpose(0, 3, 1, 2), pts_seconds=self._seconds[start:stop]
        )


@pytest.fixture(scope="module", params=["constant", "ntsc", "variable"])
def video(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Decoder]:
    """Write a file and make a decoder with its frames and times, which do not begin at 0."""
    rate = {"constant": Fraction(25), "ntsc": Fraction(30000, 1001), "variable": Fraction(25)}[request.param]
    rng = np.random.default_rng(3)
    path = tmp_path_factory.mktemp("video") / "v.mp4"
    ticks = np.arange(COUNT) * 3600
    if request.param == "variable":
        ticks = np.cumsum(rng.integers(1000, 5000, COUNT))
    base = Fraction(1, 90_000) if request.param == "variable" else 1 / (rate * 3600)
    with Writer(path, size=SIZE, fps=rate, time_base=base) as writer:
        for tick, frame in zip(ticks, rng.integers(0, 256, (COUNT, *SIZE, 3), np.uint8), strict=True):
            writer.write(frame, int(tick))
    clip = jostle.read(path)
    return path, Decoder(clip.frames, clip.pts, float(clip.fps), first_s=1.4)


def test_a_decoder_is_read_like_its_file(video: tuple[Path, Decoder]) -> None:
    path, decoder = video
    for start, stop in ((None, None), (3, 35), (0.3, 0.9), (7, 7), (0.0, 99.0)):
        expected, clip = jostle.read(path, start, stop), jostle.read(decoder, start, stop)
        assert np.array_equal(expected.frames, clip.frames)
        assert expected.pts.tolist() == clip.pts.tolist()  # to the last bit
        assert expected.fps == clip.fps
    assert decoder.most <= 32


def test_images_written_from_a_decoder_are_reproducible(video: tuple[Path, Decoder], tmp_path: Path) -> None:
    path, decoder = video
    one, two = (write_object(decoder, tmp_path / name) for name in ("one", "two"))
    expected, clip = jostle.read(path), jostle.read(one)
    assert np.array_equal(expected.frames, clip.frames)
    assert expected.pts.tolist() == clip.pts.tolist()
    assert expected.fps == clip.fps
    assert fingerprint_of(one) == fingerprint_of(two)
    assert source_state(one) == source_state(two)
    changed = Decoder(decoder._frames.copy(), decoder._seconds, decoder.metadata.average_fps)
    changed._frames[5, 0, 0] ^= 1
    assert source_state(write_object(changed, tmp_path / "three")) != source_state(one)


def test_objects_with_frames_and_timestamps_are_accepted() -> None:
    frames = np.random.default_rng(0).integers(0, 256, (6, *SIZE, 3), np.uint8)
    seconds = np.arange(6) / 12.5
    for source in (
        SimpleNamespace(frames=frames, pts=seconds),
        SimpleNamespace(frames=list(frames), timestamps=seconds.tolist(), fps=12.5),
        SimpleNamespace(data=frames.transpose(0, 3, 1, 2), pts_seconds=seconds),
        jostle.Clip(frames, seconds, Fraction(25, 2)),
    ):
        clip = jostle.read(source)
        assert np.array_equal(clip.frames, frames)
        assert clip.pts.tolist() == seconds.tolist()
        assert clip.fps == Fraction(25, 2)
    assert not is_frame_object(frames)
    assert not is_frame_object(Path("v.mp4"))


@pytest.mark.fault("F184")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pts": np.arange(6)}, "floating-point seconds, not int64"),
        ({"pts": np.zeros(6)}, "do not increase"),
        ({"pts": np.array([0, 1, 2, np.nan, 4, 5])}, "6 finite timestamps"),
        ({"pts": np.arange(5.0)}, "6 frames need 6"),
        ({"frames": np.zeros((6, 4, 5, 3), np.float32)}, "uint8 array"),
        ({"frames": np.zeros((6, 3, 5, 3), np.uint8)}, "first or last, which cannot be known"),
        ({"frames": np.zeros((6, 4, 5, 4), np.uint8)}, "RGB needs three"),
    ],
)
def test_ambiguous_frames_or_times_are_refused(changes: dict[str, Any], message: str) -> None:
    attributes = {"frames": np.zeros((6, 4, 5, 3), np.uint8), "pts": np.arange(6) / 10, "fps": 10}
    with refused("F184", MediaError, match=message):
        jostle.read(SimpleNamespace(**attributes | changes))


def test_an_object_without_frames_or_with_a_bad_position_is_refused() -> None:
    empty = SimpleNamespace(frames=np.zeros((0, 4, 5, 3), np.uint8), pts=np.zeros(0))
    with pytest.raises(MediaError, match="has no frames"):
        ObjectReader(empty)
    source = SimpleNamespace(frames=np.zeros((2, 4, 5, 3), np.uint8), pts=np.arange(2) / 10)
    for position in (-1, True, "1"):
        with pytest.raises(BadValue, match="start must"):
            jostle.read(source, position)  # type: ignore[arg-type]


@pytest.mark.fault("F185")
def test_an_object_needs_a_video_id_for_random_draws() -> None:
    source = SimpleNamespace(frames=np.zeros((2, 4, 5, 3), np.uint8), pts=np.arange(2) / 10)
    with pytest.raises(BadValue, match="pass video_id=") as caught, video_path(source, None):
        pass
    assert caught.value.fault == "F185"
