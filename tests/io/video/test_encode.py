"""Writing: exact times and sizes, reproducible bytes, and only complete files under final names."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import av
import cv2
import numpy as np
import pytest

import jostle
from jostle.core.types.clip import Frame
from jostle.errors import BadValue, EncoderMissing, MediaError, ResourceError
from jostle.io.video.decode import Reader, read
from jostle.io.video.encode import Writer, viewing_codec
from jostle.io.video.encoders import encoders, require_encoder
from jostle.io.video.source import probe


def write(path: Path, frames: list[Frame], ticks: list[int] | None = None, **settings: object) -> Writer:
    settings.setdefault("fps", 25)
    with Writer(path, size=frames[0].shape[:2], **settings) as writer:  # type: ignore[arg-type]
        for number, frame in enumerate(frames):
            writer.write(frame, None if ticks is None else ticks[number])
    return writer


def test_lossless_files_preserve_every_pixel(tmp_path: Path, frames: list[Frame]) -> None:
    write(tmp_path / "a.mkv", frames, codec="ffv1")
    assert np.array_equal(read(tmp_path / "a.mkv").frames, frames)
    odd = [frame[:47, :61] for frame in frames[:5]]
    write(tmp_path / "odd.mkv", odd, codec="ffv1")
    assert np.array_equal(read(tmp_path / "odd.mkv").frames, odd)


@pytest.mark.parametrize("codec", ["h264", "h265"])
def test_lossy_files_stay_close(codec: str, tmp_path: Path, frames: list[Frame]) -> None:
    smooth = [cv2.GaussianBlur(frame, (0, 0), 2) for frame in frames]  # chroma is halved, so no sharp colours
    write(tmp_path / "a.mp4", smooth, codec=codec)
    with Reader(tmp_path / "a.mp4") as reader:
        assert reader.facts.codec == {"h264": "h264", "h265": "hevc"}[codec]
        assert reader.facts.colour_range == "limited"
        error = np.abs(reader.block(0, 60).astype(int) - smooth)
    # A wrong matrix or range would shift flat colours by 10 or more.
    assert error.mean() < 2.5


@pytest.mark.parametrize(
    ("suffix", "codec"), [("mp4", "h264"), ("mov", "h264"), ("mkv", "h264"), ("mkv", "ffv1"), ("mp4", "h265")]
)
def test_equal_frames_give_equal_bytes(suffix: str, codec: str, tmp_path: Path, frames: list[Frame]) -> None:
    for name in ("one", "two"):
        write(tmp_path / f"{name}.{suffix}", frames, codec=codec)
    assert (tmp_path / f"one.{suffix}").read_bytes() == (tmp_path / f"two.{suffix}").read_bytes()


def boxes(path: Path) -> list[str]:
    """Return the top-level boxes of an mp4 in file order."""
    data, names, position = path.read_bytes(), [], 0
    while position < len(data):
        names.append(data[position + 4 : position + 8].decode("ascii"))
        position += int.from_bytes(data[position : position + 4], "big") or len(data)
    return names


@pytest.mark.parametrize("suffix", ["mp4", "mov"])
def test_faststart_does_not_change_pictures_times_and_sound(suffix: str, tmp_path: Path, frames: list[Frame]) -> None:
    source = with_sound(tmp_path / "source.mp4", "aac")
    ticks = [tick * tick + 3 for tick in range(60)]
    plain, front, repeated = (tmp_path / f"{name}.{suffix}" for name in ("plain", "front", "again"))
    write(plain, frames, ticks, time_base=Fraction(1, 90000), audio_from=source)
    for path in (front, repeated):
        write(path, frames, ticks, time_base=Fraction(1, 90000), audio_from=source, faststart=True)
    assert boxes(plain).index("mdat") < boxes(plain).index("moov")
    assert boxes(front).index("moov") < boxes(front).index("mdat")
    assert front.read_bytes() == repeated.read_bytes()
    assert sound_packets(front) == sound_packets(plain)
    with Reader(plain) as one, Reader(front) as other:
        assert np.array_equal(one.block(0, 60), other.block(0, 60))
        assert one.ticks.tolist() == other.ticks.tolist()
        assert (one.first_tick, one.time_base) == (other.first_tick, other.time_base)


def test_faststart_has_no_effect_on_other_containers(tmp_path: Path, frames: list[Frame]) -> None:
    for suffix in ("mkv", "avi"):
        write(tmp_path / f"plain.{suffix}", frames)
        write(tmp_path / f"front.{suffix}", frames, faststart=True)
        assert (tmp_path / f"plain.{suffix}").read_bytes() == (tmp_path / f"front.{suffix}").read_bytes()


def test_an_interrupted_faststart_leaves_the_target_unchanged(
    tmp_path: Path, frames: list[Frame], monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "a.mp4"
    target.write_bytes(b"precious")
    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(target, frames, faststart=True)
    assert target.read_bytes() == b"precious"
    assert os.listdir(tmp_path) == ["a.mp4"]


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def key_frames(path: Path) -> list[int]:
    with av.open(str(path)) as container:
        return [number for number, frame in enumerate(container.decode(video=0)) if frame.key_frame]


@pytest.mark.parametrize("codec", ["h264", "h265"])
def test_gop_limits_the_distance_of_key_frames(codec: str, tmp_path: Path, frames: list[Frame]) -> None:
    still = [frames[0]] * 60  # without scene cuts, at which encoders insert key frames
    write(tmp_path / "default.mp4", still, codec=codec)
    write(tmp_path / "close.mp4", still, codec=codec, gop=10)
    assert key_frames(tmp_path / "default.mp4") == [0]
    assert key_frames(tmp_path / "close.mp4") == [0, 10, 20, 30, 40, 50]


def test_bytes_do_not_depend_on_uninitialised_memory(tmp_path: Path) -> None:
    # x264's AVX-512 code reads memory it never wrote; glibc can fill fresh memory to show it.
    program = """
