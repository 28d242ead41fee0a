"""YUV4MPEG2 (y4m), the format of uncompressed video on pipes.

This is no second way beside FFmpeg's reader: that one ends at the first byte that is not where it should be, drops a
picture that breaks off without a word, and reads a pipe in lumps; a stream has to say how it ended, to find the next
frame after garbage, and to hand on every byte as it came.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from fractions import Fraction

from jostle.errors import MediaError
from jostle.io.video.raw_picture import LivePicture, PictureLayout, StreamFacts, check_layout
from jostle.io.video.validation import Limits

MAGIC = b"YUV4MPEG2"
MAX_LINE = 4096  # bytes of a header
MAX_FRAME_LINE = 1024
SEARCH = 1 << 16  # bytes that are searched at once for the next frame
MAX_GARBAGE = 1 << 26  # bytes without a frame after which a stream is given up
_FRAME = re.compile(rb"FRAME[\n ]|YUV4MPEG2 ")
_FIRST_RATE = Fraction(25)  # where the header names none, as FFmpeg has it

_SUBSAMPLINGS = {"420jpeg": "420p", "420mpeg2": "420p", "420paldv": "420p", "420": "420p", "411": "411p"}
_SUBSAMPLINGS |= {"422": "422p", "444": "444p"}
PIXEL_FORMATS = {name: f"yuv{own}" for name, own in _SUBSAMPLINGS.items()}
PIXEL_FORMATS |= {"444alpha": "yuva444p", "mono": "gray"}
PIXEL_FORMATS |= {f"{own}p{bits}": f"yuv{own}p{bits}le" for own in (420, 422, 444) for bits in (9, 10, 12, 14, 16)}
PIXEL_FORMATS |= {f"mono{bits}": f"gray{bits}le" for bits in (9, 10, 12, 14, 16)}
_TAGS = {own: name for name, own in reversed(PIXEL_FORMATS.items())}  # of several names the first
_TAGS |= {"yuvj420p": "420jpeg", "yuvj422p": "422", "yuvj444p": "444"}

Report = Callable[[str, int], None]  # what happened, and how many bytes it concerns


class ByteStream:
    """Bytes of a pipe, read as they come.

    `sys.stdin.buffer` waits for 32 KiB, in which small frames arrive late and in lumps.
    """

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._pushed = b""

    def push_back(self, data: bytes) -> None:
        """Let these bytes be read next."""
        self._pushed = data + self._pushed

    def some(self, most: int) -> bytes:
        """Return at least one byte, or none at the end."""
        if self._pushed:
            data, self._pushed = self._pushed[:most], self._pushed[most:]
            return data
        return os.read(self._handle, most)

    def exactly(self, count: int) -> bytearray:
        """Return so many bytes, fewer at the end."""
        data = bytearray(count)
        view, filled = memoryview(data), min(len(self._pushed), count)
        view[:filled] = self._pushed[:filled]
        self._pushed = self._pushed[filled:]
        while filled < count:
            got = os.readv(self._handle, [view[filled:]])
            if not got:
                break
            filled += got
        view.release()
        del data[filled:]
        return data

    def line(self, most: int) -> bytes | None:
        """Return the bytes up to a line end, without it; None if there is none within `most` bytes."""
        data = bytearray()
        while len(data) <= most:
            one = self.some(1)
            if one in (b"\n", b""):
                return bytes(data).removesuffix(b"\r") if one else None
            data += one
        self.push_back(bytes(data))
        return None


def parse_header(line: bytes, what: str, limits: Limits) -> StreamFacts:
    """Return what the first line of a y4m stream says.

    >>> facts = parse_header(b"YUV4MPEG2 W64 H48 F30000:1001 C420jpeg", "-", Limits())
    >>> facts.layout.pixel_format, facts.layout.nbytes, str(facts.fps)
    ('yuv420p', 4608, '30000/1001')
    """
    fields = {word[:1]: word[1:].decode("latin-1") for word in line.split()[1:] if word[:1] != b"X"}
    extra = {word for word in line.split() if word[:1] == b"X"}
    try:
        width, height = int(fields[b"W"]), int(fields[b"H"])
        fps = _ratio(fields.get(b"F", "")) or _FIRST_RATE
        aspect = _ratio(fields.get(b"A", ""))
    except (KeyError, ValueError):
        raise MediaError(f"{what}: the header of the y4m stream is damaged: {_quoted(line)}", fault="F132") from None
    tag = fields.get(b"C", "420")
    if tag not in PIXEL_FORMATS:
        raise MediaError(
            f"{what}: pixels of kind {_quoted(tag.encode())} in the y4m stream are not known; let the program before "
            "write yuv420p",
            fault="F15",
        )
    layout = PictureLayout(width, height, PIXEL_FORMATS[tag], b"XCOLORRANGE=FULL" in extra)
    return StreamFacts(check_layout(layout, what, limits), fps, aspect, line)


def _ratio(text: str) -> Fraction | None:
    if not text:
        return None
    above, _, below = text.partition(":")
    return Fraction(int(above), int(below)) if int(below) and int(above) > 0 else None


def _quoted(data: bytes) -> str:
    return ascii(data[:60].decode("latin-1"))


class Y4mReader:
    """Pictures of a y4m stream.

    Attributes:
        facts: what the header says; of the newest, where streams are joined.
        broken: whether the stream ended within a frame.

    Args:
        handle: file descriptor to read from.
        what: name of the stream in messages.
        report: called with (`resync`, bytes left out) when garbage was passed over, and with (`broken`, bytes of a
            frame that is not whole) at an end within a frame.
    """

    def __init__(self, handle: int, what: str, report: Report, limits: Limits | None = None) -> None:
        self._stream, self._what, self._report = ByteStream(handle), what, report
        self._limits = limits or Limits()
        self.broken = False
        begin = bytes(self._stream.exactly(len(MAGIC) + 1))
        if begin != MAGIC + b" ":
            content = f"begins with {_quoted(begin)}" if begin else "ended before its first byte"
            raise MediaError(
                f"{what}: no y4m stream, it {content}; write one by `ffmpeg -i IN -f yuv4mpegpipe -pix_fmt yuv420p -`, "
                "or say what raw frames are by --size, --pix-fmt and --fps",
                fault="F132",
            )
        self._read_header()

    def _read_header(self) -> None:
        line = self._stream.line(MAX_LINE)
        if line is None:
            raise MediaError(f"{self._what}: the header of the y4m stream does not end", fault="F132")
        self.facts = parse_header(MAGIC + b" " + line, self._what, self._limits)

    def __iter__(self) -> Iterator[LivePicture]:
        found = self._find_frame(b"")
        while found:
            line = self._stream.line(MAX_FRAME_LINE)
            if line is None:  # what looked like a frame was none
                found = self._find_frame(b"")
                if not found and not self.broken:
                    self._break_off(len("FRAME"))
                continue
            layout = self.facts.layout
            data = self._stream.exactly(layout.nbytes)
            if len(data) < layout.nbytes:
                self._break_off(len(data))
                return
            samples = layout.samples(data)
            yield LivePicture(layout.to_frame(samples), layout, None, line, samples)
            found = self._find_frame(bytes(data))

    def _find_frame(self, last: bytes) -> bool:
        """Read up to the parameters of the next frame; return whether there is one.

        Args:
            last: data of the picture before. Where bytes of it were lost, it holds the beginning of the next frame.
        """
        head = bytes(self._stream.exactly(5))
        if not head:
            return False
        if head == b"FRAME":
            after = self._stream.some(1)
            self._stream.push_back(after)
            if after in (b"\n", b" ", b"\r"):
                return True
        if head == MAGIC[:5] and head + bytes(rest := self._stream.exactly(5)) == MAGIC + b" ":
            self._read_header()
            return self._find_frame(b"")
        if head == MAGIC[:5]:
            head += bytes(rest)
        return self._search(last, head)

    def _search(self, last: bytes, head: bytes) -> bool:
        passed, data = 0, last + head
        while True:
            match = _FRAME.search(data)
            if match:
                self._stream.push_back(data[match.start() :])
                self._report("resync", max(passed + match.start() - len(last), 0))
                return self._find_frame(b"")
            keep = data[-len(MAGIC) :]
            passed += len(data) - len(keep)
            more = self._stream.some(SEARCH)
            if not more:
                self._break_off(max(passed + len(keep) - len(last), 0))
                return False
            if passed > MAX_GARBAGE + len(last):
                raise MediaError(
                    f"{self._what}: {MAX_GARBAGE >> 20} MiB without the beginning of a frame; this is no y4m stream "
                    "any more, start it again",
                    fault="F132",
                )
            data = keep + more

    def _break_off(self, nbytes: int) -> None:
        self.broken = True
        self._report("broken", nbytes)


class RawReader:
    """Pictures of raw video, which has no headers: every so many bytes are one.

    Attributes:
        facts: what the caller said of them.
        broken: whether the stream ended within a frame.
    """

    def __init__(self, handle: int, facts: StreamFacts, report: Report) -> None:
        self._stream, self.facts, self._report = ByteStream(handle), facts, report
        self.broken = False

    def __iter__(self) -> Iterator[LivePicture]:
        layout = self.facts.layout
        while data := self._stream.exactly(layout.nbytes):
            if len(data) < layout.nbytes:
                self.broken = True
                self._report("broken", len(data))
                return
            samples = layout.samples(data)
            yield LivePicture(layout.to_frame(samples), layout, None, b"", samples)


def y4m_tag(pixel_format: str) -> str | None:
    """Return what y4m calls a pixel format of FFmpeg, or None if it has no name for it.

    >>> y4m_tag("yuv420p"), y4m_tag("yuv422p10le"), y4m_tag("rgb24")
    ('420jpeg', '422p10', None)
    """
    return _TAGS.get(pixel_format)


def y4m_header(facts: StreamFacts) -> bytes:
    """Return the first line of a y4m stream, the one it came with where there is one."""
    if facts.y4m_header is not None:
        return facts.y4m_header + b"\n"
    layout, fps, aspect = facts.layout, facts.fps or _FIRST_RATE, facts.pixel_aspect
    words = [f"W{layout.width}", f"H{layout.height}", f"F{fps.numerator}:{fps.denominator}", "Ip"]
    words.append(f"A{aspect.numerator}:{aspect.denominator}" if aspect else "A0:0")
    words.append(f"C{y4m_tag(layout.pixel_format)}")
    words.append(f"XCOLORRANGE={'FULL' if layout.full_range else 'LIMITED'}")
    return b" ".join([MAGIC, *(word.encode() for word in words)]) + b"\n"


def frame_header(picture: LivePicture, kind: str | None = None) -> bytes:
    """Return the line before a frame; `kind` is added as a comment on what is wrong with the picture."""
    return b"FRAME" + picture.header + (f" XDAMAGED={kind}".encode() if kind else b"") + b"\n"
