"""Live sources of pictures: files, pipes of y4m or raw frames, cameras and network addresses that the user names."""

from __future__ import annotations

import contextlib
import math
import os
import queue
import stat
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

import av
from av.container import InputContainer
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from jostle.core.types.video_location import ADDRESS, hide_credentials
from jostle.errors import BadValue, JostleError, MediaError
from jostle.io.video.coded_file import CodedFile
from jostle.io.video.demuxed import DemuxedStream
from jostle.io.video.ffmpeg import open_input, picture_stream
from jostle.io.video.location import locate
from jostle.io.video.lost_pictures import PictureLoss
from jostle.io.video.raw_picture import LivePicture, PictureLayout, StreamFacts, check_layout, layout_of
from jostle.io.video.validation import Limits, printable_name
from jostle.io.video.y4m import RawReader, Y4mReader

STDIN = "-"
OPEN_S, READ_S = 15.0, 10.0  # after which a silent address counts as gone
BACK_OFF_S = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)  # waits before the next attempts; the last one from then on
_ENDLESS = ("rtsp", "rtsps", "rtp", "srtp", "udp", "udplite", "tcp", "tls", "unix", "rtmp", "rtmps", "rtmpt", "v4l2")
_HTTP = ("http", "https")
# What an address may lead to: a playlist of a server must not name files of this machine.
_PROTOCOLS = "http,https,httpproxy,tcp,tls,udp,udplite,rtp,srtp,rtmp,rtmps,rtmpt,unix,crypto,data"
# Enough to know a stream; `fflags=nobuffer` would lose its first frames.
_OPTIONS = {"probesize": "500000", "analyzeduration": "1000000"}

AHEAD = 2  # pictures that are decoded ahead
POLL_S = 0.1
GRACE_S = 0.5

Report = Callable[[str, dict[str, object]], None]


def open_live(
    source: str,
    report: Report,
    *,
    size: tuple[int, int] | None = None,
    pixel_format: str | None = None,
    fps: Fraction | None = None,
    retries: int | None = None,
) -> PipeSource | DecodedFile | Address:
    """Open a source of pictures.

    Args:
        source: `-` for y4m on standard input, a file, a named pipe of y4m, a camera (`/dev/video0`), or an address.
        report: called with what happens to the stream: `resync`, `broken`, `disconnected`, `connected`,
            `undecodable`, `decodable`.
        size: (width, height) of raw frames, which need `pixel_format` too.
        fps: rate of raw frames.
        retries: attempts to connect again to an address; None for no limit.
    """
    if (size is None) != (pixel_format is None):
        raise BadValue("raw frames need both their size and their pixel format: --size 1280x720 --pix-fmt yuv420p")
    if source == STDIN:
        if os.isatty(0):
            raise BadValue("standard input is a terminal; pipe y4m into it: ffmpeg -i IN -f yuv4mpegpipe - | ...")
        return PipeSource(0, "stdin", report, size, pixel_format, fps)
    if ADDRESS.match(source) or _is_camera(source):
        return Address(source, report, retries)
    if os.path.exists(source) and stat.S_ISFIFO(os.stat(source).st_mode):
        return PipeSource(os.open(source, os.O_RDONLY), printable_name(source), report, size, pixel_format, fps)
    file = locate(source)
    if file.local and (size is not None or source.endswith(".y4m")):
        return PipeSource(os.open(file.name, os.O_RDONLY), printable_name(file.name), report, size, pixel_format, fps)
    return DecodedFile(file, report)


def _is_camera(source: str) -> bool:
    return source.startswith("/dev/") and os.path.exists(source) and stat.S_ISCHR(os.stat(source).st_mode)


class PipeSource:
    """Pictures of y4m or raw video from a pipe or a file."""

    def __init__(
        self,
        handle: int,
        name: str,
        report: Report,
        size: tuple[int, int] | None,
        pixel_format: str | None,
        fps: Fraction | None,
    ) -> None:
        def report_bytes(what: str, nbytes: int) -> None:
            report(what, {"bytes": nbytes})

        self._handle, self.name = handle, name
        if size is None or pixel_format is None:
            self._reader: Y4mReader | RawReader = Y4mReader(handle, name, report_bytes)
        else:
            layout = check_layout(PictureLayout(*size, pixel_format), name, Limits())
            self._reader = RawReader(handle, StreamFacts(layout, fps), report_bytes)
        self.raw = size is not None

    @property
    def facts(self) -> StreamFacts:
        return self._reader.facts

    @property
    def broken(self) -> bool:
        """Whether the stream ended within a frame."""
        return self._reader.broken

    def __iter__(self) -> Iterator[LivePicture]:
        return iter(self._reader)

    def close(self) -> None:
        if self._handle > 2:
            os.close(self._handle)