import sys, hashlib
import numpy as np
from jostle.io.video.encode import Writer
y, x = np.mgrid[:240, :320]
picture = np.stack([x * 255 // 320, y * 255 // 240, (x * y) % 256], -1).astype(np.uint8)
with Writer(sys.argv[1], size=(240, 320), fps=25) as writer:
    for t in range(60):
        writer.write(np.roll(picture, (t, 2 * t), (0, 1)))
print(hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest())
"""
    sums = set()
    for fill in ("0", "85"):
        target = tmp_path / f"{fill}.mp4"
        environment = {**os.environ, "MALLOC_PERTURB_": fill}
        done = subprocess.run(
            [sys.executable, "-c", program, str(target)], env=environment, capture_output=True, text=True, check=True
        )
        sums.add(done.stdout)
    assert len(sums) == 1


@pytest.mark.parametrize("suffix", ["mp4", "mov"])
@pytest.mark.parametrize(
    ("fps", "time_base"),
    [
        (Fraction(30000, 1001), None),
        (Fraction(24000, 1001), None),
        (Fraction(25), Fraction(1, 90000)),
        (Fraction(981, 50), Fraction(1, 981)),
        (Fraction(25), Fraction(1001, 30000)),
    ],
)
def test_times_survive_exactly(
    fps: Fraction, time_base: Fraction | None, suffix: str, tmp_path: Path, frames: list[Frame]
) -> None:
    ticks = list(range(60)) if time_base is None else np.cumsum(np.arange(60) % 7 + 1).tolist()
    ticks = [tick - ticks[0] for tick in ticks]
    path = tmp_path / f"a.{suffix}"
    write(path, frames, ticks, fps=fps, time_base=time_base)
    with Reader(path) as reader:
        unit = time_base or 1 / fps
        assert [int(tick) * reader.time_base for tick in reader.ticks] == [tick * unit for tick in ticks]
        if time_base is None:
            assert reader.fps == fps


def test_a_first_tick_other_than_zero_is_preserved(tmp_path: Path, frames: list[Frame]) -> None:
    write(tmp_path / "a.mp4", frames, [301 + 7 * i for i in range(60)], time_base=Fraction(1, 90000))
    with Reader(tmp_path / "a.mp4") as reader:
        assert reader.first_tick * reader.time_base == Fraction(301, 90000)


@pytest.mark.parametrize(("height", "width"), [(47, 64), (48, 63), (47, 63), (1, 1), (2, 2), (17, 5)])
def test_odd_sizes_are_preserved(height: int, width: int, tmp_path: Path) -> None:
    picture = np.full((height, width, 3), (200, 60, 30), np.uint8)
    write(tmp_path / "a.mp4", [picture] * 3)
    clip = read(tmp_path / "a.mp4")
    assert clip.frames.shape == (3, height, width, 3)
    assert np.abs(clip.frames.astype(int) - picture).max() <= 6


def test_images_are_written_with_their_times(tmp_path: Path, frames: list[Frame]) -> None:
    write(tmp_path / "folder", frames[:4], [0, 1, 5, 6], fps=Fraction(30000, 1001))
    names = sorted(path.name for path in (tmp_path / "folder").iterdir())
    assert names == ["00000.png", "00001.png", "00002.png", "00003.png", "times.json"]
    for number in range(4):
        assert np.array_equal(cv2.imread(str(tmp_path / "folder" / names[number]))[..., ::-1], frames[number])
    times = json.loads((tmp_path / "folder" / "times.json").read_text())
    assert times == {"fps": "30000/1001", "time_base": "1001/30000", "ticks": [0, 1, 5, 6]}
    with pytest.raises(MediaError, match="is not empty; name a new or an empty folder"):
        write(tmp_path / "folder", frames[:4])


def with_sound(path: Path, codec: str, rate: int = 48000) -> Path:
    """Write a second of video with sound."""
    with av.open(str(path), "w") as container:
        video = container.add_stream("mpeg4", rate=25)
        video.width = video.height = 32
        audio = container.add_stream(codec, rate=rate)
        for number in range(25):
            picture = av.VideoFrame.from_ndarray(np.full((32, 32, 3), 9 * number, np.uint8))
            container.mux(video.encode(picture))
        layout, form = "mono", audio.codec_context.format.name
        for start in range(0, rate, 960):
            wave = np.sin(np.arange(start, start + 960) / 20)
            kind, scale = (np.float32, 0.5) if form.startswith("flt") else (np.int16, 9000)
            sound = av.AudioFrame.from_ndarray((wave * scale).astype(kind)[None], format=form, layout=layout)
            sound.sample_rate, sound.pts = rate, start
            container.mux(audio.encode(sound))
        container.mux(video.encode(None))
        container.mux(audio.encode(None))
    return path


def sound_packets(path: Path) -> list[tuple[float, bytes]]:
    with av.open(str(path)) as container:
        packets = container.demux(audio=0)
        return [(float(p.pts * p.time_base), bytes(p)) for p in packets if p.size and p.pts is not None]


@pytest.mark.parametrize("suffix", ["mp4", "mkv", "mov"])
def test_sound_is_copied_untouched(suffix: str, tmp_path: Path, frames: list[Frame]) -> None:
    source = with_sound(tmp_path / "source.mp4", "aac")
    writer = write(tmp_path / f"a.{suffix}", frames, audio_from=source)
    assert writer.warnings == ()
    before, after = sound_packets(source), sound_packets(tmp_path / f"a.{suffix}")
    assert [payload for _, payload in before] == [payload for _, payload in after]
    assert after[5][0] - after[0][0] == pytest.approx(before[5][0] - before[0][0], abs=1.1e-3)
    with Reader(tmp_path / f"a.{suffix}") as reader:
        assert len(reader) == 60
        assert reader.facts.audio_codec == "aac"


@pytest.mark.fault("F140")
@pytest.mark.parametrize("suffix", ["mp4", "mkv"])
def test_f140_audio_priming_does_not_shift_the_video(suffix: str, tmp_path: Path, frames: list[Frame]) -> None:
    source = with_sound(tmp_path / "source.mp4", "aac", rate=44100)
    assert sound_packets(source)[0][0] == pytest.approx(-1024 / 44100)
    path = write(tmp_path / f"a.{suffix}", frames, audio_from=source).path
    assert sound_packets(path)[0][0] == pytest.approx(-1024 / 44100, abs=1e-3)
    with av.open(str(path)) as container:
        assert container.streams.video[0].start_time == 0


@pytest.mark.fault("F140")
def test_f140_sound_long_before_the_video_gives_a_warning(tmp_path: Path, frames: list[Frame]) -> None:
    early = with_sound(tmp_path / "early.mp4", "aac")
    late = tmp_path / "late.mp4"
    with av.open(str(early)) as container, av.open(str(late), "w") as out:
        streams = {stream.index: out.add_stream_from_template(stream) for stream in container.streams}
        for packet in container.demux():
            if packet.size:
                if packet.stream.type == "video":
                    packet.pts, packet.dts = (int(time + 1.5 / packet.time_base) for time in (packet.pts, packet.dts))
                packet.stream = streams[packet.stream.index]
                out.mux(packet)
    writer = write(tmp_path / "a.mkv", frames, audio_from=late)
    assert "its sound begins 1.52 s before its pictures" in writer.warnings[0]
    assert sound_packets(tmp_path / "a.mkv")[0][0] == 0


def test_sound_that_does_not_fit_is_left_out_with_a_warning(tmp_path: Path, frames: list[Frame]) -> None:
    source = with_sound(tmp_path / "source.mkv", "libopus")
    writer = write(tmp_path / "a.mov", frames, audio_from=source)
    assert writer.warnings == ("mov cannot hold opus sound, so there is none; write .mkv to keep it",)
    write(tmp_path / "silent.mp4", frames, audio_from=write(tmp_path / "mute.mp4", frames).path)


def test_a_failure_leaves_the_target_unchanged(tmp_path: Path, frames: list[Frame]) -> None:
    target = tmp_path / "a.mp4"
    target.write_bytes(b"precious")

    def interrupted() -> None:
        with Writer(target, size=(48, 64), fps=25) as writer:
            for frame in frames:
                writer.write(frame)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert target.read_bytes() == b"precious"
    assert os.listdir(tmp_path) == ["a.mp4"]


def test_nothing_appears_under_the_final_name_before_the_end(tmp_path: Path, frames: list[Frame]) -> None:
    with Writer(tmp_path / "a.mp4", size=(48, 64), fps=25) as writer:
        for frame in frames:
            writer.write(frame)
        assert not (tmp_path / "a.mp4").exists()
        assert [name.startswith(".a.mp4.part-") for name in os.listdir(tmp_path)] == [True]
    assert os.listdir(tmp_path) == ["a.mp4"]
    with pytest.raises(BadValue, match="already closed"):
        writer.write(frames[0])


def test_a_full_disk_is_a_resource_error(tmp_path: Path, frames: list[Frame], monkeypatch: pytest.MonkeyPatch) -> None:
    from jostle.io.video.video_file import VideoFile

    def write_to_full_disk(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(VideoFile, "_mux", write_to_full_disk)
    with pytest.raises(ResourceError, match=r"no space left on the disk for .*a\.mp4; free some") as caught:
        write(tmp_path / "a.mp4", frames)
    assert caught.value.exit_code == 5
    assert os.listdir(tmp_path) == []


def test_invalid_requests_are_refused_before_any_work(tmp_path: Path, frames: list[Frame]) -> None:
    with pytest.raises(MediaError, match="its folder does not exist; create"):
        write(tmp_path / "no" / "a.mp4", frames)
    with pytest.raises(BadValue, match=r"a video file ends in \.mp4, .*, not '\.txt'"):
        write(tmp_path / "a.txt", frames)
    with pytest.raises(BadValue, match=r"lossless video goes into \.mkv"):
        write(tmp_path / "a.mp4", frames, codec="ffv1")
    with pytest.raises(BadValue, match="gop must be at least one frame, got 0"):
        write(tmp_path / "a.mp4", frames, gop=0)
    with pytest.raises(BadValue, match="codec must be one of"):
        write(tmp_path / "a.mp4", frames, codec="vhs")
    with pytest.raises(BadValue, match=r"shape \(48, 64, 3\), got uint8 of \(10, 10, 3\)"):
        write(tmp_path / "a.mp4", [frames[0], np.zeros((10, 10, 3), np.uint8)])
    with pytest.raises(BadValue, match="tick 3 is not later than 3"):
        write(tmp_path / "a.mp4", frames[:2], [3, 3])
    with pytest.raises(MediaError, match="no frame was written"), Writer(tmp_path / "a.mp4", size=(8, 8), fps=1):
        pass
    (tmp_path / "b.mp4").mkdir()
    with pytest.raises(MediaError, match="is a folder; name a file"):
        write(tmp_path / "b.mp4", frames)
    assert os.listdir(tmp_path) == ["b.mp4"]


def test_encoders_are_listed_and_required(monkeypatch: pytest.MonkeyPatch) -> None:
    assert encoders()["libx264"] is True
    with pytest.raises(EncoderMissing, match="the installed FFmpeg has no encoder libxyz") as caught:
        require_encoder("libxyz")
    assert (caught.value.fault, caught.value.exit_code) == ("F16", 5)
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(MediaError, match="needs PyAV, which is not installed"):
        require_encoder("libx264")


def test_unusual_file_names_work(tmp_path: Path, frames: list[Frame]) -> None:
    for name in (
        "-x.mp4",
        "a%03d.mp4",
        "concat:a.mp4",
        'it\'s "q".mp4',
        "new\nline.mp4",
        "é.mp4",
        "e\u0301.mp4",
        "☃ #.mkv",
    ):
        write(tmp_path / name, frames[:3])
        assert len(read(tmp_path / name)) == 3
    assert len(os.listdir(tmp_path)) == 8


@pytest.mark.fault("F187")
def test_gpl_encoders_are_refused_on_request_and_everything_else_works(
    tmp_path: Path, frames: list[Frame], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "before.mp4", frames)
    monkeypatch.setenv("JOSTLE_NO_GPL", "1")
    clip = read(tmp_path / "before.mp4")  # FFmpeg's own decoder
    for codec in ("h264", "h265"):
        with pytest.raises(EncoderMissing, match=r"libx26. is under the GPL, which JOSTLE_NO_GPL refuses") as caught:
            write(tmp_path / "after.mp4", frames, codec=codec)
        assert (caught.value.fault, caught.value.exit_code) == ("F187", 5)
    for spec in ("h264_crf:3", "h265_crf:3", "packet_loss:3"):
        with pytest.raises(EncoderMissing, match="leave corruptions that encode with it out"):
            jostle.corrupt(clip, spec)
    assert os.listdir(tmp_path) == ["before.mp4"]
    write(tmp_path / "lossless.mkv", frames, codec="ffv1")
    write(tmp_path / "images", frames, codec="images")
    write(tmp_path / "viewing.mp4", frames, codec=viewing_codec(), faststart=True)
    viewing = read(tmp_path / "viewing.mp4")
    assert "vp9" in probe(tmp_path / "viewing.mp4").codec
    assert np.abs(viewing.frames.astype(int) - np.stack(frames)).mean() < 20
    assert (jostle.corrupt(clip, "mpeg4:3").frames != clip.frames).any()
    monkeypatch.setenv("JOSTLE_NO_GPL", "0")
    assert viewing_codec() == "h264"
    require_encoder("libx264")
