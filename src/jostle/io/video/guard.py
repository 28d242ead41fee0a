"""Doing something risky in a process of its own, so that a crash or a hang costs one item and no more."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from jostle.errors import JostleError, MediaError

T = TypeVar("T")

_GRACE_S = 5.0  # for a process that has given its answer, or its last breath, to be gone


def guarded(function: Callable[..., T], *args: Any, timeout_s: float) -> T:
    """What `function(*args)` returns, computed in a child process.

    The child starts afresh ("spawn"): a forked copy of a process that runs threads can hang at once. The
    function must therefore be importable by name, and its arguments and result must be picklable. An error
    of ours that the child raises is raised here.

    Args:
        function: a function at the top level of a module.
        *args: its arguments.
        timeout_s: seconds after which the child is killed.
    """
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    child = context.Process(target=_answer, args=(there, function, args), daemon=True)
    name = getattr(function, "__name__", "function")
    try:
        child.start()
        there.close()  # so that a dead child reads as the end of the pipe
        if not here.poll(timeout_s):
            raise MediaError(f"{name}: no answer in {timeout_s:g} s; the file hangs the decoder", fault="F8")
        try:
            error, result = here.recv()
        except EOFError:
            child.join(_GRACE_S)
            raise MediaError(f"{name}: decoder crashed ({_cause(child.exitcode)})", fault="F7") from None
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


def _answer(pipe: Connection, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    try:
        answer: tuple[Exception | None, Any] = (None, function(*args))
    except JostleError as error:
        answer = (_portable(error), None)
    except Exception as error:
        answer = (MediaError(f"{type(error).__name__}: {error}", fault="F7"), None)
    pipe.send(answer)
    pipe.close()


def _portable(error: JostleError) -> JostleError:
    """The error itself if it survives pickling, otherwise one that says the same."""
    try:
        copy = pickle.loads(pickle.dumps(error))
    except (TypeError, AttributeError, pickle.PicklingError):
        return MediaError(str(error), fault=error.fault)
    return error if isinstance(copy, type(error)) else MediaError(str(error), fault=error.fault)


def _cause(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return f"signal {-exit_code}"
    return f"exit code {exit_code}"
