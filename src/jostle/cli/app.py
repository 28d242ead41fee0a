"""The program that the verbs are put into: options that verbs share, signals, errors and exit codes."""

from __future__ import annotations

import errno
import inspect
import io
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from functools import lru_cache, wraps
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from jostle import __version__, api
from jostle.cli import console
from jostle.cli.options import ExitCode, with_flags, with_parameters
from jostle.core import compilation, plugins
from jostle.core.formatting import escape
from jostle.core.interruption import Stopped, exits_as_errors
from jostle.core.options import option, reworded
from jostle.core.plugins import is_import_path
from jostle.corruptions.options import SeedOptions
from jostle.errors import BadValue, JostleError
from jostle.parallel.options import JobOptions

# The verbs by what one wants, as the panels of the help list them.
VERBS = {
    "Try": ("demo", "doctor", "names"),
    "Corrupt and mend": ("corrupt", "sheet", "build", "inspect", "mend", "watch"),
    "Run and train": ("extract", "detect", "run", "probe", "train", "export"),
    "Score": ("eval", "diagnose", "convert", "check", "diff"),
    "Show": ("report", "board", "view"),
}
GROUP = {verb: group for group, verbs in VERBS.items() for verb in verbs}
ORDER = {verb: number for number, verb in enumerate(GROUP)}

Verb = Callable[..., Any]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no notes.")]
Verbose = Annotated[int, typer.Option("--verbose", "-v", count=True, help="Print more notes; -vv prints tracebacks.")]
Import = Annotated[
    list[str] | None,
    typer.Option(
        "--import", metavar="MODULE", help=f"Import a module of yours first, for its parts; also {plugins.VARIABLE}."
    ),
]


class Program(typer.Typer):
    """Typer application whose verbs are grouped and take `--import`, and `--quiet` and `--verbose` unless they say how.

    A verb with a parameter `verbose` of its own calls `console.speak` itself.
    """

    def command(self, name: str | None = None, **facts: Any) -> Callable[[Verb], Verb]:  # type: ignore[override]
        """Register a verb, as Typer does; files may register theirs in any order."""

        def put(verb: Verb) -> Verb:
            known = name or verb.__name__
            super(Program, self).command(known, rich_help_panel=GROUP.get(known, "More"), **facts)(
                _with_common_options(verb)
            )
            self.registered_commands.sort(key=lambda one: ORDER.get(one.name or "", len(ORDER)))
            _command.cache_clear()
            return verb

        return put


def _with_common_options(verb: Verb) -> Verb:
    """Wrap a verb so that it takes `--import MODULE`, and sets the verbosity."""
    flagged = with_flags(verb)
    own = inspect.signature(flagged).parameters
    speaks = "verbose" not in own
    common: dict[str, tuple[Any, Any]] = {"quiet": (Quiet, False), "verbose": (Verbose, 0)} if speaks else {}
    common["imports"] = (Import, None)
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in common.items()
    ]

    @wraps(verb)
    def run_verb(imports: list[str] | None = None, **named: Any) -> Any:
        if any(Path("-") in (value if isinstance(value, list) else [value]) for value in named.values()):
            raise BadValue("'-' is no file: jostle reads and writes files and folders; name one", fault="F139")
        if imports:
            plugins.import_modules(*imports)
        compilation.set_compile_callback(None if named.get("quiet") or named.get("as_json") else console.say)
        if speaks:
            console.speak(named.pop("quiet", False), named.pop("verbose", 0))
        try:
            with exits_as_errors():  # verbs end by returning or by ExitCode; a SystemExit is of a plugin or a model
                return flagged(**named)
        except ExitCode as end:
            raise typer.Exit(end.code) from None
        except BrokenPipeError as error:  # Typer takes any for that of the output, and ends in silence
            raise RuntimeError("a connection between processes ended") from error

    return with_parameters(run_verb, [*own.values(), *options])


