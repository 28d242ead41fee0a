"""Console output: data on stdout, everything else on stderr. No other module prints."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Literal

Colour = Literal["green", "red"]
_COLOURS = {"green": 32, "red": 31}
_quiet = False
verbosity = 0


def speak(quiet: bool, verbose: int) -> None:
    """Set the verbosity."""
    global _quiet, verbosity
    _quiet, verbosity = quiet, verbose


def quiet() -> bool:
    """Whether only results and errors are printed."""
    return _quiet


def show(text: str) -> None:
    sys.stdout.write(text + "\n")


def drawing() -> bool:
    """Whether results may use colours and bars: on a terminal that can display them, without `NO_COLOR`."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    try:
        "▁█".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def painted(text: str, colour: Colour) -> str:
    """Text in a colour where results may have one."""
    return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m" if drawing() else text


def show_json(value: Any) -> None:
    show(json.dumps(value, indent=2))


def say(text: str) -> None:
    sys.stderr.write(text + "\n")


def remark(text: str) -> None:
    if not _quiet:
        say(text)


def escape(name: str) -> str:
    """A name as it may be printed: line ends and other control characters escaped."""
    return "".join(c if c.isprintable() or c in " " else c.encode("unicode_escape").decode() for c in name)


@contextmanager
def progress(what: str) -> Iterator[Any]:
    """A bar on a terminal, a line now and then elsewhere; it only appears on work of more than two seconds."""
    if _quiet:
        yield None
        return
    from jostle.core.progress import Meter

    with Meter(what, sys.stderr) as meter:
        yield meter.advance


@contextmanager
def stages() -> Iterator[Any]:
    """Yield a callback (stage, done, total) that draws one progress bar for each stage."""
    if _quiet:
        yield None
        return
    from jostle.core.progress import Meter

    with ExitStack() as bars:
        meters: dict[str, Meter] = {}

        def advance(what: str, done: int, total: int) -> None:
            if what not in meters:
                bars.close()  # the stage before is over
                meters[what] = bars.enter_context(Meter(what, sys.stderr))
            meters[what].advance(done, total)

        yield advance
