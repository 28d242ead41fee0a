"""The verbs that look around: `names`, `doctor`, `demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jostle import api
from jostle.cli import voice
from jostle.cli.app import app
from jostle.cli.options import Jobs, Json, Quiet, Seed, Verbose
from jostle.cli.tables import lines_of, percent


@app.command(help="List what there is of a kind.")
def names(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="KIND",
            help="corruptions, profiles, placements, protocols, metrics, formats, styles, detectors, extractors, "
            "models, datasets or benchmarks.",
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


@app.command(help="The whole loop on films made here: corrupt them, detect, score, and a page that shows it.")
def demo(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder to write to.")] = Path("demo"),
    seed: Seed = 0,
    jobs: Jobs = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> None:
    voice.speak(quiet, verbose)
    with voice.stages() as advance:
        done = api.demo(out, seed=seed, jobs=jobs, progress=advance)
    if as_json:
        pages = {"report": str(done.report), "gallery": str(done.gallery)}
        runs = {how: str(folder) for how, folder in done.runs.items()}
        voice.show_json({"format": 1, **pages, "runs": runs, "results": done.results})
        return
    kept = list(done.results.values())
    rows = [[kept[0]["metric"], *(f"trained {how}" for how in done.results)]]
    rows.append(["clean", *(percent(one["clean"]) for one in kept)])
    for cells in zip(*(one["cells"] for one in kept), strict=True):
        rows.append([cells[0]["cell"], *(percent(cell["value"]) for cell in cells)])
    rows.append(["corrupted, mean", *(percent(one["mean_corrupted"]) for one in kept)])
    rows.append(["relative robustness", *(percent(one["relative_robustness"]) for one in kept)])
    for line in lines_of(rows):
        voice.show(line)
    where = " ".join(voice.shown(str(folder)) for folder in done.runs.values())
    voice.remark(f"every corruption there is: {voice.shown(str(done.gallery))}")
    voice.remark(f"the videos, clean and struck side by side: jostle view {where}")
    voice.remark("the report, to be opened in a browser:")
    voice.show(voice.shown(str(done.report)))
