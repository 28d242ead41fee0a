"""Exceptions of jostle; every message says what happened, where, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

MAX_NAMES = 12  # listed when nothing is close
MAX_CHARS = 4000  # of a message, which may quote a name of any length from a file
_TAIL_CHARS = 400  # of those, kept from the end, which says what to do


class JostleError(Exception):
    """Base class of all errors that jostle raises on purpose.

    Attributes:
        fault: number of the case in the fault matrix (`F4`), or an empty string.
        exit_code: of the command line.
    """

    exit_code = 3

    def __init__(self, message: str, *, fault: str = "") -> None:
        if len(message) > MAX_CHARS:
            message = f"{message[: MAX_CHARS - _TAIL_CHARS]} [...] {message[-_TAIL_CHARS:]}"
        super().__init__(message)
        self.fault = fault


class UnknownName(JostleError, LookupError):
    """A name that is in no registry.

    Args:
        reason: another possible reason, for the end of the message.
    """

    exit_code = 2

    def __init__(self, kind: str, name: str, known: Iterable[str], reason: str = "") -> None:
        names = sorted(known)
        close = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
        if close:
            hint = f"did you mean {' or '.join(close)}?"
        else:
            more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
            hint = f"known: {', '.join(names[:MAX_NAMES]) or 'none'}{more}"
        super().__init__(f"no {kind} is called {name!r}: {hint}{reason}")
        self.name = name
        self.close = tuple(close)


class BadValue(JostleError, ValueError):
    """An invalid argument or setting."""

    exit_code = 2


class DataError(JostleError):
    """Annotations, predictions or a dataset folder that cannot be used."""


class Incomparable(DataError):
    """Results that must not be compared: of different benchmarks, or measured against different ground truth."""

    exit_code = 6


class Tampered(DataError):
    """A file whose checksum differs from the recorded one."""

    exit_code = 6


class MediaError(JostleError):
    """A video that cannot be read or written."""


class EncoderMissing(MediaError):
    """An encoder that the installed FFmpeg lacks."""

    exit_code = 5


class SourceChanged(MediaError):
    """An input that was modified while it was being read."""

    exit_code = 6


class ResourceError(JostleError):
    """Lack of disk space, memory or devices."""

    exit_code = 5


class MissingExtra(JostleError, ImportError):
    """A feature whose optional dependencies are not installed."""

    exit_code = 2

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs packages that are not installed: pip install 'jostle[{extra}]'")


class CheckpointError(JostleError):
    """Weights that cannot be loaded into the network."""


class ForeignExit(JostleError):
    """Foreign code, such as a plugin or a user's model, that tried to end the program."""


class NonFiniteOutput(DataError):
    """Output of a model with values that are NaN or infinite.

    Attributes:
        rows: items of the batch that have them, where known.
    """

    def __init__(
        self, message: str, *, fault: str = "F121", rows: Iterable[int] = (), video: str = "", cell: str = ""
    ) -> None:
        place = ", ".join(f"{kind} {name}" for kind, name in (("video", video), ("cell", cell)) if name)
        super().__init__(f"{place}: {message}" if place else message, fault=fault)
        self.rows = tuple(rows)
        self._message, self._video, self._cell = message, video, cell

    def at(self, *, video: str = "", cell: str = "") -> NonFiniteOutput:
        """Return the error with the video or the cell that it occurred in, unless it names one already."""
        place = {"video": self._video or video, "cell": self._cell or cell}
        return NonFiniteOutput(self._message, fault=self.fault, rows=self.rows, **place)
