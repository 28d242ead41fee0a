"""Codecs in memory: frames go in, packets may be damaged on the way, and exactly as many frames come out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain
from typing import Any, Protocol

import av
import numpy as np
from av.codec.context import Flags
from av.packet import Packet
from av.stream import Stream
from av.video.codeccontext import VideoCodecContext
from av.video.frame import VideoFrame

from jostle.core.types.clip import Frame
from jostle.errors import BadValue, MediaError
from jostle.io.video.colour import FromRgb, ToRgb
from jostle.io.video.encoders import coding_rate, narrowest, require_encoder, set_up
from jostle.io.video.ffmpeg import set_up_decoder
from jostle.io.video.validation import Limits

Damage = Callable[[bytes, int], bytes | Iterable[bytes] | None]
Coded = tuple[int, bytes]  # (number of the frame that the packet shows, payload)

_GREY = 128


@dataclass(frozen=True)
class Codec:
    """An encoder with its settings, and the decoder that undoes it.

    Encoder and decoder run on one thread each, so that the same frames always give the same bytes.

    Attributes:
        encoder: FFmpeg's name, such as "libx264".
        decoder: FFmpeg's name, such as "h264".
        options: the encoder's own settings: `crf`, `b`, `maxrate`, `qmin`, `qmax`, `g`, `bf`, `preset` and
            so on. For a fixed quantiser set `qmin` and `qmax` to it; `qscale` is ignored by FFmpeg's
            library.
        pixel_format: how pixels are stored between the two; see `media/colour.py` for the conversion.
    """

    encoder: str
    decoder: str
    options: dict[str, str | int | float] = field(default_factory=dict)
    pixel_format: str = "yuv420p"

    def require(self) -> None:
        """Refuse, before any work is done, when the encoder is not installed."""
        require_encoder(self.encoder)


def encode(frames: Iterable[Frame], codec: Codec, *, fps: Fraction) -> Iterator[Coded]:
    """Packets in coding order, each with the number of the frame that it shows."""
    codec.require()
    convert = FromRgb(codec.pixel_format, narrowest=narrowest(codec.encoder))
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
    """(frame number, frame) for whatever comes out, in the order in which it comes out.

    Args:
        packets: numbered payloads in coding order.
        codec: whose decoder to use.
        size: (height, width) to which frames are cut; None keeps the coded size. A frame that damage has
            given another size is scaled to the first one's.
    """
    yield from decoded(packets, new_decoder(codec.decoder), size=size)


def new_decoder(name: str) -> VideoCodecContext:
    """A decoder on one thread that hands out damaged pictures rather than nothing."""
    context = av.CodecContext.create(name, "r")
    assert isinstance(context, VideoCodecContext)
    context.thread_count = 1
    context.flags |= Flags.output_corrupt
    set_up_decoder(context, Limits())
    return context


def decoded(
    packets: Iterable[Coded],
    context: VideoCodecContext,
    *,
    size: tuple[int, int] | None = None,
    convert: ToRgb | None = None,
) -> Iterator[tuple[int, Frame]]:
    """(stamp, frame) for whatever a decoder gives; packets that it refuses are passed over."""
    for number, payload in packets:
        if not payload:
            continue
        # A packet made from bytes directly lacks the zeros that decoders read past its end, and decodes by
        # chance.
        packet: Packet[Stream] = Packet(len(payload))
        packet.update(payload)
        packet.pts = number
        for picture in _pictures(context, packet):
            convert = convert or ToRgb((picture.height, picture.width), 0)
            if picture.pts is not None:
                yield picture.pts, _cut(convert(picture), size)
    for picture in _pictures(context, None):
        convert = convert or ToRgb((picture.height, picture.width), 0)
        if picture.pts is not None:
            yield picture.pts, _cut(convert(picture), size)


def _pictures(context: VideoCodecContext, packet: Packet[Stream] | None) -> list[VideoFrame]:
    try:
        return context.decode(packet)
    except (av.FFmpegError, ValueError, RuntimeError):
        return []


def _cut(frame: Frame, size: tuple[int, int] | None) -> Frame:
    return frame if size is None else frame[: size[0], : size[1]]


def damaged(packets: Iterable[Coded], damage: Damage | None) -> Iterator[Coded]:
    """Packets after transmission: altered, shortened to the pieces that arrived, or left out."""
    for count, (number, payload) in enumerate(packets):
        result = payload if damage is None else damage(payload, count)
        if result is None:
            continue
        yield number, result if isinstance(result, bytes) else b"".join(result)


def held(frames: Iterable[tuple[int, Frame]], *, count: Callable[[], int], size: tuple[int, int]) -> Iterator[Frame]:
    """Exactly one frame for every number from 0 to `count()`, which is asked once `frames` has ended.

    A number that is missing shows the last good frame again; before the first good one, the first good one;
    if there is none at all, mid-grey.
    """
    last: Frame | None = None
    due = 0
    for number, frame in frames:
        if number < due:
            continue  # a damaged stream may show a picture twice, or too late
        for _ in range(due, number):
            yield frame if last is None else last
        yield frame
        last, due = frame, number + 1
    total = count()
    if due < total:
        still = np.full((*size, 3), _GREY, np.uint8) if last is None else last
        for _ in range(due, total):
            yield still


class Streams(Protocol):
    """Keeps coded streams of one clip; see `packet_store`."""

    def read(self, codec: Codec, fps: Fraction) -> Any:
        """A stream with `size`, `count` and `packets`, or None."""

    def keep(
        self,
        packets: Iterator[Coded],
        codec: Codec,
        fps: Fraction,
        facts: Callable[[], tuple[tuple[int, int], int]],
    ) -> Iterator[Coded]:
        """The same packets."""


def transcode(
    frames: Iterable[Frame],
    codec: Codec,
    *,
    fps: Fraction,
    damage: Damage | None = None,
    streams: Streams | None = None,
) -> Iterator[Frame]:
    """Frames as they look after encoding, transmission and decoding: as many as went in, in the same order.

    Memory is bounded by the delay of the encoder. An odd side is extended by one for 4:2:0 and cut again. A
    frame that never comes out shows the last good one again.

    Args:
        frames: (H, W, 3) RGB, all of one size.
        codec: how to encode and decode.
        fps: frames a second, by which bit rates are counted.
        damage: called with each payload and its place in coding order; gives the bytes that arrive, in one
            piece or several, or None for a lost packet.
        streams: keeps what the encoder makes of these frames, undamaged; with it no frame is drawn the next time.
    """
    codec.require()
    known = None if streams is None else streams.read(codec, fps)
    if known is not None:
        yield from _received(damaged(known.packets, damage), codec, known.size, lambda: known.count)
        return
    frames = iter(frames)
    first = next(frames, None)
    if first is None:
        return
    size = (first.shape[0], first.shape[1])
    seen = 0

    def counted() -> Iterator[Frame]:
        nonlocal seen
        for frame in chain([first], frames):
            seen += 1
            yield frame

    packets = encode(counted(), codec, fps=fps)
    if streams is not None:
        packets = streams.keep(packets, codec, fps, lambda: (size, seen))
    yield from _received(damaged(packets, damage), codec, size, lambda: seen)


def _received(
    packets: Iterator[Coded], codec: Codec, size: tuple[int, int], count: Callable[[], int]
) -> Iterator[Frame]:
    # Damage can make a header claim another size, so the true one is not asked of the decoder.
    convert = ToRgb(FromRgb(codec.pixel_format, narrowest=narrowest(codec.encoder)).size(*size), 0)
    pictures = decoded(packets, new_decoder(codec.decoder), size=size, convert=convert)
    yield from held(pictures, count=count, size=size)
