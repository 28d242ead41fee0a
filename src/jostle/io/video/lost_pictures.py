"""Coded pictures that never come out of a decoder: refused, overwritten, or lost with a stretch of their file.

FFmpeg goes on in silence: some decoders refuse a packet, others swallow it; a demuxer that finds no block where one is
due searches for the next. So packets are matched with pictures, and bytes of a file that no packet accounts for are
counted as what was lost with them.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.packet import Packet
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

# Decoders that give one picture for each packet; of others only refused packets count.
ONE_PICTURE_A_PACKET = {"h264", "hevc", "mpeg4", "mpeg1video", "mpeg2video", "mjpeg", "ffv1"}
ONE_PICTURE_A_PACKET |= {"vp8", "libvpx", "vp9", "libvpx-vp9", "av1", "libdav1d"}
REORDERED = 16  # most pictures that a decoder may hold back to show them in order
MOST_THREADS = 16  # that FFmpeg starts by itself; each of them holds back a picture
PLACEHOLDER_BYTES = 8  # a packet this small repeats the last picture (MPEG-4 in AVI) and holds none
# Formats whose packets follow each other with headers of at most 100 bytes between them.
GAPLESS = ("matroska", "flv", "avi")
HOLE_BYTES = 256
# Of a transport stream: bytes that are too many for headers and tables, and pictures whose distance is the usual one.
TRANSPORT, TRANSPORT_SHARE, TRANSPORT_HOLE_BYTES, USUAL_STEPS = "mpegts", 188 / 184, 4096, 25
CHUNK_BYTES = 8  # of the header of a packet in AVI
SHORTER_S, SHORTER_FRAMES = 0.2, 3  # that such a file may be shorter than it says


@dataclass(slots=True)
class CodedPicture:
    """Packet that waits for its picture.

    Attributes:
        number: of the packet.
        pts: its timestamp in ticks, None where it has none.
        time: in seconds.
        came: whether the picture came out.
        count: pictures that it stands for: several for a stretch of a file without packets.
    """

    number: int
    pts: int | None
    time: float | None
    came: bool = False
    count: int = 1


@dataclass(frozen=True, slots=True)
class PictureLoss:
    """Pictures that were lost, or the first one after them.

    Attributes:
        time: of the first in seconds, in the stream's own clock; None where it has none.
        frame: number of pictures that came out before.
        lost: number of pictures that did not come out; 0 for the first one that did, after a loss.
    """

    time: float | None
    frame: int
    lost: int


def shows_nothing(packet: Packet[Any], codec: str) -> bool:
    """Return whether a packet holds no picture to show: a placeholder, or a hidden reference picture of VP8 or VP9."""
    if packet.size <= PLACEHOLDER_BYTES:
        return True
    if "vp8" in codec or codec == "libvpx":  # the fifth bit of its tag is set for displayed frames
        return not (bytes(packet)[0] >> 4) & 1
    if "vp9" in codec:
        data = bytes(packet)
        if data[0] >> 6 != 2 or data[-1] & 0xE0 == 0xC0:  # not a frame, or several of which one is shown
            return False
        shift = 0 if data[0] & 0x30 == 0x30 else 1  # profile 3 has one more bit before these
        shown_again, shown = data[0] >> (2 + shift) & 1, data[0] >> shift & 1
        return not shown_again and not shown
    return False


class PictureLedger:
    """Book of the packets that went into a decoder and the pictures that came out.

    What precedes the first key frame, and pictures that are shown before it, cannot be decoded in an intact stream
    either: they do not count, unless nothing comes out at all.

    Args:
        container: the open source.
        stream: its pictures; the decoder's threads are set.

    Attributes:
        first_s: time of the first packet of any stream in seconds.
        end_s: time at which the last packet of any stream ends: sound may be longer than pictures.
    """

    def __init__(self, container: InputContainer, stream: VideoStream) -> None:
        context = stream.codec_context
        self._container, self._stream, self._codec = container, stream, context.name
        self._rate = float(stream.average_rate or stream.guessed_rate or 0)
        self._counts = context.name in ONE_PICTURE_A_PACKET
        self._gapless = any(name in container.format.name for name in GAPLESS)
        self._transport = TRANSPORT in container.format.name
        self._steps: deque[float] = deque(maxlen=USUAL_STEPS)  # seconds from packet to packet
        threads = min(context.thread_count or MOST_THREADS, MOST_THREADS) if _by_frames(context) else 1
        self._patience = REORDERED + threads
        self._waiting: deque[CodedPicture] = deque()
        self._packets = self._before = self._orphans = 0
        self._first: int | None = None  # timestamp of the first key frame
        self._begun = self._leading = self._interlaced = self._lossy = False
        self._decoded = self._missing = 0
        self.first_s: float | None = None
        self.end_s = 0.0
        self._latest_s: float | None = None  # time of the latest picture
        self._end: int | None = None  # position in the file after the last packet
        self._hole = False
        self._time: float | None = None  # of the last packet
        self._last: Packet[Any] | None = None
        self._positions: list[int] | None = None

    def note_arrival(self, packet: Packet[Any]) -> None:
        """Take note of when a packet of any stream is due, and of where it lies in its file."""
        begin = _seconds(packet)
        if begin is not None and packet.time_base is not None:
            self.first_s = begin if self.first_s is None else min(self.first_s, begin)
            self.end_s = max(self.end_s, begin + float((packet.duration or 0) * packet.time_base))
        if not (self._gapless or self._transport) or packet.pos is None or packet.pos < 0:
            return
        if self._end is not None and packet.pos - self._end >= (
            TRANSPORT_HOLE_BYTES if self._transport else HOLE_BYTES
        ):
            self._hole = True
        size = math.ceil(packet.size * TRANSPORT_SHARE) if self._transport else packet.size
        self._end = max(self._end or 0, packet.pos + size)

    def note_packet(self, packet: Packet[Any]) -> bool:
        """Take note of a packet of pictures before it is decoded; return whether others are missing before it."""
        missing = 0
        if self._transport:
            missing = self._missing_in_transport(packet)
        elif self._hole:
            missing = self._missing_before(packet)
        self._hole, self._last = False, packet
        if packet.pts is not None:
            self._latest_s = max(self._latest_s or 0.0, _seconds(packet) or 0.0)
        if missing and self._begun:
            self._missing += missing
            self._waiting.append(CodedPicture(self._packets, None, self._time, count=missing))
        if not self._counts or packet.is_discard or shows_nothing(packet, self._codec):
            return missing > 0
        pts = packet.pts
        if not self._begun:
            if not packet.is_keyframe:
                self._before += 1
                return False
            self._begun = self._leading = True
            self._first = pts
        elif packet.is_keyframe:
            self._leading = False
        elif self._leading and pts is not None and self._first is not None and pts < self._first:
            return missing > 0
        self._packets, self._time = self._packets + 1, _seconds(packet)
        self._waiting.append(CodedPicture(self._packets, pts, self._time))
        return missing > 0

    def note_refused(self) -> None:
        """Take note of a packet that the decoder refused."""
        if not self._counts:
            time = None if self._last is None else _seconds(self._last)
            self._packets += 1
            self._waiting.append(CodedPicture(self._packets - self._patience - 1, None, time))

    def note_picture(self, frame: VideoFrame) -> None:
        """Take note of a picture that came out."""
        if not self._counts:
            self._packets += 1
            self._waiting.append(CodedPicture(self._packets, frame.pts, None, came=True))
            return
        self._interlaced = self._interlaced or frame.interlaced_frame
        due = [one for one in self._waiting if not one.came and one.count == 1]
        match = next((one for one in due if one.pts is not None and one.pts == frame.pts), None)
        match = match or next((one for one in due if one.pts is None), None)
        if match is not None:
            match.came = True
        elif self._first is None or frame.pts is None or frame.pts >= self._first:
            self._orphans += 1

    def losses(self) -> list[PictureLoss]:
        """Return what became known since the last call."""
        return self._settle(self._patience)

    def finish(self, *, cut_off: bool) -> list[PictureLoss]:
        """Return the rest, at the end of the stream; what a source that was cut off would still hold does not count."""
        if not self._begun and self._before:
            self._waiting.append(CodedPicture(0, None, None, count=self._before))
        if missing := 0 if cut_off else self._missing_at_end():
            self._waiting.append(CodedPicture(0, None, self.end_s, count=missing))
        return self._settle(-1)

    def _settle(self, patience: int) -> list[PictureLoss]:
        losses: list[PictureLoss] = []
        alone = not self._lossy
        while self._waiting and (self._waiting[0].came or self._packets - self._waiting[0].number > patience):
            one = self._waiting.popleft()
            if one.came:
                if self._lossy:
                    losses.append(PictureLoss(one.time, self._decoded, 0))
                self._decoded += 1
                self._lossy, alone = False, True
            elif self._orphans and one.count == 1:
                self._orphans -= 1
            elif self._interlaced and alone and one.count == 1:
                alone = False  # the other field of the picture before
            else:
                losses.append(PictureLoss(one.time, self._decoded, one.count))
                self._lossy = True
        return losses

    def _missing_before(self, packet: Packet[Any]) -> int:
        """Return how many pictures lay in a stretch of the file in which no packet was found."""
        last = self._last
        if last is None:
            return 0
        if self._positions is None:
            entries = self._stream.index_entries
            known = self._stream.frames and len(entries) == self._stream.frames
            self._positions = sorted(entry.pos for entry in entries) if known else []
        if self._positions and last.pos is not None and packet.pos is not None:
            before = bisect_left(self._positions, packet.pos - CHUNK_BYTES) - bisect_right(self._positions, last.pos)
            return max(before, 0)
        time = _seconds(packet)
        if time is None or self._latest_s is None or not self._rate:
            return 1
        return max(round((time - self._latest_s) * self._rate) - 1, 0)

    def _missing_in_transport(self, packet: Packet[Any]) -> int:
        """Return how many pictures were due in a stretch without packets; stuffing alone makes no stretch."""
        last, base, time = self._last, packet.time_base, _seconds(packet)
        if last is None or base is None or time is None:
            return 0
        if last.dts is not None and packet.dts is not None:
            step = float((packet.dts - last.dts) * base)
        else:
            step = time - (self._latest_s or 0.0)
        usual = sorted(self._steps)[len(self._steps) // 2] if self._steps else 0.0
        missing = round(step / usual) - 1 if self._hole and usual > 0 else 0
        if missing <= 0 < step:
            self._steps.append(step)
        return max(missing, 0)

    def _missing_at_end(self) -> int:
        """Return how many pictures lay in a stretch without packets at the end of the file."""
        container = self._container
        if not self._gapless or not self._rate or not container.duration or self._latest_s is None:
            return 0
        if container.size - (self._end or 0) < HOLE_BYTES:
            return 0
        missing_s = container.duration / 1e6 - max(self.end_s, self.end_s - (self.first_s or 0.0))
        if "avi" in container.format.name:  # its pictures have no times: those after a loss come too early
            missing_s -= self._missing / self._rate
        return round(missing_s * self._rate) if missing_s > max(SHORTER_S, SHORTER_FRAMES / self._rate) else 0


def _by_frames(context: Any) -> bool:
    return str(getattr(context.thread_type, "name", context.thread_type)).upper() in ("AUTO", "FRAME")


def _seconds(packet: Packet[Any]) -> float | None:
    ticks = packet.pts if packet.pts is not None else packet.dts
    return None if ticks is None or packet.time_base is None else float(ticks * packet.time_base)
