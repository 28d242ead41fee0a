"""The encoder and the decoder alone, through PyAV: the floor under every codec corruption.

Nothing but what cannot be left out: RGB to YUV, encode, decode, YUV to RGB, on one thread, with the options
the corruption itself uses. Whatever jostle needs beyond that (cutting packets, replacing bytes, keeping
frames aligned) shows as a ratio below 1.
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

# What makes the encoders repeatable, as `jostle.io.video.encoders` sets it.
X264_PLAIN = "asm=sse2"
X265_ONE_THREAD = "pools=1:frame-threads=1:log-level=none"
USUAL_BITS, ABR_SHARE = (
    0.1,
    8,
)  # bits a pixel that a clip without a file counts as having, and the share of them kept


@dataclass(frozen=True)
class Codec:
    """A spec and the bare codec work inside it.

    Attributes:
        spec: profile and name, without severity.
        encoder, decoder: FFmpeg's names for them.
        options: the encoder's, as the corruption sets them at severity 3.
        passes: how many times the clip is encoded and decoded, one after the other.
    """

    spec: str
    encoder: str
    decoder: str
    options: Mapping[str, str] = field(default_factory=dict)
    passes: int = 1

    @property
    def who(self) -> str:
        return f"{self.encoder} alone" + (f", {self.passes} passes" if self.passes > 1 else "")

    def bare(self, frames: Frames, fps: float) -> Callable[[], Frames]:
        """The work on a clip: gives the frames that come back."""
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

        encoder = self._encoder(av, size, fps)
        decoder = av.CodecContext.create(self.decoder, "r")
        decoder.thread_count = 1
        # One converter each: a fresh one for every frame costs more than the conversion itself.
        to_yuv, to_rgb = VideoReformatter(), VideoReformatter()
        how: dict[str, Any] = {"interpolation": Interpolation.BICUBIC, "threads": 1}

        def decoded(packets: Any) -> Iterator[npt.NDArray[np.uint8]]:
            for packet in packets:
                for frame in decoder.decode(packet):
                    yield to_rgb.reformat(frame, format="rgb24", **how).to_ndarray()

        for t, frame in enumerate(frames):
            rgb = av.VideoFrame.from_ndarray(frame, format="rgb24")
            picture = to_yuv.reformat(rgb, format="yuv420p", **how)
            picture.pts = t
            picture.time_base = encoder.time_base
            yield from decoded(encoder.encode(picture))
        yield from decoded(encoder.encode(None))
        yield from decoded([None])

    def _encoder(self, av: Any, size: tuple[int, int], fps: float) -> Any:
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


def codecs(height: int, width: int, fps: float) -> list[Codec]:
    """The codec corruptions at severity 3, for a clip of this size that comes from no file."""
    one = {"x265-params": X265_ONE_THREAD}
    plain = {"x264-params": X264_PLAIN} if platform.machine().lower() in ("x86_64", "amd64") else {}
    quantiser = {"qmin": "31", "qmax": "31"}
    rate = str(int(int(USUAL_BITS * height * width * fps) / ABR_SHARE))
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
