"""The coded packets of a file, for corruptions that damage its own stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import av
from av.bitstream import BitStreamFilterContext
from av.codec.context import Flags
from av.video.codeccontext import VideoCodecContext

from jostle.core.types.clip import Frame
from jostle.io.video.codec import Coded, Damage, damage_packets, decode_packets, fill_missing_frames
from jostle.io.video.colour import ToRgb
from jostle.io.video.decode import Reader
from jostle.io.video.ffmpeg import open_input, picture_stream
from jostle.io.video.validation import Limits, PathLike, check_file

_START_CODES = {"h264": "h264_mp4toannexb", "hevc": "hevc_mp4toannexb"}


@dataclass(frozen=True)
class CodedStream:
    """The coded video stream of a file.

    Attributes:
        codec: FFmpeg's name of the decoder.
        extradata: decoder configuration, or None if it is in the packets.
        decoder: single-threaded decoder with the container's stream parameters.
        packets: (stored timestamp, payload) in coding order; packets without a timestamp are left out.
    """

    codec: str
    extradata: bytes | None
    decoder: VideoCodecContext
    packets: Iterator[Coded]


def source_packets(path: PathLike, *, as_stored: bool = False, limits: Limits | None = None) -> CodedStream:
    """Return the packets of a file's video stream.

    H.264 and HEVC from mp4 and Matroska are converted to start codes with headers in the stream, as they are sent
    over networks, so that bit errors hit what they would hit there.

    Args:
        as_stored: keep the packets as in the container, with lengths in place of start codes, as FFmpeg's bitstream
            filters see them when a stream is copied.
    """
    limits = limits or Limits()
    name, _ = check_file(path)
    with open_input(name, limits) as container:
        decoder = picture_stream(container, name, limits).codec_context
    decoder.thread_count = 1
    decoder.flags |= Flags.output_corrupt
    # avcC and hvcC boxes begin with a 1; a stream with start codes begins with zeros.
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
        damage_packets(coded.packets, damage),
        coded.decoder,
        convert=ToRgb(stored, facts.rotation),
    )
    numbered = ((number_of[stamp], frame) for stamp, frame in pictures if stamp in number_of)
    yield from fill_missing_frames(numbered, count=lambda: count, size=size)
