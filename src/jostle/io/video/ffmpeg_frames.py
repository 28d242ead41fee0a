"""Decoded pictures of one file, by FFmpeg: one pass to learn what there is, then any frame."""

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

from jostle.core.types.clip import Frame
from jostle.errors import MediaError
from jostle.io.video.colour import ToRgb
from jostle.io.video.ffmpeg import open_input, picture_stream
from jostle.io.video.probe import VideoFacts, facts_of
from jostle.io.video.timestamps import Misled, Survey
from jostle.io.video.validation import Limits, missing_tail, shown_name

_PLACEHOLDER_BYTES = 8  # a packet this small says "as before" (MPEG-4 in AVI does) and holds no picture
# Decoders whose damage mark means damage; MPEG-4's is also set on sound frames, HEVC's never.
_HONEST_MARKS = ("h264", "mpeg1video", "mpeg2video")


# Of these each packet gives one picture, so packets can be counted in place of pictures.
_ONE_PICTURE_A_PACKET = ("h264", "hevc", "mpeg4")


class Pictures:
    """The pictures of a file in the order in which they are shown.

    Keyframes are only promises: an open group of pictures, a damaged stream or a sloppy muxer can make a
    frame come out different after a seek. So the first pass sums every picture, each picture reached by a
    seek is compared with its sum, and a keyframe that does not lead to the same pixels is not used again.
    """

    def __init__(self, path: str, size: int, *, limits: Limits, threads: int | None) -> None:
        self._path = path
        self._limits = limits
        self._threads = threads
        self._container: InputContainer | None = None
        with open_input(path, limits) as container:
            stream = picture_stream(container, path, limits)
            self.facts: VideoFacts = facts_of(container, stream, path, size)
        self._survey = Survey()
        self._frame_of: dict[int, int] = {}
        self._entries: list[tuple[int, int]] = []
        stored = (self.facts.height, self.facts.width)
        self._shape = (*stored, self.facts.pixel_format)
        if self.facts.rotation in (90, 270):
            self._shape = (stored[1], stored[0], self.facts.pixel_format)
        self._to_rgb = ToRgb(stored[::-1] if self.facts.rotation in (90, 270) else stored, self.facts.rotation)

    def survey(self, keep: Callable[[int, VideoFrame], None]) -> Survey:
        """Decode the whole file once; `keep` is offered every picture.

        A damaged stream is passed over again on one thread, because what a decoder invents for lost blocks
        depends on which threads had finished.
        """
        survey = self._pass(keep, single_thread=self._threads == 1)
        suspect = survey.damaged
        if suspect and not survey.single_thread:
            survey = self._pass(keep, single_thread=True)
        survey.single_thread = suspect
        self.adopt(survey)
        return survey

    def foretold(self, least_bytes: int) -> Survey | None:
        """What a survey will find, by the index of the container; None where that cannot be relied upon.

        Only an index that has a distinct time for each of as many packets as it counts will do. Whether every packet
        gives its picture is seen as they are decoded: the first that does not raises `Misled`.
        """
        facts = self.facts
        promised = facts.declared_frames or 0
        if "mp4" not in facts.container or facts.codec not in _ONE_PICTURE_A_PACKET or facts.interlaced is not False:
            return None
        if promised * facts.width * facts.height * 3 // 2 < least_bytes or missing_tail(self._path):
            return None
        survey = Survey(expected=promised, single_thread=self._threads == 1)
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
                    survey.stamps.append(packet.pts)
                    if packet.is_keyframe:
                        keys.append(packet.pts)
                    self._check_bounds(len(survey.stamps), deadline)
            except (av.FFmpegError, OSError):
                return None
        known = sorted(stamp for stamp in survey.stamps if stamp is not None)
        if len(set(known)) != promised or len(known) != promised:
            return None
        survey.stamps = [*known]
        frame_of = {stamp: number for number, stamp in enumerate(known)}
        survey.entries = sorted((frame_of[tick], tick) for tick in keys)
        self.adopt(survey)
        return survey

    def adopt(self, survey: Survey) -> None:
        """Use what an earlier pass over the same file found."""
        self._survey = survey
        known = [stamp for stamp in survey.stamps if stamp is not None]
        if len(set(known)) == len(survey.stamps):
            self._frame_of = {stamp: number for number, stamp in enumerate(known)}
            self._entries = list(survey.entries)

    def _pass(self, keep: Callable[[int, VideoFrame], None], *, single_thread: bool) -> Survey:
        survey = Survey(single_thread=single_thread)
        coded: list[int] = []  # ticks of packets that should show something
        keys: list[int] = []
        counts = {"unstamped": 0, "silent": 0}
        sizes: set[tuple[int, int, str]] = set()
        deadline = time.monotonic() + self._limits.max_open_s
        container, stream = self._open(single_thread=single_thread)
        if not single_thread:
            # Threads mark damage too late to be relied on, but what a decoder refuses is always told.
            stream.codec_context.options |= {"err_detect": "explode"}
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
                survey.errors += packet.is_corrupt
                self._check_bounds(len(coded) + counts["unstamped"], deadline)

            for frame in _decoded(container, stream, note_packet, survey):
                number = len(survey.stamps)
                survey.stamps.append(frame.pts)
                survey.sums.append(checksum(frame))
                sizes.add((frame.height, frame.width, frame.format.name))
                if frame.is_corrupt and stream.codec_context.name in _HONEST_MARKS:
                    survey.flagged.append(number)
                keep(number, frame)
                self._check_bounds(number, deadline)
            end_s = container.duration / 1e6 if container.duration else None
        frame_of = {stamp: number for number, stamp in enumerate(survey.stamps) if stamp is not None}
        survey.entries = sorted({(frame_of[tick], tick) for tick in keys if tick in frame_of})
        # Two fields of one interlaced frame may come in two packets, of which only one is shown.
        fields = bool(self.facts.interlaced) and not survey.errors
        if len(frame_of) == len(survey.stamps) and not fields:
            survey.lost = sorted(tick for tick in set(coded) if tick not in frame_of)
        survey.expected = self._expected(survey, len(coded) + counts["unstamped"], counts["silent"], end_s)
        if len({size[:2] for size in sizes}) > 1:
            survey.notes.append("the frame size changes on the way; frames are scaled to the first size")
        elif len(sizes) > 1:
            survey.notes.append("the pixel format changes on the way; every frame is converted by its own")
        return survey

    def _check_bounds(self, frames: int, deadline: float) -> None:
        if frames > self._limits.max_frames:
            too_much = f"more than {self._limits.max_frames} frames"
        elif time.monotonic() > deadline:
            too_much = f"not read within {self._limits.max_open_s:g} s"
        else:
            return
        raise MediaError(f"{shown_name(self._path)}: {too_much}; cut it or raise the limit", fault="F10")

    def _expected(self, survey: Survey, coded: int, silent: int, end_s: float | None) -> int:
        """How many frames the file promises: by packets, by an mp4's index, or by a cut-off file's length."""
        shown = len(survey.stamps)
        expected = max(shown, coded if survey.lost or survey.errors else 0)
        cut_off = missing_tail(self._path)
        declared = self.facts.declared_frames or 0
        if "mp4" in self.facts.container or cut_off:
            expected = max(expected, declared - silent)
        known = [stamp for stamp in survey.stamps if stamp is not None]
        if cut_off and not declared and end_s and known:
            covered_s = float((max(known) - min(known)) * self.facts.time_base + 1 / self.facts.fps)
            expected = max(expected, round(shown * end_s / covered_s))
        return expected

    def pictures(self, start: int) -> Iterator[tuple[int, VideoFrame]]:
        """(frame number, picture) in order, from a point at or before `start` to the end.

        When a keyframe turns out not to lead to the surveyed pixels, numbers step back to an earlier one.
        """
        wanted = start
        while True:
            entry = self._entry_before(wanted)
            for number, frame in self._from(entry):
                if not self._is_as_surveyed(number, frame):
                    break
                wanted = max(wanted, number)
                yield number, frame
                if number == len(self._survey.stamps) - 1:
                    return
            if not self._survey.complete:
                raise Misled(f"{shown_name(self._path)}: frame {wanted} is not there as its index says", fault="F19")
            if entry is None:
                raise MediaError(
                    f"{shown_name(self._path)}: frame {wanted} decodes differently the second time; "
                    "copy the file and try again",
                    fault="F19",
                )
            self._entries.remove(entry)

    def _is_as_surveyed(self, number: int, frame: VideoFrame) -> bool:
        survey = self._survey
        if number < len(survey.sums):
            return checksum(frame) == survey.sums[number]
        if survey.complete:
            return False
        # Foretold only: this is the first time that the frame is seen.
        marked = frame.is_corrupt and self.facts.codec in _HONEST_MARKS
        if survey.errors or marked or frame.pts != survey.stamps[number] or self._shape_of(frame) != self._shape:
            return False
        survey.sums.append(checksum(frame))
        return True

    def _shape_of(self, frame: VideoFrame) -> tuple[int, int, str]:
        return frame.height, frame.width, frame.format.name

    def entry_before(self, number: int) -> int:
        """The frame from which decoding has to start to reach this one."""
        entry = self._entry_before(number)
        return entry[0] if entry else 0

    def _entry_before(self, number: int) -> tuple[int, int] | None:
        # Of frames that were foretold, those not yet seen are only reached by way of those that were.
        place = bisect_right(self._entries, min(number, len(self._survey.sums)), key=lambda entry: entry[0])
        # The first keyframe needs no seek: the beginning of the file leads to it.
        return self._entries[place - 1] if place > 1 else None

    def _from(self, entry: tuple[int, int] | None) -> Iterator[tuple[int, VideoFrame]]:
        if entry is None:
            self.close()
        if self._container is None:
            self._container, self._stream = self._open(single_thread=self._survey.single_thread)
        container, stream = self._container, self._stream
        if entry is None:
            foretold = None if self._survey.complete else self._survey
            if foretold is not None and not foretold.single_thread:
                stream.codec_context.options |= {"err_detect": "explode"}
            yield from enumerate(_decoded(container, stream, survey=foretold))
            return
        number, tick = entry
        try:
            container.seek(tick, stream=stream)
        except av.FFmpegError:
            return
        for frame in _decoded(container, stream):
            found = self._frame_of.get(frame.pts, -1) if frame.pts is not None else -1
            if found < number == entry[0]:
                continue  # shown before the keyframe: it leans on pictures that were not decoded
            if found != number:
                return
            yield number, frame
            number += 1

    def _open(self, *, single_thread: bool) -> tuple[InputContainer, VideoStream]:
        container = open_input(self._path, self._limits)
        stream = picture_stream(container, self._path, self._limits)
        # With a log level set, PyAV's log callback asks for the interpreter lock from decoder threads,
        # which a seek then waits for while holding it: one thread cannot wait for itself.
        if single_thread or av.logging.get_level() is not None:
            stream.codec_context.thread_count = 1
        else:
            stream.codec_context.thread_type = "AUTO"
            stream.codec_context.thread_count = self._threads or 0
        return container, stream

    def rgb(self, frame: VideoFrame) -> Frame:
        """(H, W, 3) RGB as shown."""
        try:
            return self._to_rgb(frame)
        except (av.FFmpegError, ValueError) as error:
            raise MediaError(
                f"{shown_name(self._path)}: pixels of format {frame.format.name} cannot be turned into RGB",
                fault="F15",
            ) from error

    @staticmethod
    def weight(frame: VideoFrame) -> int:
        """Bytes that keeping this picture costs."""
        return sum(plane.buffer_size for plane in frame.planes)

    def close(self) -> None:
        """Let go of the file."""
        if self._container is not None:
            self._container.close()
            self._container = None


