"""The verbs around benchmarks: `run`, `verify`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jostle import api
from jostle.cli import voice
from jostle.cli.app import app
from jostle.cli.options import Device, Json, Quiet, Seed, Verbose
from jostle.cli.tables import lines_of, percent

if TYPE_CHECKING:
    from jostle.evaluation.runner import Run


@app.command(help="Run a benchmark on a model; a run that was stopped goes on.")
def run(
    benchmark: Annotated[
        str, typer.Argument(metavar="BENCHMARK", help="See `jostle names benchmarks`; or a .toml file.")
    ],
    model: Annotated[str, typer.Option("--model", metavar="NAME", help="See `jostle names detectors`.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="RUN", help="The run folder.")],
    weights: Annotated[
        str | None,
        typer.Option(
            "--weights", metavar="F", help="Its weights: .safetensors, .pth.tar, .pth; of _puppets also clean, robust."
        ),
    ] = None,
    extractor: Annotated[
        str | None, typer.Option("--extractor", metavar="NAME", help="Makes features; by default as the weights say.")
    ] = None,
    extractor_weights: Annotated[
        Path | None, typer.Option("--extractor-weights", metavar="F", help="Its weights, if not those of jostle.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="DIR", help="Folder with annotations and videos.")
    ] = None,
    engine: Annotated[str, typer.Option("--engine", metavar="E", help="Where the work is done: local.")] = "local",
    cells: Annotated[
        str | None,
        typer.Option("--cells", metavar="SPEC,...", help="Only these; a corruption, a cell, group:NAME or all."),
    ] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Look at failed videos again.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
    seed: Seed = 0,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", "-j", min=1, envvar="JOSTLE_NUM_WORKERS", help="Videos at once; one a core, on a GPU one."
        ),
    ] = None,
    device: Device = "auto",
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> None:
    voice.speak(quiet, verbose)
    asked: dict[str, Any] = {
        "model": model,
        "data": data,
        "out": out,
        "weights": weights,
        "extractor": extractor,
        "extractor_weights": extractor_weights,
        "cells": None if cells is None else cells.split(","),
        "seed": seed,
        "retry_failed": retry_failed,
        "device": device,
    }
    if dry_run:
        told = api.plan(benchmark, **asked).to_dict()
        if as_json:
            voice.show_json(told)
        else:
            voice.show(
                f"{told['videos']} videos, {told['frames']} frames; {len(told['cells'])} cells, {told['looks']} looks; "
                f"{len(told['failed'])} videos failed before"
            )
        return
    with voice.progress(f"running {benchmark}") as advance:
        done = api.run(benchmark, engine=engine, jobs=jobs, progress=advance, **asked)
    _show(done, as_json)
    for failure in done.failures:
        voice.say(f"{voice.shown(failure['video'])}: set aside: {failure['message']}")
    if done.failures:
        raise typer.Exit(4)


def _show(done: Run, as_json: bool) -> None:
    scores = done.scores
    if as_json:
        voice.show_json(scores)
        return
    rows = [["cell", scores["metric"], "of clean"], ["clean", percent(scores["clean"]), ""]]
    for cell in [*scores["cells"], *scores["beside"]]:
        rows.append([cell["cell"], percent(cell["value"]), percent(cell.get("relative"))])
    rows.append(["mean corrupted", percent(scores["mean_corrupted"]), percent(scores["relative_robustness"])])
    for line in lines_of(rows):
        voice.show(line)
    counted = scores["counted"]
    if counted["cells"] < counted["of"]:
        voice.remark(f"the means are over {counted['cells']} of the benchmark's {counted['of']} cells")
    for cell in scores["cells"][:1]:
        if cell["videos"] < cell["of"]:
            voice.remark(f"scored on {cell['videos']} of {cell['of']} videos")
    windows = f"{done.clean.joined} clean windows, {done.cells.joined} more for the cells"
    voice.remark(f"{voice.shown(str(done.folder))}: {windows}")


@app.command(help="Check a run folder: checksums, coverage, completeness.")
def verify(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="What `jostle run` wrote.")],
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> None:
    voice.speak(quiet, verbose)
    found = api.verify(folder)
    if as_json:
        voice.show_json(found.to_dict())
    else:
        voice.show(f"{len(found.cells)} cells, {found.videos} of {found.of} videos")
    for line in (*found.altered, *found.lacking):
        voice.say(voice.shown(line))
    if found.altered:
        raise typer.Exit(6)
    if found.lacking:
        raise typer.Exit(4)
