"""Several models side by side: what `run` shows of many, and the verb that draws frame classifiers, `scatter`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jostle import api
from jostle.cli import voice
from jostle.cli.app import app
from jostle.cli.options import Json, Quiet, Verbose
from jostle.cli.tables import between, lines_of, percent
from jostle.errors import MissingExtra

if TYPE_CHECKING:
    from jostle.api.many import Many
    from jostle.findings.stability import Stabilities


@app.command(help="Draw accuracy against pm-k of runs of frame classifiers, and show them as a table.")
def scatter(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="What `jostle run` wrote, of one benchmark.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the figure: png, pdf, svg.")],
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> None:
    voice.speak(quiet, verbose)
    found = api.stability(runs)
    written = api.draw_stability(found, out)
    if as_json:
        voice.show_json(found.to_dict() | {"figures": [str(path) for path in written]})
        return
    show_stability(found)
    voice.show(voice.shown(str(written[0])))


def show_many(done: Many, out: Path, as_json: bool) -> None:
    """What became of many models, and of frame classifiers the figure."""
    first = next(iter(done.runs.values()))
    frames = "pm_k" in first.scores["clean_more"]
    found = api.stability([run.folder for run in done.runs.values()]) if frames else None
    figures: list[Path] = []
    if found is not None:
        try:
            figures = api.draw_stability(found, out)
        except MissingExtra as error:
            voice.remark(str(error))
    if as_json:
        told = {name: run.scores for name, run in done.runs.items()}
        drawn = [str(path) for path in figures]
        voice.show_json({"format": 1, "runs": told, "failed": done.failed, "figures": drawn})
    elif found is not None:
        show_stability(found)
        for path in figures[:1]:
            voice.show(voice.shown(str(path)))
    else:
        rows = [["model", "clean", "corrupted, mean", "of clean"]]
        for name, run in done.runs.items():
            keys = ("clean", "mean_corrupted", "relative_robustness")
            rows.append([name, *(percent(run.scores[key]) for key in keys)])
        for line in lines_of(rows):
            voice.show(line)
    for name, run in done.runs.items():
        for failure in run.failures:
            voice.say(f"{voice.shown(name)}: {voice.shown(failure['video'])}: set aside: {failure['message']}")
    for name, why in done.failed.items():
        voice.say(f"{voice.shown(name)}: could not be run: {why}")


def show_stability(found: Stabilities) -> None:
    """A row a classifier."""
    rows = [["", "accuracy", "95 %", f"pm-{found.k}", "95 %", "drop"]]
    for one in found.runs:
        numbers = (percent(one.accuracy), between(one.accuracy_interval), percent(one.pm_k), between(one.pm_k_interval))
        rows.append([voice.shown(one.name), *numbers, percent(one.drop)])
    for line in lines_of(rows):
        voice.show(line)
    voice.remark(f"{found.title}, {found.anchors} anchors")
    for remark in found.apart[:1]:
        more = f" And {len(found.apart) - 1} more are so." if len(found.apart) > 1 else ""
        voice.remark(remark + more)
