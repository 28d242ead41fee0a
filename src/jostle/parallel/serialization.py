"""Pickle-based serialization of tasks, results and errors that cross process boundaries."""

from __future__ import annotations

import io
import pickle
import threading
import traceback
from collections.abc import Callable
from typing import Any

from jostle.core.interruption import exits_as_errors
from jostle.errors import BadValue, JostleError


class _Pickler(pickle.Pickler):
    """Pickler that keeps jostle's own errors intact, whatever arguments their constructors take."""

    def reducer_override(self, value: object) -> Any:
        if isinstance(value, JostleError):
            return _rebuild_error, (type(value), value.args, vars(value))
        return NotImplemented


def _rebuild_error(kind: type[JostleError], args: tuple[Any, ...], state: dict[str, Any]) -> JostleError:
    error = kind.__new__(kind, *args)
    vars(error).update(state)
    return error


def _to_bytes(value: object) -> bytes:
    buffer = io.BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(value)
    return buffer.getvalue()


def dumps(value: object, hint: str) -> bytes:
    """Serialize a value for another process.

    Args:
        hint: what to do about a value that cannot be pickled; it ends the message.
    """
    try:
        return _to_bytes(value)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise BadValue(f"this cannot be sent to another process ({error}); {hint}") from None


def loads(data: bytes, hint: str) -> Any:
    """Deserialize a value that another process sent."""
    try:
        return pickle.loads(data)
    except (AttributeError, ImportError) as error:
        raise BadValue(
            f"a worker process cannot import its task ({error}); define it in a module instead of the script itself, "
            f"or {hint}"
        ) from None


def dumps_out_of_band(value: object, hint: str) -> tuple[bytes, list[memoryview]]:
    """Serialize a value, with the memory of its large arrays beside it instead of copied into it."""
    buffers: list[pickle.PickleBuffer] = []
    try:
        return pickle.dumps(value, 5, buffer_callback=buffers.append), [one.raw() for one in buffers]
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise BadValue(f"this cannot be sent to another process ({error}); {hint}") from None


def dump_reply(function: Callable[[], object]) -> bytes:
    """Call a function, and serialize its result or the exception it raised for `load_reply`.

    SystemExit and the like are exceptions as any other: a reply is due, and whoever waits for it would wait for ever.
    """
    try:
        with exits_as_errors():
            return _to_bytes((function(), None))
    except Exception as error:
        return _to_bytes((None, (_make_picklable(error), traceback.format_exc())))


class TaskHandler:
    """Executes serialized tasks in the process that they were sent to."""

    def __init__(self, factory: bytes, hint: str) -> None:
        self._factory, self._hint = factory, hint
        self._work: Callable[[Any], Any] | None = None
        self._lock = threading.Lock()  # tasks may arrive in several threads

    def begin(self) -> None:
        """Call the serialized factory once; it returns the function that does the work."""
        with self._lock:
            if self._work is None:
                self._work = loads(self._factory, self._hint)()

    def handle(self, payload: bytes) -> bytes:
        """Process one serialized item and serialize the outcome."""
        return dump_reply(lambda: self._run(payload))

    def _run(self, payload: bytes) -> Any:
        self.begin()
        assert self._work is not None
        return self._work(loads(payload, self._hint))


def load_reply(reply: bytes) -> Any:
    """Return the result in a reply, or raise its exception with the remote traceback as the cause."""
    result, failure = pickle.loads(reply)
    if failure is not None:
        error, trace = failure
        raise error from _RemoteTraceback(trace)
    return result


class _RemoteTraceback(Exception):
    """Traceback of an exception in another process."""

    def __str__(self) -> str:
        return f"in a worker process:\n{self.args[0]}"


def _make_picklable(error: Exception) -> Exception:
    """Return the exception, or a RuntimeError with its text if another process cannot unpickle it."""
    try:
        pickle.loads(_to_bytes(error))
        known = type(error).__module__ != "__main__"  # a script or notebook, which other processes do not import
    except Exception:
        known = False
    return error if known else RuntimeError(f"{type(error).__name__}: {error}")
