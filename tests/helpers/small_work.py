"""Small things to do in another process, in a module of their own so that worker processes find them."""

from __future__ import annotations

import ctypes
import hashlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jostle.core import compilation
from jostle.core.interruption import Stopped
from jostle.errors import MissingExtra, ResourceError, SourceChanged, UnknownName
from jostle.parallel.workers import lower_priority


class Odd(Exception):
    """An error that cannot be put together again from its arguments."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(one + two)


ERRORS: dict[str, Callable[[], Exception]] = {
    "plain": lambda: SourceChanged("changed", fault="F9"),
    "unknown": lambda: UnknownName("fruit", "peer", ["pear", "plum"]),
    "extra": lambda: MissingExtra("fruit", "salad"),
    "full": lambda: ResourceError("no room"),
    "theirs": lambda: ZeroDivisionError("by nought"),
    "file": lambda: FileNotFoundError(2, "No such file", "x.txt"),
    "odd": lambda: Odd("strange ", "thing"),
}


def load_square() -> Callable[[int], int]:
    return lambda number: number * number


def report_niceness() -> Callable[[object], int]:
    lower_priority()
    return lambda item: os.nice(0)


def report_compile_callback() -> Callable[[object], bool]:
    """Return whether a compile callback is registered."""
    return lambda _: compilation.has_compile_callback()


def report_worker() -> Callable[[object], tuple[int, int]]:
    """Return the worker of an item, and how many it had processed before."""
    done: list[object] = []

    def tell(item: object) -> tuple[int, int]:
        time.sleep(0.02)
        done.append(item)
        return os.getpid(), len(done) - 1

    return tell


def failing() -> Callable[[str], Any]:
    def fail(name: str) -> Any:
        if name in ERRORS:
            raise ERRORS[name]()
        return ERRORS[name.removeprefix("return ")]() if name.startswith("return ") else name

    return fail


def failing_to_start() -> Callable[[int], int]:
    raise SourceChanged("no weights", fault="F4")


def printing() -> Callable[[int], int]:
    print("loaded")

    def say(item: int) -> int:
        print("not a reply", flush=True)
        os.system("echo nor this; cat")  # reads what there is to read
        return item

    return say


def dying() -> Callable[[str], None]:
    def die(how: str) -> None:
        if how == "exit":
            os._exit(9)
        os.kill(os.getpid(), signal.SIGKILL)

    return die


def dying_of_some() -> Callable[[str], str]:
    die = dying()

    def work(item: str) -> str:
        if item in ("kill", "exit"):
            die(item)
        return item.upper()

    return work


def return_unpicklable() -> Callable[[int], object]:
    return lambda item: open(os.devnull)


def reversing() -> Callable[[bytes], bytes]:
    return lambda data: data[::-1]


def marking(folder: Path) -> Callable[[int], int]:
    """Leave a mark for each item that was begun."""

    def mark(item: int) -> int:
        (folder / str(item)).touch()
        return item

    return mark


def writing(folder: Path) -> Callable[[int], None]:
    """Half-written files that are removed by workers that are stopped; item 0 fails once the others are at work."""

    def write(item: int) -> None:
        if item == 0:
            while len(list(folder.iterdir())) < 1:
                time.sleep(0.005)
            raise SourceChanged("changed", fault="F9")
        path = folder / f"{item}-{os.getpid()}"
        try:
            path.touch()
            time.sleep(60)
        finally:
            time.sleep(0.1)  # a second signal comes meanwhile
            path.unlink(missing_ok=True)

    return write


def stubborn(folder: Path) -> Callable[[int], None]:
    """Does not let itself be stopped."""

    def stay(item: int) -> None:
        (folder / f"{item}").touch()
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                time.sleep(1)
            except Stopped:
                continue

    return stay


def call_for_long(folder: Path) -> Callable[[str], None]:
    """Busy in compiled code, where no Python runs: with Python's lock let go, or held so that no thread runs either."""

    def call(item: str) -> None:
        (folder / f"{item}-{os.getpid()}").touch()
        if item == "holding the lock":
            ctypes.PyDLL(None).sleep(60)
        else:
            hashlib.pbkdf2_hmac("sha256", b"", b"", 1_000_000_000)  # minutes

    return call


def lingering(folder: Path) -> Callable[[int], tuple[int, int]]:
    """Square numbers, slowly; a file says who has which in hand, until it is done."""

    def linger(number: int) -> tuple[int, int]:
        mark = folder / f"{number}-{os.getpid()}"
        mark.touch()
        time.sleep(0.3)
        mark.unlink()
        return number, number * number

    return linger


def dying_once(folder: Path) -> Callable[[int], int]:
    """Die of item 3, but only the first that meets it."""

    def die(item: int) -> int:
        mark = folder / "died"
        if item == 3 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    return die


def report_environment() -> Callable[[str], str | None]:
    return os.environ.get


class Counter:
    """Object that is loaded once and called often."""

    def __init__(self) -> None:
        self.calls = 0

    def times(self, number: int) -> tuple[int, int]:
        self.calls += 1
        return os.getpid(), number * 10


def ask_counter(counter: Counter, number: int) -> tuple[int, int]:
    return counter.times(number)


def fail_at(counter: Counter, what: str) -> None:
    raise ERRORS[what]()


def die_once_at(counter: Counter, folder: Path) -> str:
    mark = folder / "died"
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "alive"


def asking(served: Callable[..., Any]) -> Callable[[int], tuple[int, int]]:
    return lambda number: served(ask_counter, number)


def exit_program() -> Callable[[str], str]:
    """Does with an item what code of others may do: ends the program."""

    def work(item: str) -> str:
        raise {"exit": SystemExit(0), "interrupt": KeyboardInterrupt(), "other": GeneratorExit()}[item]

    return work


def leave(model: object) -> None:
    """Ask a process that holds a model to end itself."""
    raise SystemExit(0)


def losing(name: str) -> Callable[..., Any]:
    """Return a `map_unordered` whose workers die of the item whose path has this stem."""

    def map_unordered(start: Callable[[], Any], items: Any, jobs: int, *, lost: Callable[..., Any]) -> Any:
        work = start()
        for item in items:
            died = item.path.stem == name
            yield item, lost(item, ResourceError("the worker was killed")) if died else work(item)

    return map_unordered
