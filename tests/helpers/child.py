"""Gives readers their inputs, one after the other, and says what became of each: a line before, a line after.

Started by `fuzzing.run`, in a process that may hang, crash or run out of memory. By hand it shows one input again:

    python tests/helpers/child.py 1234 1235 "json annotations"
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from helpers.mutation import mutated
from helpers.readers import READERS
from jostle.errors import JostleError

MEMORY = 2 << 30  # bytes that an input may take
ADDRESSES = 12 << 30  # beyond which nothing is given out: libraries claim some that they never touch


def inputs(reader_name: str, numbers: range, folder: Path) -> None:
    """Read inputs of a reader by their numbers, in a folder of its own."""
    reader = READERS[reader_name]
    place = folder / "place"
    place.mkdir()
    samples = reader.samples(folder)
    reader.around(place)
    contents = list(samples.values())
    for name, data in samples.items():  # they are sound, and the first takes the time of imports
        with _placed(place / name, data):
            reader.read(place / name)
    for number in numbers:
        rng = Random(f"{reader_name} {number}")
        name = rng.choice(sorted(samples))
        data = mutated(samples[name], contents, reader.mutators, rng)[: 8 << 20]
        _say({"reader": reader_name, "number": number, "name": name, "size": len(data)})
        started, outcome = time.monotonic(), "read"
        try:
            with _placed(place / name, data):
                reader.read(place / name)
        except JostleError as error:
            outcome = "refused"
            if not str(error) or len(str(error)) > 5000:
                outcome = f"a message of {len(str(error))} characters"
        except BaseException as error:
            outcome = "".join(traceback.format_exception(error)[-4:])[-1500:]
        seconds = time.monotonic() - started
        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 > MEMORY:
            outcome = "more than 2 GiB of memory"
        _say({"number": number, "seconds": round(seconds, 3), "outcome": outcome})
        if outcome == "more than 2 GiB of memory":
            sys.exit(0)  # the memory of later inputs cannot be measured any more


@contextmanager
def _placed(path: Path, data: bytes) -> Iterator[None]:
    """The file with these bytes, for as long as it is read; then what was there before."""
    before = path.read_bytes() if path.exists() else None
    path.write_bytes(data)
    try:
        yield
    finally:
        if before is None:
            path.unlink()
        else:
            path.write_bytes(before)


def _say(line: dict[str, object]) -> None:
    os.write(1, json.dumps(line).encode() + b"\n")


def main() -> None:
    """Inputs of the first reader from a number on, and of the others from 0, up to another."""
    first, last, readers = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("error", RuntimeWarning)
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    try:
        for number, reader in enumerate(readers):
            own = folder / str(number)
            own.mkdir()
            inputs(reader, range(0 if number else first, last), own)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
