"""Facts of a video file, read without decoding more than its first frame."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from jostle.errors import MediaError
from jostle.io.video.validation import printable_name

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream


@dataclass(frozen=True)
class VideoFacts:
    """Facts of a video file or a folder of images.

    Attributes:
        path: absolute path of the file or folder.
        container: FFmpeg's name of the container format; "images" for images, the name of a registered source.
        codec: FFmpeg's name of the decoder; for images the ending of their names.
        width: in pixels, after rotation.
        height: in pixels, after rotation.
        rotation: clockwise rotation of stored frames for display: 0, 90, 180 or 270 degrees.
        fps: exact nominal frame rate.
        time_base: seconds in a tick of the stream's clock.
        declared_frames: number of frames that the container claims, or None if it does not say.
        duration_s: length that the container claims, or None.
        pixel_format: FFmpeg's name of the stored pixel format.
        bit_depth: bits a stored sample.
        sample_aspect: width of a stored pixel over its height.
        interlaced: whether frames hold two fields; None if unknown.
        colour_range: "limited", "full" or None if the file does not say.
        bit_rate: bits a second of the whole file, or None.
        audio_codec: name of the first audio stream's codec, or None without sound.
        video_streams: number of streams with moving pictures.
        decoder: what decodes it: "pyav", "images" for images, "plugin" for a registered source.
        warnings: what a reader should know before trusting the pixels or the times.
    """

    path: str
    container: str
    codec: str
    width: int
    height: int
    rotation: int
    fps: Fraction
    time_base: Fraction
    declared_frames: int | None
    duration_s: float | None
    pixel_format: str
    bit_depth: int
    sample_aspect: Fraction
    interlaced: bool | None
    colour_range: Literal["limited", "full"] | None
    bit_rate: int | None
    audio_codec: str | None
    video_streams: int
    decoder: Literal["pyav", "images", "plugin"]
    warnings: tuple[str, ...]


_FIRST_FRAME_PACKETS = 300  # after which the search for a first frame ends
_PROGRESSIVE_FIELD_ORDERS = (0, 1)  # unknown, progressive
_PQ, _HLG = 16, 18  # transfer characteristics of HDR video, as numbered in ITU-T H.273


def require_pyav(action: str) -> None:
    """Raise an error that names the action if PyAV, through which all video is read and written, is missing."""
    try:
        import av  # noqa: F401
    except ImportError:
        raise MediaError(f"{action} needs PyAV, which is not installed: pip install av", fault="F16") from None


def facts_of(container: InputContainer, stream: VideoStream, path: str, size: int) -> VideoFacts:
    """Return the facts of an open file; decodes up to its first frame."""
    from jostle.io.video.ffmpeg import picture_streams

    context = stream.codec_context
    first = _first_frame(container, stream, path)
    rotation = -first.rotation % 360 if first else 0
    rotation = round(rotation / 90) * 90 % 360
    width, height = (first.width, first.height) if first else (context.width, context.height)
    if rotation in (90, 270):
        width, height = height, width
    time_base = stream.time_base
    assert time_base is not None  # picture_stream refuses a stream without one
    duration_s = None
    if stream.duration is not None and stream.duration > 0:
        duration_s = float(stream.duration * time_base)
    elif container.duration is not None and container.duration > 0:
        duration_s = container.duration / 1_000_000
    rate = stream.average_rate or stream.guessed_rate or stream.base_rate
    if container.bit_rate > 0:
        bit_rate: int | None = container.bit_rate
    else:
        bit_rate = round(size * 8 / duration_s) if duration_s else None
    layout = first.format if first else context.format
    interlaced = None
    if first:
        interlaced = bool(first.interlaced_frame) or context.field_order not in _PROGRESSIVE_FIELD_ORDERS
    audio = container.streams.audio[0].codec_context if container.streams.audio else None
    aspect = stream.sample_aspect_ratio
    facts = VideoFacts(
        path=path,
        container=container.format.name,
        codec=context.name,
        width=width,
        height=height,
        rotation=rotation,
        fps=rate if rate and rate > 0 else Fraction(25),
        time_base=time_base,
        declared_frames=stream.frames or None,
        duration_s=duration_s,
        pixel_format=layout.name if layout else "",
        bit_depth=layout.components[0].bits if layout else 8,
        sample_aspect=aspect if aspect and aspect > 0 else Fraction(1),
        interlaced=interlaced,
        colour_range=_range_name(first),
        bit_rate=bit_rate,
        audio_codec=audio.name if audio else None,
        video_streams=len(picture_streams(container)),
        decoder="pyav",
        warnings=(),
    )
    notes = _notes(facts, first, rate_known=bool(rate))
    return VideoFacts(**{**facts.__dict__, "warnings": tuple(notes)})


def _first_frame(container: InputContainer, stream: VideoStream, path: str) -> VideoFrame | None:
    import av

    from jostle.io.video.ffmpeg import decode_packet

    try:
        for count, packet in enumerate(container.demux(stream)):
            frames = decode_packet(stream.codec_context, packet)
            if frames:
                return frames[0]
            if count >= _FIRST_FRAME_PACKETS:
                break
    except av.FFmpegError:
        pass
    except MemoryError as error:
        raise MediaError(f"{printable_name(path)}: its frames do not fit into memory", fault="F9") from error
    return None


def _range_name(frame: VideoFrame | None) -> Literal["limited", "full"] | None:
    if frame is None:
        return None
    if frame.color_range == 2 or frame.format.name.startswith("yuvj") or frame.format.is_rgb:
        return "full"
    return "limited" if frame.color_range == 1 else None


def _notes(facts: VideoFacts, first: VideoFrame | None, *, rate_known: bool) -> list[str]:
    notes = []
    if facts.video_streams > 1:
        notes.append(f"{facts.video_streams} video streams; the default one is used")
    if not rate_known:
        notes.append("the file names no frame rate; 25 is assumed where a rate is needed")
    if facts.interlaced:
        notes.append("interlaced; frames are used as stored, both fields together")
    if facts.sample_aspect != 1:
        notes.append(f"pixels are {facts.sample_aspect} as wide as high; frames keep their stored size")
    if first is None:
        notes.append("no frame decodes near the beginning")
    elif first.color_trc in (_PQ, _HLG):
        notes.append("HDR; converted to 8-bit RGB without tone mapping")
    return notes
