"""The verb that writes benchmarks to disk: `build`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from jostle import api
from jostle.cli import voice
from jostle.cli.app import app
from jostle.cli.options import (
    BenchmarkName,
    Cells,
    DataFolder,
    DatasetName,
    ImageRate,
    Json,
    Quiet,
    Seed,
    SubsetName,
    Verbose,
    Workers,
)


@app.command(help="Write the corrupted videos of a benchmark; what is there is kept.")
def build(
    benchmark: BenchmarkName,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The root of the written set.")],
    data: DataFolder = None,
    dataset: DatasetName = None,
    subset: SubsetName = None,
    fps: ImageRate = None,
    cells: Cells = None,
    lossless: Annotated[bool, typer.Option("--lossless", help="Keep every pixel: FFV1 in .mkv, or PNG.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be written, and write nothing.")] = False,
    seed: Seed = 0,
    jobs: Workers = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> None:
    voice.speak(quiet, verbose)
    asked: dict[str, Any] = {
        "data": data,
        "dataset": dataset,
        "subset": subset,
        "fps": fps,
        "cells": None if cells is None else cells.split(","),
        "seed": seed,
        "lossless": lossless,
    }
    if dry_run:
        told = api.plan_build(benchmark, **asked)
        if as_json:
            voice.show_json(told)
        else:
            amount = f"{told['files']} files, {len(told['cells'])} cells of {told['videos']} videos"
            voice.show(f"{amount}; about {told['bytes'] / 1e9:.2f} GB")
        return
    with voice.progress(f"building {benchmark}") as advance:
        done = api.build(benchmark, out=out, jobs=jobs, progress=advance, **asked)
    if as_json:
        voice.show_json(done.to_dict())
    else:
        voice.show(voice.shown(str(done.folder)))
        voice.remark(str(done.files))
    for name, why in done.failures.items():
        voice.say(f"{voice.shown(name)}: set aside: {why}")
    if done.failures:
        raise typer.Exit(4)
