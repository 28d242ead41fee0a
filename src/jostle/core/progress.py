"""Progress meters: a bar on a terminal or in a notebook, plain lines elsewhere, nothing for short work."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TextIO

from jostle.core.formatting import time_of
from jostle.core.options import option

Progress = Callable[[int, int], None]

DELAY_S = 2.0  # shorter work shows no progress
LINE_EVERY_S = 10.0
DRAW_EVERY_S = 0.2  # of a notebook's bar
MINUTE_S = 60.0  # between the lines of a verb that is called from a program
VARIABLE = "JOSTLE_PROGRESS_EVERY"  # other seconds in its place; 0 for none


@dataclass(frozen=True, kw_only=True, eq=False)
class ProgressOptions:
    """Output"""

    progress: Progress | None = field(
        default=None,
        metadata=option(
            "Called with (done, in all): videos or files, of finished runs cells or steps, of one video frames.",
            python=True,
        ),
    )


class Meter:
    """Progress meter on a stream; a count that decreases starts a new pass.

    >>> import io
    >>> with Meter("counting", io.StringIO()) as meter:
    ...     meter.advance(1, 2)
    """

    def __init__(self, what: str, stream: TextIO) -> None:
        self._what, self._stream = what, stream
        self._begin = time.monotonic()
        self._first: tuple[float, int] | None = None  # time and count at the start of the pass
        self._last_line: float | None = None
        self._done = 0
        self._bar: Any = None  # of rich, which is imported only when a bar is drawn
        self._task: Any = None

    def advance(self, done: int, total: int, note: str = "") -> None:
        """Report that `done` of `total` steps are finished, with an optional note."""
        now = time.monotonic()
        if self._first is None or done < self._done:
            self._first = (now, done)
            if self._bar is not None:
                self._bar.reset(self._task, total=total)
        self._done = done
        if now - self._begin < DELAY_S or done == total:
            return
        if self._stream.isatty():
            self._draw(done, total, note)
        elif self._last_line is None or now - self._last_line >= LINE_EVERY_S:
            self._last_line = now
            since, had = self._first
            left = f", about {(now - since) / (done - had) * (total - done):.0f} s left" if done > had else ""
            self._stream.write(f"{self._what}: {done} of {total}{f', {note}' if note else ''}{left}\n")
            self._stream.flush()

    def _draw(self, done: int, total: int, note: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        if self._bar is None:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                console=Console(file=self._stream),
                transient=True,
            )
            self._bar.start()
            self._task = self._bar.add_task(self._what, total=total)
        what = f"{self._what}: {note}" if note else self._what
        self._bar.update(self._task, completed=done, total=total, description=what)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


def in_notebook() -> bool:
    """Return whether this process runs in a Jupyter notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


@contextmanager
def progress_or_bar(what: str, progress: Progress | None) -> Iterator[Progress | None]:
    """Yield the caller's progress callback; without one, a progress bar in notebooks, and elsewhere a line a minute.

    The bar is a single output that is redrawn, appears after two seconds, and is removed at the end. The lines go to
    stderr.
    """
    if progress is not None:
        yield progress
        return
    if not in_notebook():
        with _MinuteLines(what) as lines:
            yield lines.advance
        return
    from IPython.display import HTML, display

    from jostle.core.notebook import progress_html

    begin, drawn = time.monotonic(), 0.0
    handle: Any = None

    def advance(done: int, total: int) -> None:
        nonlocal handle, drawn
        now = time.monotonic()
        if now - begin < DELAY_S or now - drawn < DRAW_EVERY_S:
            return
        drawn, bar = now, HTML(progress_html(what, done, total))
        if handle is None:
            handle = display(bar, display_id=True)
        else:
            handle.update(bar)

    try:
        yield advance
    finally:
        if handle is not None:
            handle.update(HTML(""))


class _MinuteLines:
    """Lines on stderr that say every minute how far work is, also while a single step takes longer than that."""

    def __init__(self, what: str) -> None:
        self._what, self._count = what, ""
        self._begin, self._every = time.monotonic(), _line_interval()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def advance(self, done: int, total: int) -> None:
        """Take note that `done` of `total` steps are finished."""
        self._count = f" {done} of {total},"

    def __enter__(self) -> Self:
        if self._every:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(self._every):
            with contextlib.suppress(OSError, ValueError):  # stderr is closed
                sys.stderr.write(f"{self._what}:{self._count} after {time_of(time.monotonic() - self._begin)}\n")
                sys.stderr.flush()


def _line_interval() -> float:
    try:
        return max(float(os.environ.get(VARIABLE, MINUTE_S)), 0.0)
    except ValueError:
        return MINUTE_S
