"""The verb on live streams: `watch`."""

from __future__ import annotations

import json
import re
import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Annotated, Any, TextIO

from jostle import api
from jostle.cli import console
from jostle.cli.app import Json, app
from jostle.cli.options import ExitCode, Given, with_options
from jostle.core.formatting import escape, without_nan
from jostle.core.interruption import Stopped
from jostle.core.options import option, reworded
from jostle.errors import BadValue, MediaError
from jostle.io.files.pipe_writer import PipeWriter
from jostle.mending.options import WatchOptions

DAMAGED, BROKEN = 9, MediaError.exit_code
WAITING_EVENTS = 64
STOP_S = 0.25  # for what a reader of events takes after a signal
DRAW_EVERY_S = 0.2


@app.command(help="Watch a live stream for damage, and mend it: a file, y4m on a pipe, a camera or an address.")
@with_options(WatchOptions)
def watch(
    given: Given,
    events: Annotated[
        str | None,
        option("Write events to this file, as JSON lines; default: stdout.", metavar="FILE"),
    ] = None,
    size: Annotated[
        str | None, reworded(WatchOptions, "size", "Size of raw frames.", metavar="WxH", python=False)
    ] = None,
    metrics: Annotated[
        str | None,
        option("Serve Prometheus metrics, as at 127.0.0.1:9108.", metavar="HOST:PORT"),
    ] = None,
    as_json: Json = False,
) -> None:
    out = given.values.get("out")
    if out == "-" and (as_json or events == "-"):
        raise BadValue("standard output takes either the stream or JSON; write events to --events FILE")
    if out == "-" and sys.stdout.isatty():
        raise BadValue("-o - would write video to this terminal; pipe it into the next program")
    state = api.WatchState()
    with ExitStack() as stack:
        lines: _EventLines | None = None
        if events not in (None, "-"):
            lines = stack.enter_context(_EventLines(_event_file(events, stack), state))
        elif out != "-" and not as_json:
            lines = stack.enter_context(_EventLines(sys.stdout, state))
        live = stack.enter_context(_LiveLine())
        if metrics is not None:
            port = stack.enter_context(api.serve_watch_metrics(metrics, state))
            console.remark(f"metrics on port {port}, path /metrics")

        def report_event(event: dict[str, Any]) -> None:
            live.clear()
            if lines is not None:
                lines.write(json.dumps(without_nan(event)))
            if event["event"] not in ("start", "end"):
                console.remark(_describe(event, state))

        callbacks = {"on_event": report_event, "on_frame": live.draw}
        api.watch(**given.keywords(**callbacks, size=_parse_size(size), state=state))
    if state.ended == "reader_gone":
        raise Stopped(signal.SIGPIPE)
    console.give(state, as_json)
    if state.ended == "broken":
        console.say(
            f"error[F199]: {escape(state.source) or 'stream'}: ended before its end, after {state.time:.2f} s; "
            "look at what writes or sends it, or copy it again"
        )
    code = {"damaged": DAMAGED, "broken": BROKEN, "stopped": 128 + (state.signal or 0)}.get(str(state.ended), 0)
    if code:
        raise ExitCode(code)


class _EventLines:
    """Events as lines of JSON, whose reader may be slow: everything waits for it, except the end by a signal."""

    def __init__(self, stream: TextIO, state: api.WatchState) -> None:
        self._stream, self._state = stream, state
        stream.flush()
        try:
            self._pipe: PipeWriter | None = PipeWriter(stream.fileno(), WAITING_EVENTS)
        except OSError:
            self._pipe = None  # a stream of this program, such as that of a notebook

    def __enter__(self) -> _EventLines:
        return self

    def __exit__(self, *_: object) -> None:
        self._finish(lambda pipe: pipe.close())

    def write(self, line: str) -> None:
        """Write a line.

        Raises:
            BrokenPipeError: if the reader is gone, once.
        """
        if self._pipe is None:
            self._stream.write(line + "\n")
            self._stream.flush()
        self._finish(lambda pipe: pipe.write([line.encode() + b"\n"]))

    def _finish(self, action: Callable[[PipeWriter], None]) -> None:
        pipe = self._pipe
        if pipe is None:
            return
        if self._state.ended == "stopped":
            pipe.limit(STOP_S)
        try:
            action(pipe)
        except BrokenPipeError:
            if self._state.ended is None:
                raise


def _event_file(name: str | None, stack: ExitStack) -> TextIO:
    assert name is not None
    try:
        return stack.enter_context(open(name, "a", encoding="utf-8"))  # a service that starts again goes on
    except OSError as error:
        raise BadValue(f"{name}: events cannot be written there ({error.strerror}); name another file") from None


def _parse_size(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,6})x(\d{1,6})", text)
    if not match:
        raise BadValue(f"{text!r} is no size; write WIDTHxHEIGHT, as in 1280x720")
    return int(match[1]), int(match[2])


def _describe(event: dict[str, Any], state: api.WatchState) -> str:
    where = f"{escape(state.source) or 'stream'}, frame {event['frame']}"
    texts = {
        "resync": f"no frame where one was due; {event.get('bytes')} bytes left out, then the next one was found",
        "broken": f"ended within a frame, after {event['bytes']} bytes of it; what wrote it may have been killed"
        if "bytes" in event
        else "ended before its end; it may have been cut off, or the connection lost",
        "disconnected": "disconnected",
        "connected": f"connected again, at attempt {event.get('attempts')}",
        "lost": "damaged for longer than a frame is held; the stream is lost, and black until a clean frame comes",
        "found": "a clean frame again",
    }
    return f"{where}: {texts[event['event']]}"


class _LiveLine:
    """One line on a terminal that says how the stream is; nothing elsewhere."""

    def __init__(self) -> None:
        self._visible = sys.stderr.isatty() and not console.quiet()
        self._drawn, self._begun, self._first = 0.0, time.monotonic(), 0

    def __enter__(self) -> _LiveLine:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def draw(self, state: api.WatchState) -> None:
        now = time.monotonic()
        if not self._visible or now - self._drawn < DRAW_EVERY_S:
            return
        rate = (state.frames - self._first) / (now - self._drawn) if self._drawn else 0.0
        self._drawn, self._first = now, state.frames
        condition = "clean" if state.kind is None else f"DAMAGED: {state.kind}"
        sure = "" if state.confidence is None else f" ({state.confidence:.0%})"
        text = f"{state.time:.1f} s, frame {state.frames}, {rate:.0f} fps, {condition}{sure}; {state.damaged} damaged"
        sys.stderr.write(f"\r\x1b[2K{text}")
        sys.stderr.flush()

    def clear(self) -> None:
        if self._visible and self._drawn:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
