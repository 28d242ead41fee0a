"""Runs the command line: signals, errors and exit codes."""

from __future__ import annotations

import errno
import signal
import sys
import traceback
import warnings
from typing import Any, NoReturn

from jostle.cli import console
from jostle.cli.app import app
from jostle.errors import JostleError


def main() -> NoReturn:
    """Run the command line and exit with the code the contract gives each outcome."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a plain terminal gets escapes, never a crash
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup stays nohup
            signal.signal(number, _stop)
    warnings.showwarning = _warn
    sys.exit(_run())


def _warn(message: Warning | str, *where: Any, **more: Any) -> None:
    """A warning as one line of ours; where in the code it was raised is nothing to a user of the command line."""
    console.remark(f"warning: {message}")


class _Stopped(BaseException):
    """A signal, raised where the program stands, so that temporary files are removed on the way out."""


def _stop(number: int, frame: object) -> NoReturn:
    raise _Stopped(number)


def _run() -> int:
    try:
        app()
        return 0
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 0
    except JostleError as error:
        return _failed(error, str(error), error.exit_code, error.fault)
    except _Stopped as stopped:
        console.say("stopped; nothing half-written is left, run the same command again")
        return 128 + int(stopped.args[0])
    except MemoryError as error:
        return _failed(error, "out of memory; use a smaller video or fewer --jobs", 5, "F69")
    except OSError as error:
        resource = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE)
        what = f"{console.escape(str(error.filename or 'input'))}: {error.strerror or error}"
        return _failed(error, what, 5 if resource else 3, "F66" if resource else "")
    except Exception as error:
        if type(error).__name__ == "OutOfMemoryError":  # torch's, which is not imported here
            return _failed(error, f"out of memory on the device; use fewer --jobs or --device cpu ({error})", 5, "F69")
        return _failed(error, f"this is a bug of ours, please report it ({type(error).__name__}: {error})", 1, "")


def _failed(error: BaseException, message: str, code: int, fault: str) -> int:
    if console.verbosity > 1:
        traceback.print_exception(error)
    console.say(f"error{f'[{fault}]' if fault else ''}: {message}")
    for note in getattr(error, "__notes__", ()):
        console.say(f"  {note}")
    return code
