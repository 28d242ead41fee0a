"""The verb that checks what lies on disk: `verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jostle import api
from jostle.cli import voice
from jostle.cli.app import app
from jostle.cli.options import Json, Quiet, Verbose


@app.command(help="Check a run, written copies or a data set: checksums, coverage, completeness.")
def verify(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What `run` or `build` wrote, or a data set.")],
    dataset: Annotated[
        str | None, typer.Option("--dataset", metavar="NAME", help="Which one; see `jostle names datasets`.")
    ] = None,
    subset: Annotated[str | None, typer.Option("--subset", metavar="S", help="The part of the data set.")] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> None:
    voice.speak(quiet, verbose)
    with voice.progress(f"checking {folder.name}") as advance:
        found = api.verify(folder, dataset=dataset, subset=subset, progress=advance)
    if as_json:
        voice.show_json(found.to_dict())
    else:
        voice.show(voice.shown(found.summary))
    for line in (*found.altered, *found.lacking):
        voice.say(voice.shown(line))
    if found.altered:
        raise typer.Exit(6)
    if found.lacking:
        raise typer.Exit(4)
