"""The verbs that look around: `names`, `doctor`, `demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jostle import api
from jostle.cli import voice
from jostle.cli.app import app
from jostle.cli.options import Json, Quiet, Seed, Verbose


@app.command(help="List what there is of a kind.")
def names(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help="corruptions, profiles, placements, protocols, metrics, formats, styles, detectors or extractors.",
        ),
    ],
    profile: Annotated[str | None, typer.Option(help="The corruptions of this profile.")] = None,
    level: Annotated[str | None, typer.Option(help="Only this level: frame, clip, codec or time.")] = None,
    as_json: Json = False,
    verbose: Verbose = 0,
) -> None:
    voice.speak(False, verbose)
    listed = api.names(kind, profile=profile, level=level)
    if as_json:
        voice.show_json(listed)
    else:
        for name in listed:
            voice.show(name)


@app.command(help="Say what is installed and working, and test that severity 0 is the clean video.")
def doctor(as_json: Json = False, verbose: Verbose = 0) -> None:
    voice.speak(False, verbose)
    health = api.doctor()
    if as_json:
        voice.show_json(health.to_dict())
    else:
        for line in health.lines():
            voice.show(line)
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
    voice.speak(quiet, verbose)
    with voice.progress("knocking the film about") as advance:
        page = api.demo(out, seed=seed, progress=advance)
    if as_json:
        voice.show_json({"format": 1, "page": str(page)})
    else:
        voice.show(voice.shown(str(page)))
