"""Real encoders at low quality: the clip is encoded and decoded again, frame count and timing kept.

Encoder and decoder run on one thread, since the number of threads changes what an encoder writes. Quantiser scales of
the MPEG codecs are fixed by equal lower and upper bounds.
"""

from __future__ import annotations

from collections.abc import Iterator

from jostle.core.types.clip import Frame
from jostle.corruptions.engine.context import ClipContext
from jostle.corruptions.engine.corruption import corruption
from jostle.io.video.encoders import require_encoder

# Bits per pixel assumed for frames that do not come from a file: an ordinary web video.
DEFAULT_BITS = 0.1


@corruption(level="codec", scale=(23, 30, 37, 44, 51), cites="yi2021")
def h264_crf(frames: Iterator[Frame], crf: int, scene: ClipContext) -> Iterator[Frame]:
    """H.264 at constant quality `crf`."""
    return _through(frames, scene, "libx264", "h264", {"crf": str(crf)})


@corruption(level="codec", scale=(27, 33, 39, 45, 51), cites="yi2021")
def h265_crf(frames: Iterator[Frame], crf: int, scene: ClipContext) -> Iterator[Frame]:
    """H.265 at constant quality `crf`."""
    return _through(frames, scene, "libx265", "hevc", {"crf": str(crf)})


@corruption(level="codec", scale=(2, 4, 8, 16, 32), cites="yi2021")
def h264_abr(frames: Iterator[Frame], share: int, scene: ClipContext) -> Iterator[Frame]:
    """H.264 at one part in `share` of the source's bit rate."""
    return _through(frames, scene, "libx264", "h264", _at_rate(scene, share))


@corruption(level="codec", scale=(2, 4, 8, 16, 32), cites="yi2021")
def h265_abr(frames: Iterator[Frame], share: int, scene: ClipContext) -> Iterator[Frame]:
    """H.265 at one part in `share` of the source's bit rate."""
    return _through(frames, scene, "libx265", "hevc", _at_rate(scene, share))


@corruption(level="codec", scale=(4, 8, 14, 22, 31), cites="schiappa2023")
def mpeg1(frames: Iterator[Frame], quantiser: int, scene: ClipContext) -> Iterator[Frame]:
    """MPEG-1 at a fixed quantiser scale."""
    return _through(frames, scene, "mpeg1video", "mpeg1video", _fixed(quantiser))


@corruption(level="codec", scale=(4, 8, 14, 22, 31), cites="schiappa2023")
def mpeg2(frames: Iterator[Frame], quantiser: int, scene: ClipContext) -> Iterator[Frame]:
    """MPEG-2 at a fixed quantiser scale."""
    return _through(frames, scene, "mpeg2video", "mpeg2video", _fixed(quantiser))


@corruption(level="codec", scale=(4, 8, 14, 22, 31), cites="schiappa2023")
def mpeg4(frames: Iterator[Frame], quantiser: int, scene: ClipContext) -> Iterator[Frame]:
    """MPEG-4 part 2 at a fixed quantiser scale."""
    return _through(frames, scene, "mpeg4", "mpeg4", _fixed(quantiser))


def _through(
    frames: Iterator[Frame], scene: ClipContext, encoder: str, decoder: str, options: dict[str, str]
) -> Iterator[Frame]:
    require_encoder(encoder)
    from jostle.io.video.codec import Codec, transcode  # loads FFmpeg, which the other corruptions do without

    return transcode(frames, Codec(encoder, decoder, dict(options)), fps=scene.fps, streams=scene.streams)


def _fixed(quantiser: int) -> dict[str, str]:
    return {"qmin": str(quantiser), "qmax": str(quantiser)}


def _at_rate(scene: ClipContext, share: int) -> dict[str, str]:
    height, width = scene.size
    source = scene.bit_rate or int(DEFAULT_BITS * height * width * scene.fps)
    rate = str(max(int(source / share), 1000))  # encoders refuse less
    return {"b": rate, "maxrate": rate, "bufsize": rate}
