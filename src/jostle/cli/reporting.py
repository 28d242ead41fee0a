"""The verb that shows what runs say: `report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jostle import api
from jostle.cli import voice
from jostle.cli.app import app
from jostle.cli.options import Json, Quiet, Seed, Verbose


@app.command(help="Write one self-contained page about runs of one benchmark.")
def report(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="What `jostle run` wrote; the first is the base.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="HTML", help="The page.")] = Path("report.html"),
    csv: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Also every cell, as a table.")] = None,
    latex: Annotated[
        Path | None, typer.Option("--latex", metavar="DIR", help="Also tables in the layouts of the papers.")
    ] = None,
    latex_intervals: Annotated[
        bool, typer.Option("--latex-intervals", help="Set intervals behind the numbers of these tables.")
    ] = False,
    draws: Annotated[int, typer.Option("--bootstrap", min=0, metavar="N", help="Draws for the intervals.")] = 1000,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> None:
    voice.speak(quiet, verbose)
    with voice.progress("writing the report") as advance:
        written = api.report(
            runs,
            out,
            csv=csv,
            latex=latex,
            latex_intervals=latex_intervals,
            draws=draws,
            seed=seed,
            progress=advance,
        )
    size = written.stat().st_size
    if as_json:
        beside = {"csv": csv, "latex": latex}
        told = {name: None if path is None else str(path) for name, path in beside.items()}
        voice.show_json({"format": 1, "report": str(written), "bytes": size, **told})
        return
    voice.show(voice.shown(str(written)))
    voice.remark(f"{size / 1e6:.1f} MB; open it in a browser, it needs nothing else")
