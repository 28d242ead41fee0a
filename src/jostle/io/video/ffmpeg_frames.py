"""Decoding with FFmpeg: one scan of the file, then access to any frame."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator

import av
import numpy as np
from av.container import InputContainer
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from jostle.core.interruption import native_call
from jostle.core.types.clip import Frame
from jostle.errors import MediaError
from jostle.io.video.coded_file import CodedFile
from jostle.io.video.colour import ToRgb
from jostle.io.video.concealment import RELIABLE_FLAGS, Concealment
from jostle.io.video.facts import VideoFacts, facts_of
from jostle.io.video.ffmpeg import decode_packet, open_input, picture_stream
from jostle.io.video.timestamps import DecodeScan, IndexMismatch
from jostle.io.video.validation import Limits, missing_tail, printable_name

_PLACEHOLDER_BYTES = 8  # a packet this small repeats the last picture (MPEG-4 in AVI) and holds none
# Codecs with one picture per packet, so that packets can be counted in place of pictures.
_ONE_PICTURE_A_PACKET = ("h264", "hevc", "mpeg4")


class FfmpegFrames:
    """Frame source that decodes a file with FFmpeg, in presentation order.

    Keyframes are unreliable: after a seek, an open group of pictures, a damaged stream or a sloppy muxer can give
    different pixels. So the scan computes a checksum of every picture, each picture reached by a seek is compared with
    it, and a keyframe that does not lead to the same pixels is not used again.
    """

    scan_key, cache_bytes = "pyav", None

    def __init__(self, file: CodedFile, *, limits: Limits, threads: int | None) -> None:
        self._file, self._path = file, file.name
        self.coded_path = file.path
        self._limits = limits
        self._threads = threads
        self._container: InputContainer | None = None
        with open_input(file, limits) as container:
            stream = picture_stream(container, file.name, limits)
            self.facts: VideoFacts = facts_of(container, stream, file.name, file.identity.size)
        self._scan = DecodeScan()
        self._frame_of: dict[int, int] = {}
        self._entries: list[tuple[int, int]] = []
        stored = (self.facts.height, self.facts.width)
        self._shape = (*stored, self.facts.pixel_format)
        if self.facts.rotation in (90, 270):
            self._shape = (stored[1], stored[0], self.facts.pixel_format)
        self._to_rgb = ToRgb(stored[::-1] if self.facts.rotation in (90, 270) else stored, self.facts.rotation)

    def scan(self, keep: Callable[[int, VideoFrame], None]) -> DecodeScan:
        """Decode the whole file once; `keep` is called with every picture.

        A damaged stream is scanned again with one thread and detached pictures, because the concealment of lost blocks
        depends on the timing of threads, and on what is in the decoder's buffers.
        """
        scan = self._pass(keep, single_thread=self._threads == 1)
        suspect = scan.damaged
        if suspect:
            scan = self._pass(keep, single_thread=True, detach=True)
        scan.single_thread = suspect
        self.use_scan(scan)
        return scan

    def predict_scan(self, least_bytes: int) -> DecodeScan | None:
        """Predict the scan from the container's index; None where the index is unreliable.

        An index is reliable if it has a distinct time for each of its packets. Whether every packet gives a picture is
        checked during decoding: the first that does not raises `IndexMismatch`.
        """
        facts = self.facts
        declared = facts.declared_frames or 0
        if "mp4" not in facts.container or facts.codec not in _ONE_PICTURE_A_PACKET or facts.interlaced is not False:
            return None
        if declared * facts.width * facts.height * 3 // 2 < least_bytes or missing_tail(self._file.open()):
            return None
        scan = DecodeScan(expected=declared, single_thread=self._threads == 1)
        keys = []
        deadline = time.monotonic() + self._limits.max_open_s
        container, stream = self._open(single_thread=True)
        with container:
            try:
                for packet in container.demux(stream):
                    if packet.size == 0 and packet.pts is None:
                        break
                    if (
                        packet.is_discard
                        or packet.is_corrupt
                        or packet.pts is None
                        or packet.size <= _PLACEHOLDER_BYTES
                    ):
                        return None
                    scan.stamps.append(packet.pts)
                    if packet.is_keyframe:
                        keys.append(packet.pts)
                    self._check_bounds(len(scan.stamps), deadline)
            except (av.FFmpegError, OSError):
                return None
        known = sorted(stamp for stamp in scan.stamps if stamp is not None)
        if len(set(known)) != declared or len(known) != declared:
            return None
        scan.stamps = [*known]
        frame_of = {stamp: number for number, stamp in enumerate(known)}
        scan.entries = sorted((frame_of[tick], tick) for tick in keys)
        self.use_scan(scan)
        return scan

    def use_scan(self, scan: DecodeScan) -> None:
        """Use the result of an earlier scan of the same file."""
        self._scan = scan
        known = [stamp for stamp in scan.stamps if stamp is not None]
        if len(set(known)) == len(scan.stamps):
            self._frame_of = {stamp: number for number, stamp in enumerate(known)}
            self._entries = list(scan.entries)

    def _pass(
        self, keep: Callable[[int, VideoFrame], None], *, single_thread: bool, detach: bool = False
    ) -> DecodeScan:
        scan = DecodeScan(single_thread=single_thread)
        coded: list[int] = []  # ticks of packets that should give a picture
        keys: list[int] = []
        counts = {"unstamped": 0, "silent": 0}
        sizes: set[tuple[int, int, str]] = set()
        deadline = time.monotonic() + self._limits.max_open_s
        container, stream = self._open(single_thread=single_thread)
        if not single_thread:
            # With threads, damage flags come too late to be reliable, but refused packets are always reported.
            stream.codec_context.options |= {"err_detect": "explode"}
        concealment = Concealment(stream.codec_context.name)
        with container:

            def note_packet(packet: Packet[VideoStream]) -> None:
                if packet.is_discard or _shows_nothing(packet, stream.codec_context.name):
                    counts["silent"] += 1
                elif packet.pts is None:
                    counts["unstamped"] += 1
                else:
                    coded.append(packet.pts)
                    if packet.is_keyframe:
                        keys.append(packet.pts)
                scan.errors += packet.is_corrupt
                concealment.note_packet(packet)
                self._check_bounds(len(coded) + counts["unstamped"], deadline)

            for frame in _decode(container, stream, note_packet, scan, concealment, detach=detach):
                number = len(scan.stamps)
                scan.stamps.append(frame.pts)
                scan.sums.append(checksum(frame))
                sizes.add((frame.height, frame.width, frame.format.name))
                if frame.is_corrupt and stream.codec_context.name in RELIABLE_FLAGS:
                    scan.flagged.append(number)
                if concealment.is_concealed(frame):
                    scan.concealed.append(number)
                keep(number, frame)
                self._check_bounds(number, deadline)
            end_s = container.duration / 1e6 if container.duration else None
        frame_of = {stamp: number for number, stamp in enumerate(scan.stamps) if stamp is not None}
        scan.entries = sorted({(frame_of[tick], tick) for tick in keys if tick in frame_of})
        # Two fields of one interlaced frame may be in two packets, of which only one gives a picture.
        fields = bool(self.facts.interlaced) and not scan.errors
        if len(frame_of) == len(scan.stamps) and not fields:
            scan.lost = sorted(tick for tick in set(coded) if tick not in frame_of)
        scan.expected = self._expected(scan, len(coded) + counts["unstamped"], counts["silent"], end_s)
        if len({size[:2] for size in sizes}) > 1:
            scan.notes.append("the frame size changes on the way; frames are scaled to the first size")
        elif len(sizes) > 1:
            scan.notes.append("the pixel format changes on the way; every frame is converted by its own")
        return scan

    def _check_bounds(self, frames: int, deadline: float) -> None:
        if frames > self._limits.max_frames:
            too_much = f"more than {self._limits.max_frames} frames"
        elif time.monotonic() > deadline:
            too_much = f"not read within {self._limits.max_open_s:g} s"
        else:
            return
        raise MediaError(f"{printable_name(self._path)}: {too_much}; cut it or raise the limit", fault="F10")

    def _expected(self, scan: DecodeScan, coded: int, silent: int, end_s: float | None) -> int:
        """Return the number of frames that the file promises: by packets, mp4 index, or a truncated file's length."""
        decoded = len(scan.stamps)
        expected = max(decoded, coded if scan.lost or scan.errors else 0)
        cut_off = missing_tail(self._file.open())
        declared = self.facts.declared_frames or 0
        if "mp4" in self.facts.container or cut_off:
            expected = max(expected, declared - silent)
        known = [stamp for stamp in scan.stamps if stamp is not None]
        if cut_off and not declared and end_s and known:
            covered_s = float((max(known) - min(known)) * self.facts.time_base + 1 / self.facts.fps)
            expected = max(expected, round(decoded * end_s / covered_s))
        return expected

    def pictures(self, start: int) -> Iterator[tuple[int, VideoFrame]]:
        """Yield (frame number, picture) in order, from a point at or before `start` to the end.

        If a keyframe does not lead to the scanned pixels, decoding starts again at an earlier one.
        """
        target = start
        while True:
            entry = self._seek_point_before(target)
            for number, frame in self._from(entry):
                if not self._matches_scan(number, frame):
                    break
                target = max(target, number)
                yield number, frame
                if number == len(self._scan.stamps) - 1:
                    return
            if not self._scan.complete:
                raise IndexMismatch(f"{printable_name(self._path)}: frame {target} differs from the index", fault="F19")
            if entry is None:
                raise MediaError(
                    f"{printable_name(self._path)}: frame {target} decodes differently the second time; "
                    "copy the file and try again",
                    fault="F19",
                )
            self._entries.remove(entry)

    def _matches_scan(self, number: int, frame: VideoFrame) -> bool:
        scan = self._scan
        if number < len(scan.sums):
            return checksum(frame) == scan.sums[number]
        if scan.complete:
            return False
        # Of a predicted scan: the frame is decoded for the first time.
        marked = frame.is_corrupt and self.facts.codec in RELIABLE_FLAGS
        if scan.errors or marked or frame.pts != scan.stamps[number] or self._shape_of(frame) != self._shape:
            return False
        scan.sums.append(checksum(frame))
        return True

    def _shape_of(self, frame: VideoFrame) -> tuple[int, int, str]:
        return frame.height, frame.width, frame.format.name

    def seek_point(self, number: int) -> int:
        """Return the frame from which decoding has to start to reach this one."""
        entry = self._seek_point_before(number)
        return entry[0] if entry else 0

    def _seek_point_before(self, number: int) -> tuple[int, int] | None:
        # Frames of a predicted scan that were not decoded yet are only reached in order.
        index = bisect_right(self._entries, min(number, len(self._scan.sums)), key=lambda entry: entry[0])
        # The first keyframe needs no seek: the beginning of the file leads to it.
        return self._entries[index - 1] if index > 1 else None

    def _from(self, entry: tuple[int, int] | None) -> Iterator[tuple[int, VideoFrame]]:
        if entry is None:
            self.close()
        if self._container is None:
            self._container, self._stream = self._open(single_thread=self._scan.single_thread)
        container, stream = self._container, self._stream
        detach = self._scan.complete and self._scan.single_thread  # as it was scanned
        if entry is None:
            predicted = None if self._scan.complete else self._scan
            if predicted is not None and not predicted.single_thread:
                stream.codec_context.options |= {"err_detect": "explode"}
            yield from enumerate(_decode(container, stream, scan=predicted, detach=detach))
            return
        number, tick = entry
        try:
            container.seek(tick, stream=stream)
        except av.FFmpegError:
            return
        for frame in _decode(container, stream, detach=detach):
            index = self._frame_of.get(frame.pts, -1) if frame.pts is not None else -1
            if index < number == entry[0]:
                continue  # displayed before the keyframe: it depends on pictures that were not decoded
            if index != number:
                return
            yield number, frame
            number += 1

    def _open(self, *, single_thread: bool) -> tuple[InputContainer, VideoStream]:
        container = open_input(self._file, self._limits)
        stream = picture_stream(container, self._path, self._limits)
        # With a log level set, PyAV's log callback takes the interpreter lock in decoder threads, and a seek that holds
        # it while waiting for them would deadlock; a single thread cannot.
        if single_thread or av.logging.get_level() is not None:
            stream.codec_context.thread_count = 1
        else:
            stream.codec_context.thread_type = "AUTO"
            stream.codec_context.thread_count = self._threads or 0
        return container, stream

    def rgb(self, frame: VideoFrame) -> Frame:
        """Convert a picture to (H, W, 3) RGB, rotated for display."""
        try:
            return self._to_rgb(frame)
        except (av.FFmpegError, ValueError) as error:
            raise MediaError(
                f"{printable_name(self._path)}: pixels of format {frame.format.name} cannot be turned into RGB",
                fault="F15",
            ) from error

    @staticmethod
    def weight(frame: VideoFrame) -> int:
        """Return the bytes that caching this picture takes."""
        return sum(plane.buffer_size for plane in frame.planes)

    def close(self) -> None:
        """Close the file if it is open."""
        if self._container is not None:
            self._container.close()
            self._container = None


