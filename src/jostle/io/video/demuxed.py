"""Decoding of an open source as its packets come, with what is concealed, lost, or missing at its end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import av

from jostle.io.video.concealment import Concealment
from jostle.io.video.ffmpeg import decode_packet
from jostle.io.video.lost_pictures import PictureLedger, PictureLoss
from jostle.io.video.validation import ends_within_packet, missing_tail

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.packet import Packet
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

    from jostle.io.video.coded_file import CodedFile

# Seconds that a source may be shorter than it says, where nothing but its duration tells.
SHORTER_S = 1.0


class DemuxedStream:
    """Pictures of an open source, each with whether it shows what was concealed, and losses among them.

    Packets that the decoder refuses are passed over.

    Args:
        file: that it reads; None for an address that FFmpeg opens.

    Attributes:
        decoded: pictures that came out.
        incomplete: whether the source ended before its end.
    """

    def __init__(self, container: InputContainer, stream: VideoStream, file: CodedFile | None = None) -> None:
        self._container, self._stream, self._file = container, stream, file
        self._concealment = Concealment(stream.codec_context.name)
        self._ledger = PictureLedger(container, stream)
        self._failed = self.incomplete = False
        self._packets = self.decoded = 0

    def __iter__(self) -> Iterator[tuple[VideoFrame, bool] | PictureLoss]:
        for packet in self._demux():
            for frame in self._decode(packet):
                self.decoded += 1
                self._ledger.note_picture(frame)
                yield frame, self._concealment.is_concealed(frame)
            yield from self._ledger.losses()
        self.incomplete = self._is_incomplete()
        yield from self._ledger.finish(cut_off=self.incomplete)

    def _is_incomplete(self) -> bool:
        container, sized = self._container, self._container.size > 0
        if self._file is not None and missing_tail(self._file.open()):
            return True
        if self._file is not None and "mpegts" in container.format.name and ends_within_packet(self._file.open()):
            return True
        # Without a length FFmpeg reports an error at every end of a connection.
        if self._failed and sized:
            return True
        if "mp4" in container.format.name:
            return self._packets < len(self._stream.index_entries)
        timed = "flv" in container.format.name or (self._file is None and not sized)
        if not timed or not container.duration:
            return False
        end_s = max(self._ledger.end_s, self._ledger.end_s - (self._ledger.first_s or 0.0))
        return end_s < container.duration / 1e6 - SHORTER_S

    def _demux(self) -> Iterator[Packet[Any] | None]:
        """Yield the packets of the stream, the last of which empties the decoder."""
        packets = self._container.demux()
        while True:
            try:
                packet = next(packets)
            except (StopIteration, EOFError):
                return
            except (av.FFmpegError, OSError):
                self._failed = True
                yield None
                return
            if packet.size:
                self._ledger.note_arrival(packet)
            if packet.stream.index != self._stream.index:
                continue
            if packet.size:
                self._packets += 1
                if self._ledger.note_packet(packet):
                    self._concealment.note_refused()
                self._concealment.note_packet(packet)
            elif packet.pts is not None or packet.dts is not None:
                continue  # it holds nothing, and would be taken for the end
            yield packet

    def _decode(self, packet: Packet[Any] | None) -> list[VideoFrame]:
        return decode_packet(self._stream.codec_context, packet, self._note_refused)

    def _note_refused(self) -> None:
        self._concealment.note_refused()
        self._ledger.note_refused()
