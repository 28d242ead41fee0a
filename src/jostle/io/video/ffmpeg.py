"""FFmpeg input: opening of files, and decoder settings that give the same pixels on every processor.

H.264 and later standards define decoding bit for bit. The MPEG family and Motion JPEG do not define the inverse
transform, and FFmpeg uses whichever is fastest on the processor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import av
from av.container import InputContainer
from av.stream import Disposition

from jostle.core.interruption import native_call
from jostle.errors import MediaError
from jostle.io.video.coded_file import CodedFile
from jostle.io.video.validation import Limits, check_kind, printable_name

if TYPE_CHECKING:
    from av.packet import Packet
    from av.video.codeccontext import VideoCodecContext
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

_XVID_TAGS = ("XVID", "XVIX", "RMP4", "ZMP4", "SIPP")
_OTHER_MAKERS = (b"DivX", b"Lavc", b"FFmpe")


def set_up_decoder(context: VideoCodecContext, limits: Limits) -> None:
    """Set the inverse transform and the maximum picture size of a decoder.

    The "simple" transform is FFmpeg's choice on x86-64. Xvid streams are decoded with Xvid's own, as FFmpeg does
    everywhere, because pictures drift with any other.
    """
    transform = "xvid" if _is_xvid(context) else "simple"
    context.options = {"max_pixels": str(limits.max_pixels), "idct": transform}


def decode_packet(
    context: VideoCodecContext, packet: Packet[Any] | None, on_refused: Callable[[], None] | None = None
) -> list[VideoFrame]:
    """Return the pictures that a packet completes; none if the decoder refuses it. A hang ends a worker process.

    Args:
        packet: None flushes the decoder.
        on_refused: called if the decoder refuses the packet.
    """
    try:
        with native_call():
            return context.decode(packet)
    except EOFError:  # it was flushed already
        return []
    except (av.FFmpegError, ValueError, RuntimeError):
        if on_refused is not None:
            on_refused()
        return []


def _is_xvid(context: VideoCodecContext) -> bool:
    """Return whether FFmpeg takes a stream for Xvid's: by its header, or by its tag without another encoder's name."""
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


def open_input(file: CodedFile, limits: Limits) -> InputContainer:
    """Open a coded video as an FFmpeg container.

    The `file:` prefix makes FFmpeg take the rest of a local name literally, be it `-x`, `a:b` or `%03d`. Of what is no
    local file FFmpeg gets the bytes alone.
    """
    check_kind(file.open(), file.name)
    options = {
        "protocol_whitelist": "file",
        "format_whitelist": _FORMATS,
        "max_pixels": str(limits.max_pixels),
        "max_streams": "100",
    }
    try:
        # Old AVI files may have titles in unknown encodings, which are replaced.
        return av.open(
            f"file:{file.name}" if file.local else file.open(),
            "r",
            options=options,
            metadata_errors="replace",
            timeout=(limits.max_open_s, None),
        )
    except av.error.ExitError as error:
        raise MediaError(
            f"{printable_name(file.name)}: not read within {limits.max_open_s:g} s; cut it or raise the limit",
            fault="F10",
        ) from error
    except (av.FFmpegError, ValueError, OSError, RuntimeError) as error:
        raise MediaError(
            f"{printable_name(file.name)}: no video that FFmpeg can open ({_reason(error)}); "
            "check that it plays elsewhere, or download it again",
            fault="F2",
        ) from error


def _reason(error: BaseException) -> str:
    return str(getattr(error, "strerror", None) or error or type(error).__name__).split(";")[0]


def picture_streams(container: InputContainer) -> list[VideoStream]:
    """Return the video streams without cover art and thumbnails."""
    still = Disposition.attached_pic | Disposition.timed_thumbnails
    return [stream for stream in container.streams.video if not stream.disposition & still]


def picture_stream(container: InputContainer, path: str, limits: Limits) -> VideoStream:
    """Return the stream to decode: the first one marked as default, otherwise the first.

    Its declared size is checked here, before a decoder allocates anything.
    """
    name = printable_name(path)
    streams = picture_streams(container)
    if not streams:
        if container.streams.video:
            content = "only cover art"
        elif container.streams.audio:
            content = "only audio"
        else:
            content = "no video stream"
        raise MediaError(f"{name}: holds {content}; give a file with moving pictures", fault="F11")
    default = [stream for stream in streams if stream.disposition & Disposition.default]
    stream = (default or streams)[0]
    context = stream.codec_context
    if context is None:
        raise MediaError(f"{name}: the installed FFmpeg has no decoder for its video stream", fault="F2")
    if not 0 < context.width * context.height <= limits.max_pixels:
        # FFmpeg resets a size that it refuses to decode.
        size = f"frames of {context.width}x{context.height}," if context.width else "no frame size, or one of"
        raise MediaError(
            f"{name}: claims {size} more than {limits.max_pixels} pixels; raise JOSTLE_MAX_PIXELS if that is intended",
            fault="F9",
        )
    if stream.time_base is None or stream.time_base <= 0:
        raise MediaError(f"{name}: its video stream has no time base; remux the file", fault="F13")
    set_up_decoder(context, limits)
    return stream
