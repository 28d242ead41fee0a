"""Execution of risky functions in a child process, so that a crash or a hang costs one item only."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from jostle.errors import JostleError, MediaError

T = TypeVar("T")

_GRACE_S = 5.0  # for a process that has replied or crashed to exit


def run_guarded(function: Callable[..., T], *args: Any, timeout_s: float) -> T:
    """Return `function(*args)`, computed in a child process.

    The child is spawned, because a forked copy of a process with threads can hang. The function must therefore be
    importable by name, and its arguments and result must be picklable. A JostleError of the child is raised here.

    Args:
        function: a function at the top level of a module.
        *args: its arguments.
        timeout_s: seconds after which the child is killed.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_run_child, args=(there, function, args), daemon=True)
    name = getattr(function, "__name__", "function")
    try:
        child.start()
        there.close()  # so that the pipe ends when the child dies
        if not here.poll(timeout_s):
            raise MediaError(f"{name}: no answer in {timeout_s:g} s; the file hangs the decoder", fault="F8")
        try:
            error, result = here.recv()
        except EOFError:
            child.join(_GRACE_S)
            raise MediaError(f"{name}: decoder crashed ({_describe_exit(child.exitcode)})", fault="F7") from None
        if error is not None:
            raise error
        child.join(_GRACE_S)
        answer: T = result
        return answer
    finally:
        here.close()
        if child.is_alive():
            child.kill()
        if child.pid is not None:
            child.join()
            child.close()


def _run_child(pipe: Connection, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    try:
        answer: tuple[Exception | None, Any] = (None, function(*args))
    except JostleError as error:
        answer = (_make_picklable(error), None)
    except Exception as error:
        answer = (MediaError(f"{type(error).__name__}: {error}", fault="F7"), None)
    pipe.send(answer)
    pipe.close()


def _make_picklable(error: JostleError) -> JostleError:
    """Return the error itself if it survives pickling, otherwise a MediaError with its message."""
    try:
        copy = pickle.loads(pickle.dumps(error))
    except (TypeError, AttributeError, pickle.PicklingError):
        return MediaError(str(error), fault=error.fault)
    return error if isinstance(copy, type(error)) else MediaError(str(error), fault=error.fault)


def _describe_exit(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return f"signal {-exit_code}"
    return f"exit code {exit_code}"
