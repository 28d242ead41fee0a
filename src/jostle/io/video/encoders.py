"""Which encoders are installed, and the settings that make each give the same bytes every time and everywhere."""

from __future__ import annotations

import platform
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

from jostle.errors import EncoderMissing, MediaError
from jostle.io.video.probe import have_pyav

if TYPE_CHECKING:
    from av.video.codeccontext import VideoCodecContext

KNOWN = ("libx264", "libx265", "ffv1", "mpeg1video", "mpeg2video", "mpeg4", "mjpeg", "libvpx-vp9")

_TRANSFORM_CODERS = ("mpeg1video", "mpeg2video", "mpeg4", "mjpeg")

# MPEG-1 and MPEG-2 can write no other rates into their headers.
_MPEG_RATES = tuple(Fraction(rate) for rate in ("24000/1001", "24", "25", "30000/1001", "30", "50", "60000/1001", "60"))


@cache
def encoders() -> dict[str, bool]:
    """Whether each encoder that jostle can use is installed."""
    return {name: _has_encoder(name) for name in KNOWN}


def _has_encoder(name: str) -> bool:
    if not have_pyav():
        return False
    import av

    try:
        av.Codec(name, "w")
    except ValueError:
        return False
    return True


def require_encoder(name: str) -> None:
    """Refuse, before any work is done, when an encoder is missing."""
    if not have_pyav():
        raise MediaError(f"writing video with {name} needs PyAV, which is not installed: pip install av", fault="F16")
    if not _has_encoder(name):
        raise EncoderMissing(
            f"the installed FFmpeg has no encoder {name}; install PyAV from its wheels, which carry it",
            fault="F16",
        )


def repeatable(encoder: str, options: dict[str, str]) -> dict[str, str]:
    """`options` with what it takes for equal input to give equal bytes, as far as can be on every processor.

    x264 on x86-64 is kept to plain SSE2, which every such machine has and which gives the bits of the C code. From
    SSSE3 on its blocks are weighed otherwise, and in build 165 the AVX-512 code of its macroblock tree reads memory
    it never wrote, so that output changes with whatever lay there. At a constant quantiser (`qp`), without adaptive
    quantisation, tree and weighted prediction, it has whole numbers only, and its code for ARM gives the bits of
    the C code too. At any other rate it weighs fractions, for which the code for ARM estimates quotients: there the
    C code is taken, three times slower, and a few streams differ even so, as sums of fractions round differently in
    C too. In x265 such sums decide far more often, by its tree, so that is left out. x265 is kept to one pool and
    one frame at a time, because its threads change its decisions, and does not write a line on the processor into
    the stream. The MPEG family is told to transform in whole numbers; by default it does so as is fastest on each
    processor.
    """
    if encoder == "libx264":
        x86_64 = platform.machine().lower() in ("x86_64", "amd64")
        if "qp" in options:
            options = _joined(options, "x264-params", "aq-mode=0:mbtree=0:weightp=0")
        elif not x86_64:
            return _joined(options, "x264-params", "no-asm=1")
        return _joined(options, "x264-params", "asm=sse2") if x86_64 else options
    if encoder == "libx265":
        return _joined(options, "x265-params", "pools=1:frame-threads=1:log-level=none:info=0:cutree=0")
    if encoder in _TRANSFORM_CODERS:
        return {**options, "dct": "int", "idct": "simple"}
    return options


def _joined(options: dict[str, str], key: str, setting: str) -> dict[str, str]:
    given = options.get(key)
    return {**options, key: f"{given}:{setting}" if given else setting}


def narrowest(encoder: str) -> int:
    """The least width that an encoder handles: x265 writes past its buffers on a frame narrower than 64 pixels."""
    return 64 if encoder == "libx265" else 1


def coding_rate(encoder: str, fps: Fraction) -> Fraction:
    """The rate to tell an encoder: `fps` itself, or the nearest one that its headers can hold.

    Frames are neither dropped nor repeated for it; only the bits a second are spread by it.
    """
    if encoder in ("mpeg1video", "mpeg2video"):
        return min(_MPEG_RATES, key=lambda rate: abs(rate - fps))
    if encoder == "mpeg4":
        # Its clock has 16 bits.
        return 1 / (1 / fps).limit_denominator(65535) if fps >= 1 else fps.limit_denominator(65535)
    return fps


def set_up(context: VideoCodecContext, size: tuple[int, int], pixel_format: str, options: dict[str, str]) -> None:
    """Give an encoder its picture size, pixel format, colour tags and repeatable options."""
    from av.codec.context import Flags

    context.height, context.width = size
    context.pix_fmt = pixel_format
    context.options = repeatable(context.name, options)
    context.flags |= Flags.bitexact
    if not pixel_format.startswith(("gbr", "rgb", "bgr")):
        # BT.601, as numbered in ITU-T H.273, and the range that the converter produces.
        context.colorspace = context.color_primaries = context.color_trc = 6
        context.color_range = 2 if pixel_format.startswith("yuvj") else 1
