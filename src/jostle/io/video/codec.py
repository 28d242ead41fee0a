"""Codecs in memory: frames or the packets of a file are damaged on the way, and exactly as many frames come out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain
from typing import Any, Protocol

import av
import numpy as np
from av.bitstream import BitStreamFilterContext
from av.codec.context import Flags
from av.packet import Packet
from av.stream import Stream
from av.video.codeccontext import VideoCodecContext
from av.video.frame import VideoFrame

from jostle.core.types.clip import Frame
from jostle.errors import BadValue, MediaError
from jostle.io.video.coded_file import CodedFile
from jostle.io.video.colour import FromRgb, ToRgb
from jostle.io.video.decode import Reader
from jostle.io.video.encoders import coding_rate, min_width, require_encoder, set_up
from jostle.io.video.ffmpeg import decode_packet, open_input, picture_stream, set_up_decoder
from jostle.io.video.location import locate
from jostle.io.video.validation import Limits, PathLike

Damage = Callable[[bytes, int], bytes | Iterable[bytes] | None]
Coded = tuple[int, bytes]  # (number of the frame that the packet shows, payload)

_GREY = 128


@dataclass(frozen=True)
class Codec:
    """An encoder with its settings, and the matching decoder.

    Encoder and decoder run on one thread each, so that the same frames always give the same bytes.

    Attributes:
        encoder: FFmpeg's name, such as "libx264".
        decoder: FFmpeg's name, such as "h264".
        options: the encoder's own settings: `crf`, `b`, `maxrate`, `qmin`, `qmax`, `g`, `bf`, `preset` and
            so on. For a fixed quantiser set `qmin` and `qmax` to it; `qscale` is ignored by FFmpeg's
            library.
        pixel_format: how pixels are stored between the two; see `colour.py` for the conversion.
    """

    encoder: str
    decoder: str
    options: dict[str, str | int | float] = field(default_factory=dict)
    pixel_format: str = "yuv420p"

    def require(self) -> None:
        """Raise an error before any work is done if the encoder is not installed."""
        require_encoder(self.encoder)


def encode(frames: Iterable[Frame], codec: Codec, *, fps: Fraction) -> Iterator[Coded]:
    """Encode frames; yields packets in coding order, each with the number of its frame."""
    codec.require()
    convert = FromRgb(codec.pixel_format, narrowest=min_width(codec.encoder))
    context: VideoCodecContext | None = None
    shape: tuple[int, ...] = ()
    rate = coding_rate(codec.encoder, fps)
    for number, pixels in enumerate(frames):
        if context is None:
            shape = pixels.shape
            context = _encoder(codec, convert.size(*shape[:2]), rate)
        elif pixels.shape != shape:
            raise BadValue(f"frame {number} is {pixels.shape}, the ones before are {shape}; a stream has one size")
        picture = convert(pixels)
        picture.pts = number
        picture.time_base = 1 / rate
        yield from _packets(context, picture, codec)
    if context is not None:
        yield from _packets(context, None, codec)


def _encoder(codec: Codec, size: tuple[int, int], rate: Fraction) -> VideoCodecContext:
    context = av.CodecContext.create(codec.encoder, "w")
    assert isinstance(context, VideoCodecContext)
    set_up(context, size, codec.pixel_format, {key: str(value) for key, value in codec.options.items()})
    context.time_base = 1 / rate
    context.framerate = rate
    context.thread_count = 1
    return context


def _packets(context: VideoCodecContext, picture: VideoFrame | None, codec: Codec) -> Iterator[Coded]:
    try:
        for packet in context.encode(picture):
            if packet.pts is not None:
                yield packet.pts, bytes(packet)
    except (av.FFmpegError, ValueError) as error:
        raise MediaError(
            f"{codec.encoder} failed on {context.width}x{context.height} frames with {codec.options}: {error}",
            fault="F16",
        ) from error


def decode(
    packets: Iterable[Coded], codec: Codec, *, size: tuple[int, int] | None = None
) -> Iterator[tuple[int, Frame]]:
    """Decode packets; yields (frame number, frame) in output order.

    Args:
        packets: numbered payloads in coding order.
        codec: whose decoder to use.
        size: (height, width) to which frames are cut; None keeps the coded size. A frame that damage has
            given another size is scaled to the first one's.
    """
    yield from decode_packets(packets, new_decoder(codec.decoder), size=size)


def new_decoder(name: str) -> VideoCodecContext:
    """Create a single-threaded decoder that outputs damaged pictures rather than nothing."""
    context = av.CodecContext.create(name, "r")
    assert isinstance(context, VideoCodecContext)
    context.thread_count = 1
    context.flags |= Flags.output_corrupt
    set_up_decoder(context, Limits())
    return context


def decode_packets(
    packets: Iterable[Coded],
    context: VideoCodecContext,
    *,
    size: tuple[int, int] | None = None,
    convert: ToRgb | None = None,
) -> Iterator[tuple[int, Frame]]:
    """Decode packets with an open decoder; yields (stamp, frame), and skips packets that it refuses."""
    for number, payload in packets:
        if not payload:
            continue
        # A packet created from bytes directly lacks the zero padding that decoders read past its end.
        packet: Packet[Stream] = Packet(len(payload))
        packet.update(payload)
        packet.pts = number
        for picture in decode_packet(context, packet):
            convert = convert or ToRgb((picture.height, picture.width), 0)
            if picture.pts is not None:
                yield picture.pts, _crop(convert(picture), size)
    for picture in decode_packet(context, None):
        convert = convert or ToRgb((picture.height, picture.width), 0)
        if picture.pts is not None:
            yield picture.pts, _crop(convert(picture), size)


def _crop(frame: Frame, size: tuple[int, int] | None) -> Frame:
    return frame if size is None else frame[: size[0], : size[1]]


def damage_packets(packets: Iterable[Coded], damage: Damage | None) -> Iterator[Coded]:
    """Apply damage to packets: they are altered, shortened or dropped."""
    for count, (number, payload) in enumerate(packets):
        result = payload if damage is None else damage(payload, count)
        if result is None:
            continue
        yield number, result if isinstance(result, bytes) else b"".join(result)


def fill_missing_frames(
    frames: Iterable[tuple[int, Frame]], *, count: Callable[[], int], size: tuple[int, int]
) -> Iterator[Frame]:
    """Yield exactly one frame for every number from 0 to `count()`, which is called after `frames` has ended.

    A missing frame is replaced by the last good one, or before that by the first good one; if there is none, by
    mid-grey.
    """
    last: Frame | None = None
    due = 0
    for number, frame in frames:
        if number < due:
            continue  # a damaged stream may output a picture twice, or too late
        for _ in range(due, number):
            yield frame if last is None else last
        yield frame
        last, due = frame, number + 1
    total = count()
    if due < total:
        still = np.full((*size, 3), _GREY, np.uint8) if last is None else last
        for _ in range(due, total):
            yield still


class PacketCache(Protocol):
    """Cache of the undamaged coded streams of one video."""

    def read(self, codec: Codec, fps: Fraction) -> Any:
        """Return the stored stream: its packets, size and count of frames; None if there is none."""

    def keep(
        self, packets: Iterator[Coded], codec: Codec, fps: Fraction, facts: Callable[[], tuple[tuple[int, int], int]]
    ) -> Iterator[Coded]:
        """Yield the packets, and store them once all have gone through."""


def transcode(
    frames: Iterable[Frame],
    codec: Codec,
    *,
    fps: Fraction,
    damage: Damage | None = None,
    streams: PacketCache | None = None,
) -> Iterator[Frame]:
    """Encode, damage and decode frames; yields as many frames as went in, in the same order.

    Memory is bounded by the delay of the encoder. An odd side is padded by one for 4:2:0 and cropped again. A
    frame that does not decode is replaced by the last good one.

    Args:
        frames: (H, W, 3) RGB, all of one size.
        codec: how to encode and decode.
        fps: frames per second, for bit rates.
        damage: called with each payload and its index in coding order; returns the bytes that arrive, in one
            piece or several, or None for a lost packet.
        streams: cache of the undamaged coded stream; on a hit, `frames` is not consumed.
    """
    codec.require()
    known = None if streams is None else streams.read(codec, fps)
    if known is not None:
        yield from _decode_all(damage_packets(known.packets, damage), codec, known.size, lambda: known.count)
        return
    frames = iter(frames)
    first = next(frames, None)
    if first is None:
        return
    size = (first.shape[0], first.shape[1])
    frame_count = 0

    def counted() -> Iterator[Frame]:
        nonlocal frame_count
        for frame in chain([first], frames):
            frame_count += 1
            yield frame

    packets = encode(counted(), codec, fps=fps)
    if streams is not None:
        packets = streams.keep(packets, codec, fps, lambda: (size, frame_count))
    yield from _decode_all(damage_packets(packets, damage), codec, size, lambda: frame_count)


def _decode_all(
    packets: Iterator[Coded], codec: Codec, size: tuple[int, int], count: Callable[[], int]
) -> Iterator[Frame]:
    # Damage can make a header claim another size, so the decoder's size is not used.
    convert = ToRgb(FromRgb(codec.pixel_format, narrowest=min_width(codec.encoder)).size(*size), 0)
    pictures = decode_packets(packets, new_decoder(codec.decoder), size=size, convert=convert)
    yield from fill_missing_frames(pictures, count=count, size=size)


_START_CODES = {"h264": "h264_mp4toannexb", "hevc": "hevc_mp4toannexb"}


@dataclass(frozen=True)
class CodedStream:
    """The coded video stream of a file."""

    codec: str  # FFmpeg's name of the decoder
    extradata: bytes | None  # decoder configuration, or None if it is in the packets
    decoder: VideoCodecContext  # single-threaded decoder with the container's stream parameters
    packets: Iterator[Coded]  # (stored timestamp, payload) in coding order; packets without a timestamp are left out


def source_packets(path: PathLike, *, as_stored: bool = False, limits: Limits | None = None) -> CodedStream:
    """Return the packets of a file's video stream.

    H.264 and HEVC from mp4 and Matroska are converted to start codes with headers in the stream, as they are sent
    over networks, so that bit errors hit what they would hit there.

    Args:
        as_stored: keep the packets as in the container, with lengths in place of start codes, as FFmpeg's bitstream
            filters see them when a stream is copied.
    """
    limits = limits or Limits()
    file = locate(path)
    with open_input(file, limits) as container:
        decoder = picture_stream(container, file.name, limits).codec_context
    decoder.thread_count = 1
    decoder.flags |= Flags.output_corrupt
    # avcC and hvcC boxes begin with a 1; a stream with start codes begins with zeros.
    boxed = not as_stored and decoder.name in _START_CODES and (decoder.extradata or b"")[:1] == b"\x01"
    if boxed:
        decoder.extradata = None
    packets = _source_packets(file, limits, _START_CODES[decoder.name] if boxed else None)
    return CodedStream(decoder.name, decoder.extradata, decoder, packets)


def _source_packets(file: CodedFile, limits: Limits, filter_name: str | None) -> Iterator[Coded]:
    with open_input(file, limits) as container:
        stream = picture_stream(container, file.name, limits)
        rewrite = BitStreamFilterContext(filter_name, stream) if filter_name else None
        try:
            for packet in container.demux(stream):
                if packet.size == 0:
                    continue
                for part in rewrite.filter(packet) if rewrite else [packet]:
                    if part.pts is not None:
                        yield part.pts, bytes(part)
        except av.FFmpegError:
            return  # the container is too damaged to go on; earlier packets still count


def decode_source(path: PathLike, damage: Damage | None = None, *, as_stored: bool = False) -> Iterator[Frame]:
    """Decode a file after damaging its packets; yields as many frames as `Reader`, in the same order.

    A frame that does not decode is replaced by the last good one.
    """
    with Reader(path) as reader:
        number_of = {stamp: number for number, stamp in enumerate(reader.stamps) if stamp is not None}
        facts, count, size = reader.facts, len(reader), reader.size
    stored = size[::-1] if facts.rotation in (90, 270) else size
    coded = source_packets(path, as_stored=as_stored)
    pictures = decode_packets(
        damage_packets(coded.packets, damage), coded.decoder, convert=ToRgb(stored, facts.rotation)
    )
    numbered = ((number_of[stamp], frame) for stamp, frame in pictures if stamp in number_of)
    yield from fill_missing_frames(numbered, count=lambda: count, size=size)
