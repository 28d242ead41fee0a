"""Encoding and decoding alone, through PyAV: a lower bound on the time of every codec corruption.

The steps are those that no implementation can leave out: RGB to YUV, encode, decode, YUV to RGB, on one thread, with
the options of the corruption itself. Whatever else jostle does (splitting packets, replacing bytes, keeping frames
aligned) shows as a ratio below 1.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.clips import Frames

# Options that make the encoders reproducible, as `jostle.io.video.encoders` sets them.
X264_PLAIN = "asm=sse2"
X265_ONE_THREAD = "pools=1:frame-threads=1:log-level=none"
DEFAULT_BITS = 0.1  # assumed bits a pixel of a clip that comes from no file
ABR_REDUCTION = 8  # factor by which average-bit-rate corruptions reduce them


@dataclass(frozen=True)
class Codec:
    """A codec corruption and the encoder and decoder it uses.

    Attributes:
        spec: profile and name, without severity.
        encoder, decoder: their names in FFmpeg.
        options: options of the encoder, as the corruption sets them at severity 3.
        passes: number of times the clip is encoded and decoded, one after the other.
    """

    spec: str
    encoder: str
    decoder: str
    options: Mapping[str, str] = field(default_factory=dict)
    passes: int = 1

    @property
    def peer_name(self) -> str:
        return f"{self.encoder} alone" + (f", {self.passes} passes" if self.passes > 1 else "")

    def make_work(self, frames: Frames, fps: float) -> Callable[[], Frames]:
        """Return a function that encodes and decodes a clip and returns the decoded frames."""
        even = np.ascontiguousarray(frames[:, : frames.shape[1] // 2 * 2, : frames.shape[2] // 2 * 2])

        def work() -> Frames:
            clip: Any = iter(even)
            for _ in range(self.passes):
                clip = self._round_trip(clip, even.shape[1:3], fps)
            out = np.empty_like(even)
            for t, frame in enumerate(clip):
                out[t] = frame
            return out

        return work

    def _round_trip(
        self, frames: Iterator[npt.NDArray[np.uint8]], size: tuple[int, int], fps: float
    ) -> Iterator[npt.NDArray[np.uint8]]:
        import av
        from av.video.reformatter import Interpolation, VideoReformatter

        encoder = self._open_encoder(av, size, fps)
        decoder = av.CodecContext.create(self.decoder, "r")
        decoder.thread_count = 1
        # One converter each: a fresh one for every frame costs more than the conversion itself.
        to_yuv, to_rgb = VideoReformatter(), VideoReformatter()
        options: dict[str, Any] = {"interpolation": Interpolation.BICUBIC, "threads": 1}

        def decode(packets: Any) -> Iterator[npt.NDArray[np.uint8]]:
            for packet in packets:
                for frame in decoder.decode(packet):
                    yield to_rgb.reformat(frame, format="rgb24", **options).to_ndarray()

        for t, frame in enumerate(frames):
            rgb = av.VideoFrame.from_ndarray(frame, format="rgb24")
            picture = to_yuv.reformat(rgb, format="yuv420p", **options)
            picture.pts = t
            picture.time_base = encoder.time_base
            yield from decode(encoder.encode(picture))
        yield from decode(encoder.encode(None))
        yield from decode([None])

    def _open_encoder(self, av: Any, size: tuple[int, int], fps: float) -> Any:
        from av.codec.context import Flags

        encoder = av.CodecContext.create(self.encoder, "w")
        encoder.height, encoder.width = size
        encoder.pix_fmt = "yuv420p"
        encoder.framerate = Fraction(fps).limit_denominator(1001)
        encoder.time_base = 1 / encoder.framerate
        encoder.thread_count = 1
        encoder.options = dict(self.options)
        encoder.flags |= Flags.bitexact
        return encoder


def list_codecs(height: int, width: int, fps: float) -> list[Codec]:
    """Return the codec corruptions at severity 3, for a clip of a given size that comes from no file."""
    one = {"x265-params": X265_ONE_THREAD}
    plain = {"x264-params": X264_PLAIN} if platform.machine().lower() in ("x86_64", "amd64") else {}
    quantiser = {"qmin": "31", "qmax": "31"}
    rate = str(int(int(DEFAULT_BITS * height * width * fps) / ABR_REDUCTION))
    mean_rate = {"b": rate, "maxrate": rate, "bufsize": rate}
    return [
        Codec("kinetics-c/h265_crf", "libx265", "hevc", {"crf": "39", **one}),
        Codec("kinetics-c/h265_abr", "libx265", "hevc", {**mean_rate, **one}),
        Codec("kinetics-c/h264_crf", "libx264", "h264", {"crf": "37", **plain}),
        Codec("kinetics-c/h264_abr", "libx264", "h264", {**mean_rate, **plain}),
        Codec("kinetics-c/bit_error", "libx264", "h264", {"crf": "23", **plain}),
        Codec("kinetics-c/packet_loss", "libx264", "h264", {"crf": "23", **plain}, passes=2),
        Codec("ucf101-p/mpeg1", "mpeg2video", "mpeg2video", quantiser),
        Codec("ucf101-p/mpeg2", "mpeg4", "mpeg4", quantiser),
    ]
