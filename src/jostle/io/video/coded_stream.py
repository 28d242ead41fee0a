"""A file's own coded packets, so that transmission faults can hit the stream that is there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import av
from av.bitstream import BitStreamFilterContext
from av.codec.context import Flags
from av.video.codeccontext import VideoCodecContext

from jostle.core.types.clip import Frame
from jostle.io.video.codec import Coded, Damage, damaged, decoded, held
from jostle.io.video.colour import ToRgb
from jostle.io.video.decode import Reader
from jostle.io.video.ffmpeg import open_input, picture_stream
from jostle.io.video.validation import Limits, PathLike, checked_file

_START_CODES = {"h264": "h264_mp4toannexb", "hevc": "hevc_mp4toannexb"}


@dataclass(frozen=True)
class CodedStream:
    """The coded video of a file.

    Attributes:
        codec: FFmpeg's name of the decoder.
        extradata: what the decoder is told before the first packet, or None if the packets say it.
        decoder: a decoder on one thread, set up with all that the container knows about the stream.
        packets: (stored timestamp, payload) in coding order; packets without a timestamp are left out.
    """

    codec: str
    extradata: bytes | None
    decoder: VideoCodecContext
    packets: Iterator[Coded]


def source_packets(path: PathLike, *, as_stored: bool = False, limits: Limits | None = None) -> CodedStream:
    """The packets of a file's video stream.

    H.264 and HEVC from mp4 and Matroska are given with start codes and with their headers in the stream, as
    they are sent over networks: bit errors then hit what they would hit there.

    Args:
        as_stored: give the packets as they lie in the container instead, with lengths in place of start codes; that
            is what FFmpeg's bitstream filters see when a stream is copied.
    """
    limits = limits or Limits()
    name, _ = checked_file(path)
    with open_input(name, limits) as container:
        decoder = picture_stream(container, name, limits).codec_context
    decoder.thread_count = 1
    decoder.flags |= Flags.output_corrupt
    # avcC and hvcC boxes open with a 1; a stream that has start codes already opens with zeros.
    boxed = not as_stored and decoder.name in _START_CODES and (decoder.extradata or b"")[:1] == b"\x01"
    if boxed:
        decoder.extradata = None
    packets = _packets(name, limits, _START_CODES[decoder.name] if boxed else None)
    return CodedStream(decoder.name, decoder.extradata, decoder, packets)


def _packets(path: str, limits: Limits, filter_name: str | None) -> Iterator[Coded]:
    with open_input(path, limits) as container:
        stream = picture_stream(container, path, limits)
        rewrite = BitStreamFilterContext(filter_name, stream) if filter_name else None
        try:
            for packet in container.demux(stream):
                if packet.size == 0:
                    continue
                for part in rewrite.filter(packet) if rewrite else [packet]:
                    if part.pts is not None:
                        yield part.pts, bytes(part)
        except av.FFmpegError:
            return  # a container too damaged to go on; what came before still counts


def decode_source(path: PathLike, damage: Damage | None = None, *, as_stored: bool = False) -> Iterator[Frame]:
    """The frames of a file after its own packets were damaged: as many as `Reader` gives, in the same order.

    A frame that does not come out shows the last good one again.
    """
    with Reader(path) as reader:
        number_of = {stamp: number for number, stamp in enumerate(reader.stamps) if stamp is not None}
        facts, count, size = reader.facts, len(reader), reader.size
    stored = size[::-1] if facts.rotation in (90, 270) else size
    coded = source_packets(path, as_stored=as_stored)
    pictures = decoded(
        damaged(coded.packets, damage),
        coded.decoder,
        convert=ToRgb(stored, facts.rotation),
    )
    numbered = ((number_of[stamp], frame) for stamp, frame in pictures if stamp in number_of)
    yield from held(numbered, count=lambda: count, size=size)
