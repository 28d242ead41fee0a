"""Frame sinks: video files (encoder, container and copied sound) and image folders under construction."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

import av
import cv2
from av.audio.stream import AudioStream
from av.container import InputContainer, OutputContainer
from av.packet import Packet
from av.video.stream import VideoStream

from jostle.core.types.clip import Frame
from jostle.errors import BadValue, MediaError
from jostle.io.video.colour import FromRgb
from jostle.io.video.encoders import min_width, require_encoder, set_up
from jostle.io.video.ffmpeg import open_input, picture_stream
from jostle.io.video.location import locate
from jostle.io.video.validation import Limits, PathLike, printable_name

PRIMING_S = 1.0  # more than any encoder puts before the sound for its decoder to begin with

# The thread count affects x264's output, so it is fixed.
ENCODER_THREADS = 4


class Sink(ABC):
    """Destination of frames, at a temporary path until it is complete."""

    def __init__(self, temporary: Path) -> None:
        self.temporary = temporary
        self.warnings: list[str] = []
        self.has_sound = False

    @abstractmethod
    def write(self, frame: Frame, tick: int) -> None:
        """Write one frame at a tick."""

    @abstractmethod
    def finish(self) -> None:
        """Flush everything, so that the temporary path is complete and on disk."""

    @abstractmethod
    def discard(self) -> None:
        """Remove everything that was written."""


JPEG_QUALITY = 95
_JPEG = [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY, cv2.IMWRITE_JPEG_SAMPLING_FACTOR, cv2.IMWRITE_JPEG_SAMPLING_FACTOR_444]


class ImageFolder(Sink):
    """Sink that writes images, `00000.png` and so on or given names, and `times.json`.

    `times.json` holds the rate and the time base as fractions, and the tick of every image.

    Args:
        names: file names of the images; .jpg and .jpeg are written as JPEG, others as PNG.
    """

    def __init__(
        self, temporary: Path, *, fps: Fraction, time_base: Fraction, names: Sequence[str] | None = None
    ) -> None:
        super().__init__(temporary)
        self._names = names
        self._fps = fps
        self._time_base = time_base
        self._ticks: list[int] = []
        temporary.mkdir()

    def write(self, frame: Frame, tick: int) -> None:
        """Write one frame as an image."""
        number = len(self._ticks)
        name = f"{number:05d}.png" if self._names is None else self._names[number]
        jpeg = name.lower().endswith((".jpg", ".jpeg"))
        done, data = cv2.imencode(".jpg" if jpeg else ".png", frame[..., ::-1], _JPEG if jpeg else [])
        assert done, "both formats store any 8-bit RGB image"
        self._write(name, data.tobytes())
        self._ticks.append(tick)

    def finish(self) -> None:
        """Write the times of all images."""
        times = {"fps": str(self._fps), "time_base": str(self._time_base), "ticks": self._ticks}
        self._write("times.json", json.dumps(times, indent=1).encode())

    def _write(self, name: str, data: bytes) -> None:
        with open(self.temporary / name, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def discard(self) -> None:
        """Remove the folder with all images."""
        shutil.rmtree(self.temporary, ignore_errors=True)


_MUXERS = {".mp4": "mp4", ".m4v": "mp4", ".mov": "mov", ".mkv": "matroska", ".avi": "avi"}
_CODECS = {"h264": "libx264", "h265": "libx265", "vp9": "libvpx-vp9", "ffv1": "ffv1"}
# Audio codecs that each container supports reliably; FFmpeg's own list is longer than what its muxers support.
_SOUND = {
    "mp4": ("aac", "mp3", "ac3", "eac3", "opus", "flac", "alac"),
    "mov": ("aac", "mp3", "ac3", "eac3", "alac", "pcm_s16le", "pcm_s16be", "pcm_s24le"),
    "avi": ("aac", "mp3", "ac3", "mp2", "pcm_s16le", "pcm_u8"),
}
_BITEXACT = 0x0400  # AVFMT_FLAG_BITEXACT
_QUALITY = {"h264": 16.0, "h265": 18.0, "vp9": 24.0}
# Measured on videos coded both ways: this offset gives the fidelity of a rate factor within 0.1 dB.
_QUANTISER_ABOVE_RATE_FACTOR = 3


class VideoFile(Sink):
    """Sink that encodes frames into a container."""

    def __init__(
        self,
        temporary: Path,
        *,
        suffix: str,
        size: tuple[int, int],
        fps: Fraction,
        time_base: Fraction,
        codec: str,
        quality: float | None,
        gop: int,
        faststart: bool,
        audio_from: PathLike | None,
        metadata: dict[str, str],
    ) -> None:
        super().__init__(temporary)
        if suffix not in _MUXERS:
            raise BadValue(f"a video file ends in {', '.join(_MUXERS)}, not {suffix!r}")
        if codec not in _CODECS:
            raise BadValue(f"codec must be one of h264, h265, vp9, ffv1, images, got {codec!r}")
        if codec == "ffv1" and suffix not in (".mkv", ".avi"):
            raise BadValue(f"lossless video goes into .mkv, not {suffix}; change the name")
        require_encoder(_CODECS[codec])
        if size[1] < min_width(_CODECS[codec]):
            raise BadValue(f"h265 needs frames at least 64 pixels wide, not {size[1]}; write h264")
        odd = bool(size[0] % 2 or size[1] % 2)
        pixel_format = "bgr0" if codec == "ffv1" else "yuv444p" if odd else "yuv420p"
        self._convert = FromRgb(pixel_format)
        self._time_base = time_base
        self._sound: _Sound | None = None
        muxer = _MUXERS[suffix]
        options = {}
        if muxer in ("mp4", "mov"):
            # As fine as the pictures' own, so that the first frame is not rounded.
            options["movie_timescale"] = str(max(1000, min(time_base.denominator, 2**31 - 1)))
            if faststart:
                options["movflags"] = "+faststart"
        self._container: OutputContainer | None = av.open(
            f"file:{os.path.abspath(temporary)}", "w", format=muxer, options=options
        )
        try:
            # Without this flag muxers write random identifiers and their version.
            self._container.flags |= _BITEXACT
            self._container.metadata.update(metadata)
            settings = _options(codec, quality, gop)
            self._stream = self._video_stream(_CODECS[codec], size, pixel_format, settings, fps)
            if audio_from is not None:
                self._sound = self._open_sound(audio_from)
                self.has_sound = self._sound is not None
        except BaseException:
            self.discard()
            raise

    def _video_stream(
        self, encoder: str, size: tuple[int, int], pixel_format: str, options: dict[str, str], fps: Fraction
    ) -> VideoStream:
        assert self._container is not None
        stream = self._container.add_stream(encoder, rate=fps)
        assert isinstance(stream, VideoStream)
        set_up(stream.codec_context, size, pixel_format, options)
        stream.codec_context.time_base = self._time_base
        stream.codec_context.thread_count = 1 if encoder == "libx265" else ENCODER_THREADS
        stream.time_base = self._time_base
        return stream

    def _open_sound(self, path: PathLike) -> _Sound | None:
        assert self._container is not None
        sound = _Sound(path)
        if sound.stream is None:
            sound.close()
            return None
        codec = sound.stream.codec_context.codec.canonical_name
        muxer = self._container.format.name
        if codec not in _SOUND.get(muxer, (codec,)):
            sound.close()
            self.warnings.append(f"{muxer} cannot hold {codec} sound, so there is none; write .mkv to keep it")
            return None
        sound.target = self._container.add_stream_from_template(sound.stream)
        if muxer == "matroska" and sound.first_s < 0:
            if sound.first_s >= -PRIMING_S:
                # FFmpeg would move everything to begin at 0, the pictures too. A block may begin before 0; it is
                # decoded and not played, as the encoder's priming should be.
                self._container.options["avoid_negative_ts"] = "disabled"
            else:
                self.warnings.append(
                    f"its sound begins {-sound.first_s:.2f} s before its pictures, which therefore begin "
                    f"{-sound.first_s:.2f} s after the beginning of the .mkv; write .mp4 to have them begin at 0"
                )
        return sound

    def write(self, frame: Frame, tick: int) -> None:
        """Encode one frame and write its packets."""
        picture = self._convert(frame)
        picture.pts = tick
        picture.time_base = self._time_base
        self._mux(self._stream.codec_context.encode(picture))

    def _mux(self, packets: list[Packet[VideoStream]]) -> None:
        assert self._container is not None
        for packet in packets:
            packet.stream = self._stream
            stamp = packet.dts if packet.dts is not None else packet.pts
            if self._sound and stamp is not None:
                for sound in self._sound.until(float(stamp * packet.time_base)):
                    self._container.mux(sound)
            self._container.mux(packet)

    def finish(self) -> None:
        """Flush the encoder, copy the rest of the sound, close the container and wait for the disk."""
        assert self._container is not None
        self._mux(self._stream.codec_context.encode(None))
        if self._sound:
            for packet in self._sound.until(float("inf")):
                self._container.mux(packet)
            self._sound.close()
        self._container.close()
        self._container = None
        with open(self.temporary, "rb+") as file:
            os.fsync(file.fileno())

    def discard(self) -> None:
        """Close and remove the unfinished file."""
        if self._sound:
            self._sound.close()
        # Before it is closed: an unlinked file is not rewritten to move its index.
        self.temporary.unlink(missing_ok=True)
        if self._container is not None:
            with contextlib.suppress(av.FFmpegError, OSError, ValueError):
                self._container.close()
            self._container = None


class _Sound:
    """Audio packets of another file, synchronized with the pictures.

    Attributes:
        stream: the audio stream there, or None.
        target: the stream that the packets are written to.
        first_s: seconds from the first picture to the first packet.
    """

    first_s = 0.0

    def __init__(self, path: PathLike) -> None:
        limits = Limits()
        file = locate(path)
        name = file.name
        self._container: InputContainer = open_input(file, limits)
        self.stream: AudioStream | None = next(iter(self._container.streams.audio), None)
        self.target: AudioStream | None = None
        self._waiting: Packet[AudioStream] | None = None
        if self.stream is None:
            return
        if self.stream.codec_context is None or self.stream.time_base is None:
            raise MediaError(f"{printable_name(name)}: its sound cannot be copied; leave it out", fault="F16")
        pictures = picture_stream(self._container, name, limits)
        start = (pictures.start_time or 0) * (pictures.time_base or Fraction(1))
        self._shift = round(start / self.stream.time_base)
        self._packets: Iterator[Packet[AudioStream]] = self._container.demux(self.stream)
        self._waiting = next((packet for packet in self._packets if packet.pts is not None), None)
        if self._waiting is not None and self._waiting.pts is not None:
            self.first_s = float((self._waiting.pts - self._shift) * self.stream.time_base)

    def until(self, seconds: float) -> Iterator[Packet[AudioStream]]:
        """Yield the packets that are due before this time."""
        while True:
            packet = self._waiting or next(self._packets, None)
            self._waiting = None
            if packet is None:
                return
            if packet.dts is None or packet.pts is None or packet.size == 0:
                continue
            if packet.stream is not self.target:
                packet.dts -= self._shift
                packet.pts -= self._shift
                assert self.target is not None
                packet.stream = self.target
            if float(packet.dts * packet.time_base) > seconds:
                self._waiting = packet
                return
            yield packet

    def close(self) -> None:
        """Close the file with the sound."""
        self._container.close()


def _options(codec: str, quality: float | None, gop: int) -> dict[str, str]:
    if codec == "ffv1":
        return {"level": "3", "slices": "4", "slicecrc": "1", "g": "1"}
    factor = _QUALITY[codec] if quality is None else quality
    if codec == "vp9":
        return {"crf": f"{factor:g}", "b": "0", "deadline": "realtime", "cpu-used": "8", "g": str(gop)}
    settings = {"preset": "veryfast", "g": str(gop)}
    if codec == "h264":
        return {**settings, "qp": str(min(round(factor) + _QUANTISER_ABOVE_RATE_FACTOR, 51))}
    return {**settings, "crf": f"{factor:g}"}
