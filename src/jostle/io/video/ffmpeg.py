"""The settings that make a decoder give the same pixels on every processor, and keep it within bounds.

H.264 and what came after it say to the bit what a decoder must give. The MPEG family and Motion JPEG leave the inverse
transform free, and FFmpeg takes whichever is fastest on the processor at hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import av
from av.container import InputContainer
from av.stream import Disposition

from jostle.errors import MediaError
from jostle.io.video.validation import Limits, check_kind, shown_name

if TYPE_CHECKING:
    from av.video.codeccontext import VideoCodecContext
    from av.video.stream import VideoStream

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


# Demuxers that read one file and nothing else. Playlists, image sequences, devices and text are absent, so
# a file cannot make FFmpeg open another one, whatever its name or its content.
_FORMATS = (
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,flv,mpeg,mpegts,mpegvideo,asf,ogg,m4v,h264,hevc,h263,av1,obu,ivf,nut,"
    "rm,mxf,gxf,yuv4mpegpipe,dv,wtv,gif,mjpeg,vc1,vc1test,dirac,amv,bink,smk,nsv,swf,roq,flic,apng,vivo,cavsvideo,"
    "pva,r3d,cine,ty,dhav,mlv,ser"
)


def open_input(path: str, limits: Limits) -> InputContainer:
    """An FFmpeg container over one checked local file.

    The `file:` prefix makes FFmpeg take the rest of the name literally, be it `-x`, `a:b` or `%03d`.
    """
    check_kind(path)
    options = {
        "protocol_whitelist": "file",
        "format_whitelist": _FORMATS,
        "max_pixels": str(limits.max_pixels),
        "max_streams": "100",
    }
    try:
        # Old AVI files carry titles in unknown encodings, which must not keep them from being read.
        return av.open(
            f"file:{path}",
            "r",
            options=options,
            metadata_errors="replace",
            timeout=(limits.max_open_s, None),
        )
    except av.error.ExitError as error:
        raise MediaError(
            f"{shown_name(path)}: not read within {limits.max_open_s:g} s; cut it or raise the limit", fault="F10"
        ) from error
    except (av.FFmpegError, ValueError, OSError, RuntimeError) as error:
        raise MediaError(
            f"{shown_name(path)}: no video that FFmpeg can open ({_reason(error)}); "
            "check that it plays elsewhere, or download it again",
            fault="F2",
        ) from error


def _reason(error: BaseException) -> str:
    return str(getattr(error, "strerror", None) or error or type(error).__name__).split(";")[0]


def picture_streams(container: InputContainer) -> list[VideoStream]:
    """The video streams that move: cover art and thumbnails are left out."""
    still = Disposition.attached_pic | Disposition.timed_thumbnails
    return [stream for stream in container.streams.video if not stream.disposition & still]


def picture_stream(container: InputContainer, path: str, limits: Limits) -> VideoStream:
    """The stream to decode: the first one marked as default, otherwise the first.

    Its declared size is checked here, before a decoder allocates anything.
    """
    shown = shown_name(path)
    streams = picture_streams(container)
    if not streams:
        if container.streams.video:
            what = "only cover art"
        elif container.streams.audio:
            what = "only audio"
        else:
            what = "no video stream"
        raise MediaError(f"{shown}: holds {what}; give a file with moving pictures", fault="F11")
    default = [stream for stream in streams if stream.disposition & Disposition.default]
    stream = (default or streams)[0]
    context = stream.codec_context
    if context is None:
        raise MediaError(f"{shown}: the installed FFmpeg has no decoder for its video stream", fault="F2")
    if not 0 < context.width * context.height <= limits.max_pixels:
        # FFmpeg forgets a size that it will not decode.
        size = f"frames of {context.width}x{context.height}," if context.width else "no frame size, or one of"
        raise MediaError(
            f"{shown}: claims {size} more than {limits.max_pixels} pixels; raise JOSTLE_MAX_PIXELS if that is meant",
            fault="F9",
        )
    if stream.time_base is None or stream.time_base <= 0:
        raise MediaError(f"{shown}: its video stream has no time base; remux the file", fault="F13")
    set_up_decoder(context, limits)
    return stream
