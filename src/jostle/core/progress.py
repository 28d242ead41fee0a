"""A progress meter that keeps still for short work: a bar on a terminal and in a notebook, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TextIO

from jostle.core.notebook import progress_html

Progress = Callable[[int, int], None]

PATIENCE_S = 2.0  # shorter work says nothing
LINE_EVERY_S = 10.0
DRAW_EVERY_S = 0.2  # of a bar in a notebook


class Meter:
    """Shows how far some work has come; a count that falls back begins a new pass over it.

    >>> import io
    >>> with Meter("counting", io.StringIO()) as meter:
    ...     meter.advance(1, 2)
    """

    def __init__(self, what: str, stream: TextIO) -> None:
        self._what, self._stream = what, stream
        self._begin = time.monotonic()
        self._first: tuple[float, int] | None = None  # when the pass was first heard of; what came before is no measure
        self._last_line: float | None = None
        self._done = 0
        self._bar: Any = None  # rich's, which is only imported when a bar is drawn
        self._task: Any = None

    def advance(self, done: int, total: int, note: str = "") -> None:
        """Say that `done` of `total` steps are behind us, and in a few words what came of them."""
        now = time.monotonic()
        if self._first is None or done < self._done:
            self._first = (now, done)
            if self._bar is not None:
                self._bar.reset(self._task, total=total)
        self._done = done
        if now - self._begin < PATIENCE_S or done == total:
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
    """Whether results are shown in a notebook's cells."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


@contextmanager
def shown_progress(what: str, given: Progress | None) -> Iterator[Progress | None]:
    """The caller's own way of hearing how far some work has come; where there is none, a bar if this is a notebook.

    The bar is one output that is drawn anew, appears after two seconds, and is taken away at the end.
    """
    if given is not None or not in_notebook():
        yield given
        return
    from IPython.display import HTML, display

    begin, drawn = time.monotonic(), 0.0
    handle: Any = None

    def advance(done: int, total: int) -> None:
        nonlocal handle, drawn
        now = time.monotonic()
        if now - begin < PATIENCE_S or now - drawn < DRAW_EVERY_S:
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