def _decoded(
    container: InputContainer,
    stream: VideoStream,
    note_packet: Callable[[Packet[VideoStream]], None] | None = None,
    survey: Survey | None = None,
) -> Iterator[VideoFrame]:
    """Everything that comes out of the decoder; a packet it refuses is passed over."""
    context = stream.codec_context
    packets = container.demux(stream)
    while True:
        try:
            packet: Packet[VideoStream] | None = next(packets)
        except (StopIteration, av.FFmpegError, OSError):
            packet = None  # the end, or a container too damaged to go on
        is_last = packet is None or (packet.size == 0 and packet.pts is None and packet.dts is None)
        if packet is not None and not is_last and note_packet:
            note_packet(packet)
        try:
            yield from context.decode(None if is_last else packet)
        except EOFError:
            pass
        except (av.FFmpegError, ValueError, RuntimeError):
            if survey is not None:
                survey.errors += 1
        if is_last:
            return


def _shows_nothing(packet: Packet[VideoStream], codec: str) -> bool:
    if packet.size <= _PLACEHOLDER_BYTES:
        return True
    # A VP8 frame tag says in its fifth bit whether the frame is shown; reference-only frames are not.
    return codec.startswith("vp8") and not (bytes(packet)[0] >> 4) & 1


def checksum(frame: VideoFrame) -> int:
    """A 64-bit sum over all stored samples, without the padding that rows may carry."""
    total = 0
    for plane in frame.planes:
        stride = plane.line_size
        if stride <= 0:
            continue  # stored upside down: raw video, where every frame is a keyframe
        rows = np.frombuffer(memoryview(plane), np.uint8)[: plane.height * stride].reshape(plane.height, stride)
        used = min(stride, plane.width * max(1, frame.format.components[0].bits + 7 >> 3))
        words = rows[:, : used // 8 * 8]
        part = words.view(np.uint64).sum() if words.size else rows[:, :used].sum(dtype=np.uint64)
        total = (total * 1_000_003 + int(part)) & 0xFFFF_FFFF_FFFF_FFFF
    return total