class DecodedFile:
    """Pictures of a video file, each as soon as it is decoded.

    Args:
        report: called with `undecodable` for pictures that do not come out, `decodable` for the first one after them,
            and `broken` where the file ends before its end.

    Attributes:
        broken: whether the file ended before its end.
    """

    raw = False

    def __init__(self, file: CodedFile, report: Report) -> None:
        self.name, self._file, self._report = printable_name(file.name), file, report
        limits = Limits()
        self._container = open_input(file, limits)
        try:
            self._stream = picture_stream(self._container, file.name, limits)
        except JostleError:
            self._container.close()
            raise
        self._stream.codec_context.thread_type = "AUTO"
        self.facts = _facts(self._stream, None)
        self.broken = False

    def __iter__(self) -> Iterator[LivePicture]:
        demuxed = DemuxedStream(self._container, self._stream, self._file)
        for item in demuxed:
            if isinstance(item, PictureLoss):
                self._report(*_loss_report(item, item.time))
                continue
            frame, concealed = item
            if self.facts.layout.width == 0:
                self.facts = _facts(self._stream, frame)
            yield LivePicture(frame, layout_of(frame), _time_of(frame), concealed=concealed)
        self.broken = demuxed.incomplete
        if self.broken:
            self._report("broken", {})

    def close(self) -> None:
        self._container.close()


def _loss_report(loss: PictureLoss, time: float | None) -> tuple[str, dict[str, object]]:
    facts: dict[str, object] = {"frame": loss.frame} if time is None else {"frame": loss.frame, "time": time}
    return ("undecodable", facts | {"frames": loss.lost}) if loss.lost else ("decodable", facts)


_Item = LivePicture | StreamFacts | tuple[str, dict[str, object]] | BaseException | None


class _Closed(Exception):
    """The source was closed while its thread was at work."""


