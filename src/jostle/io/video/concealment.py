"""Pictures that show what a decoder concealed: from an error in the stream to the next intact key frame.

A decoder fills what it cannot decode from the pictures before, and prediction drags that along. It reports the error
itself, so that no pixels are needed to know of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from av.packet import Packet
    from av.video.frame import VideoFrame

# Decoders whose damage flag is reliable: of 268 intact files they marked no picture. HEVC's, VP9's and AV1's set none.
# MPEG-4's reads beyond a packet, so that packets which no demuxer padded have flags by chance.
RELIABLE_FLAGS = ("h264", "mpeg1video", "mpeg2video", "mpeg4")
# Zero bytes in a row that no encoder writes: coded NAL units may not hold three, and what comes before a start code is
# padding. Arithmetic codes of VP9 and AV1 have no such rule, only little use for so many.
ZEROS = {"h264": 16, "hevc": 16, "vp9": 256, "libvpx-vp9": 256, "av1": 256, "libdav1d": 256}
LONGEST_S = 20.0  # after which a stream without key frames has refreshed its pictures piece by piece
MOST_SUSPECTS = 256  # packets that wait for their picture; those of a clock that was set back wait in vain


def is_overwritten(data: bytes, codec: str) -> bool:
    r"""Return whether zeros stand in a packet where none can be, as a sector that was never written leaves them.

    >>> is_overwritten(b"\0\0\0\1e" + bytes(range(100)), "h264"), is_overwritten(b"\7" * 9 + bytes(40) + b"\7", "h264")
    (False, True)
    """
    least = ZEROS.get(codec, 0)
    begin = data.find(bytes(least)) if least else -1
    while begin >= 0:
        rest = data[begin:].lstrip(b"\0")
        if not rest:  # cameras of a constant rate pad a packet at its end, with more than it holds
            return False
        if rest[0] != 1 or codec not in ("h264", "hevc"):
            return True
        begin = data.find(bytes(least), len(data) - len(rest))
    return False


class Concealment:
    """Tracker of the errors of one decoder.

    Args:
        codec: FFmpeg's name of the decoder.

    Misses: errors that a decoder does not notice, which HEVC, VP9 and AV1 have most of; pictures that are lost whole;
    pictures that are shown before the damaged one they are predicted from.
    """

    def __init__(self, codec: str) -> None:
        self._codec, self._reliable = codec, codec in RELIABLE_FLAGS
        self._suspects: set[int] = set()  # timestamps of packets that are known to be damaged
        self._concealing = False
        self._since: float | None = None  # time of the last error

    def note_packet(self, packet: Packet[Any]) -> None:
        """Take note of a packet before it is decoded."""
        if packet.pts is not None and (packet.is_corrupt or is_overwritten(bytes(packet), self._codec)):
            if len(self._suspects) == MOST_SUSPECTS:
                self._suspects.clear()
            self._suspects.add(packet.pts)

    def note_refused(self) -> None:
        """Take note of a packet that the decoder refused: later pictures may be predicted from what it held."""
        self._concealing, self._since = True, None

    def is_concealed(self, frame: VideoFrame) -> bool:
        """Return whether the next picture in order shows what was concealed."""
        due = {pts for pts in self._suspects if frame.pts is not None and pts <= frame.pts} if self._suspects else ()
        self._suspects.difference_update(due)
        if (self._reliable and frame.is_corrupt) or frame.pts in due:
            self._concealing, self._since = True, frame.time
        elif frame.key_frame:
            self._concealing = False
        elif due:
            self._concealing, self._since = True, frame.time
        elif self._concealing and frame.time is not None:
            if self._since is None or frame.time < self._since:  # a packet was refused, or a clock was set back
                self._since = frame.time
            self._concealing = frame.time - self._since <= LONGEST_S
        return self._concealing
