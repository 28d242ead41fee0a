"""The command line: arguments, one verb, an exit code. The only file that prints or exits."""

from __future__ import annotations

import errno
import json
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import typer

from jostle import __version__, api
from jostle.errors import BadValue, JostleError

OnMissing = Literal["error", "drop", "hold"]

app = typer.Typer(
    name="jostle",
    help="Shows how badly a video model takes a knock, why, and how to train one that does not flinch.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no remarks.")]
Verbose = Annotated[int, typer.Option("--verbose", "-v", count=True, help="More remarks; -vv shows tracebacks.")]
Seed = Annotated[int, typer.Option("--seed", envvar="JOSTLE_SEED", help="Seed of every random draw.")]
Jobs = Annotated[
    int | None, typer.Option("--jobs", "-j", min=1, envvar="JOSTLE_NUM_WORKERS", help="Threads; by default one a core.")
]
SpecOption = Annotated[
    list[str] | None,
    typer.Option("--corruption", "-c", metavar="SPEC", help="[profile/]name[:severity]; several apply in order."),
]
PlacementOption = Annotated[
    str | None, typer.Option("--placement", metavar="P", help="Which frames: everywhere, centre:5%, frame:120 ...")
]
TruthOption = Annotated[
    Path | None, typer.Option("--truth", metavar="GT.json", help="Annotations, for placements that need the actions.")
]
VideoId = Annotated[
    str | None, typer.Option("--video-id", metavar="ID", help="Id of the video; by default its file name.")
]

_quiet = False
_verbosity = 0


@app.command(help="Corrupt one video: one file in, one file out.")
def corrupt(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A video file.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="OUT", help="Where to write; .mp4, .mkv or a folder.")],
    corruption: SpecOption = None,
    placement: PlacementOption = None,
    truth: TruthOption = None,
    video_id: VideoId = None,
    lossless: Annotated[bool, typer.Option("--lossless", help="Keep every pixel: FFV1, in .mkv.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse a damaged input.")] = False,
    on_missing: Annotated[OnMissing, typer.Option(help="What becomes of frames that do not decode.")] = "drop",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUT if it exists.")] = False,
    seed: Seed = 0,
    jobs: Jobs = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> None:
    _set_voice(quiet, verbose)
    if not corruption:
        raise BadValue("say what to do to the video: -c SPEC, as in -c fog:3; `jostle names corruptions` lists them")
    with _progress(f"corrupting {_shown(source.name)}") as advance:
        done = api.corrupt_file(
            source,
            corruption,
            out,
            seed=seed,
            video_id=video_id,
            placement=placement,
            truth=truth,
            lossless=lossless,
            strict=strict,
            on_missing=on_missing,
            overwrite=overwrite,
            jobs=jobs,
            progress=advance,
        )
    for warning in done.warnings:
        _remark(f"{_shown(source.name)}: {warning}")
    if as_json:
        _print_json(
            {
                "format": 1,
                "out": str(done.path),
                "frames": done.frames,
                "struck": done.struck,
                "audio": done.audio,
                "damage": [list(span) for span in done.damage],
                "warnings": list(done.warnings),
            }
        )
    else:
        _print(_shown(str(done.path)))
        _remark(f"{done.struck} of {done.frames} frames struck{'' if done.audio else ', no sound'}")


@app.command(help="Draw a contact sheet: corruptions by severities.")
def sheet(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A video file.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="sheet.png", help="Where to write the PNG.")],
    corruption: SpecOption = None,
    placement: PlacementOption = None,
    truth: TruthOption = None,
    video_id: VideoId = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> None:
    _set_voice(quiet, verbose)
    with _progress("drawing") as advance:
        path = api.sheet(
            source,
            out,
            corruption,
            seed=seed,
            video_id=video_id,
            placement=placement,
            truth=truth,
            progress=advance,
        )
    if as_json:
        _print_json({"format": 1, "out": str(path)})
    else:
        _print(_shown(str(path)))


@app.command(help="List names: corruptions, profiles or placements.")
def names(
    kind: Annotated[str, typer.Argument(metavar="KIND", help="corruptions, profiles or placements.")],
    profile: Annotated[str | None, typer.Option(help="The corruptions of this profile.")] = None,
    level: Annotated[str | None, typer.Option(help="Only this level: frame, clip, codec or time.")] = None,
    as_json: Json = False,
    verbose: Verbose = 0,
) -> None:
    _set_voice(False, verbose)
    listed = api.names(kind, profile=profile, level=level)
    if as_json:
        _print_json(listed)
    else:
        for name in listed:
            _print(name)


@app.command(help="Say what is installed and working, and test that severity 0 is the clean video.")
def doctor(as_json: Json = False, verbose: Verbose = 0) -> None:
    _set_voice(False, verbose)
    health = api.doctor()
    if as_json:
        _print_json(health.to_dict())
    else:
        for line in health.lines():
            _print(line)
    if not health.well:
        raise typer.Exit(5)


@app.command(help="Corrupt a film made on the spot every way there is, and write a page that shows it.")
def demo(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder to write to.")] = Path("demo"),
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> None:
    _set_voice(quiet, verbose)
    with _progress("knocking the film about") as advance:
        page = api.demo(out, seed=seed, progress=advance)
    if as_json:
        _print_json({"format": 1, "page": str(page)})
    else:
        _print(_shown(str(page)))


def _version(wanted: bool) -> None:
    if wanted:
        _print(f"jostle {__version__}")
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
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a plain terminal gets escapes, never a crash
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    sys.exit(_run())


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
        _say("stopped; nothing half-written is left, run the same command again")
        return 128 + int(stopped.args[0])
    except MemoryError as error:
        return _failed(error, "out of memory; use a smaller video or fewer --jobs", 5, "F69")
    except OSError as error:
        resource = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE)
        what = f"{_shown(str(error.filename or 'input'))}: {error.strerror or error}"
        return _failed(error, what, 5 if resource else 3, "F66" if resource else "")
    except Exception as error:
        return _failed(error, f"this is a bug of ours, please report it ({type(error).__name__}: {error})", 1, "")


def _failed(error: BaseException, message: str, code: int, fault: str) -> int:
    if _verbosity > 1:
        traceback.print_exception(error)
    _say(f"error{f'[{fault}]' if fault else ''}: {message}")
    for note in getattr(error, "__notes__", ()):
        _say(f"  {note}")
    return code


def _set_voice(quiet: bool, verbose: int) -> None:
    global _quiet, _verbosity
    _quiet, _verbosity = quiet, verbose


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")


def _print_json(value: Any) -> None:
    _print(json.dumps(value, indent=2))


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")


def _remark(text: str) -> None:
    if not _quiet:
        _say(text)


def _shown(name: str) -> str:
    """A name as it may be printed: line ends and other control characters escaped."""
    return "".join(c if c.isprintable() or c in " " else c.encode("unicode_escape").decode() for c in name)


@contextmanager
def _progress(what: str) -> Iterator[Any]:
    """A bar on a terminal, a line now and then elsewhere; it only appears on work of more than two seconds."""
    if _quiet:
        yield None
        return
    from jostle.progress import Meter

    with Meter(what, sys.stderr) as meter:
        yield meter.advance
