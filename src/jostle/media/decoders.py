"""The settings that make a decoder give the same pixels on every processor, and keep it within bounds.

H.264 and what came after it say to the bit what a decoder must give. The MPEG family and Motion JPEG leave the inverse
transform free, and FFmpeg takes whichever is fastest on the processor at hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jostle.media.door import Limits

if TYPE_CHECKING:
    from av.video.codeccontext import VideoCodecContext

_XVID_TAGS = ("XVID", "XVIX", "RMP4", "ZMP4", "SIPP")
_OTHER_MAKERS = (b"DivX", b"Lavc", b"FFmpe")


def set_up_decoder(context: VideoCodecContext, limits: Limits) -> None:
    """Fix the inverse transform, and the largest picture that may be allocated.

    The plain one is what FFmpeg takes on x86-64. A stream of Xvid's is decoded with Xvid's own, as FFmpeg does
    everywhere: with another one the pictures drift from those that its encoder saw.
    """
    transform = "xvid" if _is_xvid(context) else "simple"
    context.options = {"max_pixels": str(limits.max_pixels), "idct": transform}


def _is_xvid(context: VideoCodecContext) -> bool:
    """Whether FFmpeg takes a stream for Xvid's: by the name in its header, or by its tag if no other encoder signed."""
    header = context.extradata or b""
    if context.name != "mpeg4":
        return False
    if b"XviD" in header:
        return True
    return context.codec_tag.upper() in _XVID_TAGS and not any(maker in header for maker in _OTHER_MAKERS)
