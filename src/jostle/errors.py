"""The one exception family: every message says what happened, where, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

LISTED = 12  # names shown when nothing comes close
LONGEST = 4000  # characters of a message: it may quote a file, and the file may hold a name of any length
_ENDING = 400  # of those, the last, which say what to do


class JostleError(Exception):
    """The base of every error jostle raises on purpose.

    Attributes:
        fault: number of the case in the fault matrix (`F4`), or an empty string.
        exit_code: what the command line returns for it.
    """

    exit_code = 3

    def __init__(self, message: str, *, fault: str = "") -> None:
        if len(message) > LONGEST:
            message = f"{message[: LONGEST - _ENDING]} [...] {message[-_ENDING:]}"
        super().__init__(message)
        self.fault = fault


class UnknownName(JostleError, LookupError):
    """A name that no registry holds.

    Args:
        reason: what else may be the reason, to end the message with.
    """

    exit_code = 2

    def __init__(self, kind: str, name: str, known: Iterable[str], reason: str = "") -> None:
        names = sorted(known)
        close = difflib.get_close_matches(name, names, n=3, cutoff=0.6)
        if close:
            hint = f"did you mean {' or '.join(close)}?"
        else:
            more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
            hint = f"known: {', '.join(names[:LISTED]) or 'none'}{more}"
        super().__init__(f"no {kind} is called {name!r}: {hint}{reason}")
        self.name = name
        self.close = tuple(close)


class BadValue(JostleError, ValueError):
    """An argument outside what it may be."""

    exit_code = 2


class DataError(JostleError):
    """Annotations, predictions or a folder of data that cannot be used."""


class Incomparable(DataError):
    """Results that must not stand side by side: of other benchmarks, or measured by another ground truth."""

    exit_code = 6


class Tampered(DataError):
    """A file with a checksum that is not as jostle wrote it."""

    exit_code = 6


class MediaError(JostleError):
    """A video that cannot be read, or one that cannot be written."""


class EncoderMissing(MediaError):
    """The installed FFmpeg lacks an encoder that was asked for."""

    exit_code = 5


class SourceChanged(MediaError):
    """The input was altered while it was being read, so the result would describe neither state."""

    exit_code = 6


class ResourceError(JostleError):
    """The disk, the memory or the device gave out."""

    exit_code = 5


class MissingExtra(JostleError, ImportError):
    """A feature whose optional packages are not installed."""

    exit_code = 2

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs packages that are not installed: pip install 'jostle[{extra}]'")


class CheckpointError(JostleError):
    """Weights that cannot be loaded into the network they were given to."""
