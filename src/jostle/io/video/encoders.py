"""Available encoders, and options that make their output reproducible on every machine."""

from __future__ import annotations

import platform
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

from jostle.core.environment import refuses_gpl
from jostle.errors import EncoderMissing
from jostle.io.video.facts import require_pyav

if TYPE_CHECKING:
    from av.video.codeccontext import VideoCodecContext

KNOWN = ("libx264", "libx265", "ffv1", "mpeg1video", "mpeg2video", "mpeg4", "mjpeg", "libvpx-vp9")
GPL = ("libx264", "libx265")  # of those; everything else that jostle uses of FFmpeg is LGPL or freer

_TRANSFORM_CODERS = ("mpeg1video", "mpeg2video", "mpeg4", "mjpeg")

# MPEG-1 and MPEG-2 can write no other rates into their headers.
_MPEG_RATES = tuple(Fraction(rate) for rate in ("24000/1001", "24", "25", "30000/1001", "30", "50", "60000/1001", "60"))


@cache
def encoders() -> dict[str, bool]:
    """Return which of the supported encoders are installed."""
    return {name: _has_encoder(name) for name in KNOWN}


def _has_encoder(name: str) -> bool:
    try:
        import av

        av.Codec(name, "w")
    except (ImportError, ValueError):
        return False
    return True


def require_encoder(name: str) -> None:
    """Raise an error before any work is done if an encoder is missing, or refused for its licence."""
    if name in GPL and refuses_gpl():
        raise EncoderMissing(
            f"{name} is under the GPL, which JOSTLE_NO_GPL refuses; write lossless video (FFV1) or images, leave "
            "corruptions that encode with it out, or unset the variable",
            fault="F187",
        )
    require_pyav(f"writing video with {name}")
    if not _has_encoder(name):
        raise EncoderMissing(
            f"the installed FFmpeg has no encoder {name}; install PyAV from its wheels, which carry it", fault="F16"
        )


def reproducible_options(encoder: str, options: dict[str, str]) -> dict[str, str]:
    """Extend encoder options so that equal input gives equal bytes, on every processor as far as possible.

    On x86-64, x264 is restricted to SSE2, which every such machine has and which matches the C code bit for bit. From
    SSSE3 on, block costs differ, and in build 165 the AVX-512 code of the macroblock tree reads uninitialised memory.
    At a constant quantiser (`qp`), without adaptive quantisation, macroblock tree and weighted prediction, x264 uses
    integers only, and its ARM code matches the C code too. In other modes it uses floats, for which the ARM code
    estimates quotients: there the C code is used, which is three times slower, and a few streams still differ because
    sums of floats round differently. In x265 such sums matter far more often in its tree, so that is disabled. x265
    is restricted to one pool and one frame thread, because threads change its decisions, and writes no information on
    the processor into the stream. The MPEG family is set to integer transforms; its default depends on the processor.
    """
    if encoder == "libx264":
        x86_64 = platform.machine().lower() in ("x86_64", "amd64")
        if "qp" in options:
            options = _append_option(options, "x264-params", "aq-mode=0:mbtree=0:weightp=0")
        elif not x86_64:
            return _append_option(options, "x264-params", "no-asm=1")
        return _append_option(options, "x264-params", "asm=sse2") if x86_64 else options
    if encoder == "libx265":
        return _append_option(options, "x265-params", "pools=1:frame-threads=1:log-level=none:info=0:cutree=0")
    if encoder in _TRANSFORM_CODERS:
        return {**options, "dct": "int", "idct": "simple"}
    return options


def _append_option(options: dict[str, str], key: str, setting: str) -> dict[str, str]:
    existing = options.get(key)
    return {**options, key: f"{existing}:{setting}" if existing else setting}


def min_width(encoder: str) -> int:
    """Return the minimum width of an encoder: x265 writes past its buffers below 64 pixels."""
    return 64 if encoder == "libx265" else 1


def coding_rate(encoder: str, fps: Fraction) -> Fraction:
    """Return the frame rate for an encoder: `fps` itself, or the nearest that its headers can hold.

    Frames are neither dropped nor repeated; the rate only affects the distribution of bits.
    """
    if encoder in ("mpeg1video", "mpeg2video"):
        return min(_MPEG_RATES, key=lambda rate: abs(rate - fps))
    if encoder == "mpeg4":
        # MPEG-4's clock has 16 bits.
        return 1 / (1 / fps).limit_denominator(65535) if fps >= 1 else fps.limit_denominator(65535)
    return fps


def set_up(context: VideoCodecContext, size: tuple[int, int], pixel_format: str, options: dict[str, str]) -> None:
    """Configure an encoder's picture size, pixel format, colour tags and reproducible options."""
    from av.codec.context import Flags

    context.height, context.width = size
    context.pix_fmt = pixel_format
    context.options = reproducible_options(context.name, options)
    context.flags |= Flags.bitexact
    if not pixel_format.startswith(("gbr", "rgb", "bgr")):
        # BT.601, as numbered in ITU-T H.273, and the range that the converter produces.
        context.colorspace = context.color_primaries = context.color_trc = 6
        context.color_range = 2 if pixel_format.startswith("yuvj") else 1
