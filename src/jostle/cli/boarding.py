"""The verb that makes a leaderboard, and records for one: `board`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jostle import api
from jostle.cli import voice
from jostle.cli.app import app
from jostle.cli.options import Json, Quiet, Seed, Verbose
from jostle.errors import BadValue


@app.command(help="Write a static leaderboard of runs and records; with --export, the record of one run.")
def board(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="What `jostle run` wrote, and records of runs.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="The board's folder; of a record, its file."),
    ] = None,
    export: Annotated[
        bool, typer.Option("--export", help="Write the record of one run instead, a few kilobytes to send in.")
    ] = False,
    partial: Annotated[
        bool, typer.Option("--partial", help="With --export: also of a run that lacks videos or cells.")
    ] = False,
    title: Annotated[str, typer.Option("--title", metavar="TEXT", help="The board's heading.")] = "Leaderboard",
    draws: Annotated[int, typer.Option("--bootstrap", min=0, metavar="N", help="Draws for the intervals.")] = 1000,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> None:
    voice.speak(quiet, verbose)
    if export:
        if len(runs) > 1:
            raise BadValue("--export writes the record of one run; give one")
        target = out or Path(f"{runs[0].resolve().name}.record.json")
        with voice.progress("measuring") as advance:
            written = api.export_run(runs[0], target, partial=partial, draws=draws, seed=seed, progress=advance)
        _tell("record", written, as_json)
        voice.remark(f"{written.stat().st_size / 1e3:.1f} kB; `jostle board` takes it where it takes a run folder")
        return
    if out is None:
        raise BadValue("say where the board goes: -o DIR")
    if partial:
        raise BadValue("--partial goes with --export; a board takes partial runs and marks them")
    with voice.progress("reading runs") as advance:
        written = api.board(runs, out, title=title, draws=draws, seed=seed, progress=advance)
    _tell("index", written, as_json)
    voice.remark("open it in a browser, or put the folder on a web server; it needs nothing else")


def _tell(what: str, written: Path, as_json: bool) -> None:
    if as_json:
        voice.show_json({"format": 1, what: str(written)})
    else:
        voice.show(voice.shown(str(written)))