class Address:
    """Pictures of a network address or a camera; connects again, with longer and longer waits, when it ends.

    A thread reads them, since FFmpeg does not return while a source is silent, and Ctrl-C would have to wait for it.
    Times go on over interruptions, by the clock. A first connection that fails is an error at once: most often the
    address is wrong.
    """

    raw, broken = False, False

    def __init__(self, address: str, report: Report, retries: int | None) -> None:
        self._address, self._report, self._retries = address, report, retries
        self.name = hide_credentials(address)
        match = ADDRESS.match(address)
        self._scheme = match[1].lower() if match else "v4l2"
        if self._scheme not in _ENDLESS + _HTTP:
            known = ", ".join(_ENDLESS + _HTTP)
            raise BadValue(f"{self.name}: {self._scheme}:// is not among the addresses that are read ({known})")
        self._closed = threading.Event()
        self._items: queue.Queue[_Item] = queue.Queue(AHEAD)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        first = self._next()
        if isinstance(first, BaseException):
            raise first
        assert isinstance(first, StreamFacts)
        self.facts = first

    def __iter__(self) -> Iterator[LivePicture]:
        while (item := self._next()) is not None:
            if isinstance(item, BaseException):
                raise item
            if isinstance(item, StreamFacts):
                self.facts = item
            elif isinstance(item, tuple):
                self._report(*item)
            else:
                yield item

    def close(self) -> None:
        """End the thread, if FFmpeg lets it; it is waited for only a moment."""
        self._closed.set()
        self._thread.join(GRACE_S)

    def _next(self) -> _Item:
        while True:
            with contextlib.suppress(queue.Empty):
                return self._items.get(timeout=POLL_S)  # a signal is handled in between

    def _put(self, item: _Item) -> None:
        while not self._closed.is_set():
            with contextlib.suppress(queue.Full):
                return self._items.put(item, timeout=POLL_S)
        raise _Closed

    def _run(self) -> None:
        with contextlib.suppress(_Closed):
            try:
                self._read()
                self._put(None)
            except Exception as error:
                self._put(error)

    def _read(self) -> None:
        """Put facts, then pictures and reports, until the source ends for good."""
        container, stream = self._open()
        begun: float | None = None
        last, decoded = 0.0, 0
        facts = _facts(stream, None)
        self._put(facts)
        while True:
            offset: float | None = None
            with contextlib.closing(container):
                demuxed = DemuxedStream(container, stream)
                for item in demuxed:
                    if isinstance(item, PictureLoss):
                        own = None if item.time is None or offset is None else max(item.time + offset, 0.0)
                        self._put(_loss_report(replace(item, frame=decoded + item.frame), last if own is None else own))
                        continue
                    frame, concealed = item
                    begun = time.monotonic() if begun is None else begun
                    now = max(time.monotonic() - begun, last)
                    own = _time_of(frame)
                    if own is None:  # one that was flushed out of the decoder is no later than the last
                        last = last if offset is not None else now
                    else:
                        if offset is None or own + offset < last:  # a sender that starts again begins its times anew
                            offset = now - own
                        last = own + offset
                    if facts.layout.width == 0:
                        facts = _facts(stream, frame)
                        self._put(facts)
                    self._put(LivePicture(frame, layout_of(frame), last, concealed=concealed))
                decoded += demuxed.decoded
                finite = self._scheme in _HTTP and (bool(container.duration) or container.size > 0)
                self.broken = finite and demuxed.incomplete
            if self.broken:
                self._put(("broken", {}))
            if finite:
                return
            self._put(("disconnected", {}))
            connection = self._connect_again()
            if connection is None:
                self.broken = True
                return
            container, stream = connection

    def _connect_again(self) -> tuple[InputContainer, VideoStream] | None:
        attempt = 0
        while self._retries is None or attempt < self._retries:
            self._closed.wait(BACK_OFF_S[min(attempt, len(BACK_OFF_S) - 1)])
            if self._closed.is_set():
                raise _Closed
            attempt += 1
            with contextlib.suppress(MediaError):
                connection = self._open()
                self._put(("connected", {"attempts": attempt}))
                return connection
        return None

    def _open(self) -> tuple[InputContainer, VideoStream]:
        options = dict(_OPTIONS)
        if self._scheme != "v4l2":
            options["protocol_whitelist"] = _PROTOCOLS
        if self._scheme.startswith("rtsp"):
            options["rtsp_transport"] = "tcp"  # lost packets of UDP would look like damage of the camera
        limits = Limits()
        try:
            container = av.open(
                self._address,
                "r",
                format="v4l2" if self._scheme == "v4l2" else None,
                options=options,
                metadata_errors="replace",
                timeout=(OPEN_S, READ_S),
            )
        except (av.FFmpegError, OSError, ValueError, RuntimeError) as error:
            # FFmpeg's message and its traceback quote the address with its password.
            reason = "no answer in time" if isinstance(error, av.error.ExitError) else getattr(error, "strerror", None)
            raise MediaError(
                f"{self.name}: cannot be opened ({reason or type(error).__name__}); check the address, and that it "
                "plays elsewhere",
                fault="F133",
            ) from None
        try:
            stream = picture_stream(container, self.name, limits)
        except JostleError:
            container.close()
            raise
        stream.codec_context.thread_type = "SLICE"  # threads by frames hold back a picture each
        if stream.codec_context.name == "h264":
            stream.codec_context.thread_count = 1  # with threads by slices its decoder conceals and reports no error
        return container, stream


def _facts(stream: VideoStream, frame: VideoFrame | None) -> StreamFacts:
    context = stream.codec_context
    if frame is not None:
        layout = layout_of(frame)
    elif context.pix_fmt is None:
        layout = PictureLayout(0, 0, "")  # known with the first picture
    else:
        full = context.color_range == 2 or context.pix_fmt.startswith("yuvj")
        layout = PictureLayout(context.width, context.height, context.pix_fmt, full)
    return StreamFacts(layout, stream.average_rate or stream.guessed_rate, stream.sample_aspect_ratio or None)


def _time_of(frame: VideoFrame) -> float | None:
    return None if frame.time is None or not math.isfinite(frame.time) else float(frame.time)