app = Program(
    name="jostle",
    help="Measures how badly a video model takes damaged input, explains why, and helps to make a robust one.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(requested: bool) -> None:
    if requested:
        console.show(f"jostle {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> NoReturn:
    """Run the command line and exit with the code the contract gives each outcome."""
    _open_streams()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # nohup stays nohup
            signal.signal(number, _stop)
    warnings.showwarning = _warn
    try:
        code = _run()
        sys.stderr.flush()
    except Stopped as stopped:
        code = 128 + stopped.number
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for handle in (1, 2):  # for what Python flushes at its end
            os.dup2(nowhere, handle)
    sys.exit(code)


class _Output(io.TextIOWrapper):
    """Standard output or error whose reader may go, as `head` does: that ends the program as SIGPIPE would.

    The signal itself stays ignored, or it would end servers whose clients go.
    """

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except BrokenPipeError:
            raise Stopped(signal.SIGPIPE) from None

    def flush(self) -> None:
        try:
            super().flush()
        except BrokenPipeError:
            raise Stopped(signal.SIGPIPE) from None


def _open_streams() -> None:
    """Prepare the standard streams: closed ones lead nowhere, and no file that is opened later takes their place."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = getattr(sys, name)
        if stream is None:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
            stream = open(number, "w" if number else "r", closefd=False)  # noqa: SIM115
            setattr(sys, f"__{name}__", stream)  # keeps it open
            setattr(sys, name, stream)
        if number and hasattr(stream, "buffer"):
            # A plain terminal gets escapes, never a crash.
            wrapped = _Output(stream.buffer, stream.encoding, "backslashreplace", line_buffering=stream.line_buffering)
            setattr(sys, name, wrapped)


def _warn(message: Warning | str, *where: Any, **more: Any) -> None:
    """A warning as one line of ours; where in the code it was raised is nothing to a user of the command line."""
    console.remark(f"warning: {message}")


def _stop(number: int, frame: object) -> NoReturn:
    raise Stopped(number)


def _run() -> int:
    try:
        code = _call()
        sys.stdout.flush()  # while an error can still be reported
        return code
    except JostleError as error:
        return _failed(error, str(error), error.exit_code, error.fault)
    except Stopped as stopped:
        if stopped.number == signal.SIGPIPE:
            raise  # nothing reads the output any more
        console.say("stopped; nothing half-written is left, run the same command again")
        return 128 + stopped.number
    except MemoryError as error:
        return _failed(error, "out of memory; use a smaller video or fewer --jobs", 5, "F69")
    except OSError as error:
        resource = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE)
        what = f"{escape(str(error.filename or 'input'))}: {error.strerror or error}"
        return _failed(error, what, 5 if resource else 3, "F66" if resource else "")
    except Exception as error:
        if type(error).__name__ == "OutOfMemoryError":  # torch's, which is not imported here
            return _failed(error, f"out of memory on the device; use fewer --jobs or --device cpu ({error})", 5, "F69")
        return _failed(error, f"this is a bug of ours, please report it ({type(error).__name__}: {error})", 1, "")


def _call() -> int:
    """Run the verb, and return its exit code."""
    try:
        _command()()
        return 0
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 0


@lru_cache(1)
def _command() -> Callable[[], object]:
    """Read the signatures of the verbs once, however often a process runs one."""
    return typer.main.get_command(app)


def _failed(error: BaseException, message: str, code: int, fault: str) -> int:
    if console.verbosity > 1:
        traceback.print_exception(error)
    console.say(f"error{f'[{fault}]' if fault else ''}: {message}")
    for note in getattr(error, "__notes__", ()):
        console.say(f"  {note}")
    return code


Json = Annotated[bool, option("Print JSON.", flag="--json")]
DryRun = Annotated[bool, option("Print what would be done, and do nothing.", flag="--dry-run")]
Seed = Annotated[int, reworded(SeedOptions, "seed")]
Jobs = Annotated[int | None, reworded(JobOptions, "jobs", "Number of threads; default: one per core.")]
Workers = Annotated[int | None, reworded(JobOptions, "jobs")]


def fetch(kind: str, name: str | None, weights: str | None) -> None:
    """Download weights into the cache if the user asked for that by name."""
    from jostle.models.weights.sources import is_fetched

    if name is None or is_import_path(name) or not is_fetched(weights) or weights is None:
        return
    if console.quiet():
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # the hub's library draws its own
    with console.progress(f"fetching weights of {name}, MiB") as advance:
        api.fetch_weights(kind, name, weights, progress=advance)
