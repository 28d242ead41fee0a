"""Work, items, results and errors as bytes, on their way to another process and back."""

from __future__ import annotations

import io
import pickle
import threading
import traceback
from collections.abc import Callable
from typing import Any

from jostle.errors import BadValue, JostleError


class _Packer(pickle.Pickler):
    """Errors of ours travel as they are, whatever their constructors ask for."""

    def reducer_override(self, thing: object) -> Any:
        if isinstance(thing, JostleError):
            return _rebuilt, (type(thing), thing.args, vars(thing))
        return NotImplemented


def _rebuilt(kind: type[JostleError], args: tuple[Any, ...], state: dict[str, Any]) -> JostleError:
    error = kind.__new__(kind, *args)
    vars(error).update(state)
    return error


def _bytes_of(thing: object) -> bytes:
    buffer = io.BytesIO()
    _Packer(buffer, pickle.HIGHEST_PROTOCOL).dump(thing)
    return buffer.getvalue()


def packed(thing: object, instead: str) -> bytes:
    """A thing ready to travel.

    Args:
        instead: what to do about one that cannot, in words that end a message.

    Raises:
        BadValue: if it cannot.
    """
    try:
        return _bytes_of(thing)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise BadValue(f"this cannot go to another process ({error}); {instead}") from None


def unpacked(data: bytes, instead: str) -> Any:
    """A thing that has arrived.

    Raises:
        BadValue: if the code it needs is not here.
    """
    try:
        return pickle.loads(data)
    except (AttributeError, ImportError) as error:
        raise BadValue(
            f"a worker process does not find its work ({error}); define it in a module instead of the script itself, "
            f"or {instead}"
        ) from None


def packed_apart(thing: object, instead: str) -> tuple[bytes, list[memoryview]]:
    """A thing ready to travel, and the memory of its large arrays beside it, which has not been copied.

    Raises:
        BadValue: if it cannot.
    """
    apart: list[pickle.PickleBuffer] = []
    try:
        return pickle.dumps(thing, 5, buffer_callback=apart.append), [one.raw() for one in apart]
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise BadValue(f"this cannot go to another process ({error}); {instead}") from None


def reply_of(do: Callable[[], object]) -> bytes:
    """Do something, and pack its result, or the error it ends in, for `opened`."""
    try:
        return _bytes_of((do(), None))
    except Exception as error:
        return _bytes_of((None, (_portable(error), traceback.format_exc())))


class Desk:
    """Where orders are worked off, in the process that they were sent to."""

    def __init__(self, beginning: bytes, instead: str) -> None:
        self._beginning, self._instead = beginning, instead
        self._work: Callable[[Any], Any] | None = None
        self._beginning_once = threading.Lock()  # orders may come in several threads

    def begin(self) -> None:
        """Call what was packed to begin with, once; it gives the function that does the work."""
        with self._beginning_once:
            if self._work is None:
                self._work = unpacked(self._beginning, self._instead)()

    def reply_to(self, order: bytes) -> bytes:
        """Do the work of one packed item, and pack what came of it."""
        return reply_of(lambda: self._done(order))

    def _done(self, order: bytes) -> Any:
        self.begin()
        assert self._work is not None
        return self._work(unpacked(order, self._instead))


def opened(reply: bytes) -> Any:
    """The result in a reply; an error is raised as it was raised there, and says where."""
    result, failure = pickle.loads(reply)
    if failure is not None:
        error, trace = failure
        raise error from _Elsewhere(trace)
    return result


class _Elsewhere(Exception):
    """Where in the other process an error came from."""

    def __str__(self) -> str:
        return f"in a worker process:\n{self.args[0]}"


def _portable(error: Exception) -> Exception:
    """The error as it can travel: some cannot be put together again from what they were made of."""
    try:
        pickle.loads(_bytes_of(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