def _decode(
    container: InputContainer,
    stream: VideoStream,
    note_packet: Callable[[Packet[VideoStream]], None] | None = None,
    scan: DecodeScan | None = None,
    concealment: Concealment | None = None,
    *,
    detach: bool = False,
) -> Iterator[VideoFrame]:
    """Yield every decoded frame; packets that the decoder refuses are skipped.

    Args:
        detach: copy frames out of the decoder's buffers. It conceals over what is in a buffer, which otherwise depends
            on how many frames are held.
    """

    def note_refused() -> None:
        if scan is not None:
            scan.errors += 1
        if concealment is not None:
            concealment.note_refused()

    context = stream.codec_context
    packets = container.demux(stream)
    while True:
        try:
            with native_call():
                packet: Packet[VideoStream] | None = next(packets)
        except (StopIteration, av.FFmpegError, OSError):
            packet = None  # the end, or the container is too damaged to go on
        is_last = packet is None or (packet.size == 0 and packet.pts is None and packet.dts is None)
        if packet is not None and not is_last and note_packet:
            note_packet(packet)
        for frame in decode_packet(context, None if is_last else packet, note_refused):
            if detach:
                frame.make_writable()
            yield frame
        if is_last:
            return


def _shows_nothing(packet: Packet[VideoStream], codec: str) -> bool:
    if packet.size <= _PLACEHOLDER_BYTES:
        return True
    # The fifth bit of a VP8 frame tag is set for displayed frames, not for reference-only ones.
    return codec.startswith("vp8") and not (bytes(packet)[0] >> 4) & 1


def checksum(frame: VideoFrame) -> int:
    """Return a 64-bit checksum of all stored samples, without the padding of rows."""
    total = 0
    for plane in frame.planes:
        stride = plane.line_size
        if stride <= 0:
            continue  # stored upside down: raw video, in which every frame is a keyframe
        rows = np.frombuffer(memoryview(plane), np.uint8)[: plane.height * stride].reshape(plane.height, stride)
        used = min(stride, plane.width * max(1, frame.format.components[0].bits + 7 >> 3))
        words = rows[:, : used // 8 * 8]
        part = words.view(np.uint64).sum() if words.size else rows[:, :used].sum(dtype=np.uint64)
        total = (total * 1_000_003 + int(part)) & 0xFFFF_FFFF_FFFF_FFFF
    return total
