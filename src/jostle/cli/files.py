"""The verbs of files on disk: `build`, `generate` and `verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from jostle import api
from jostle.cli import console
from jostle.cli.app import (
    BenchmarkName,
    Cells,
    DataFolder,
    DatasetName,
    ImageRate,
    Json,
    Seed,
    SubsetName,
    Workers,
    app,
)
from jostle.core.formatting import escape
from jostle.errors import BadValue


@app.command(help="Write the corrupted videos of a benchmark; existing ones are kept.")
def build(
    benchmark: BenchmarkName,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Root folder of the corrupted data set.")],
    data: DataFolder = None,
    dataset: DatasetName = None,
    subset: SubsetName = None,
    fps: ImageRate = None,
    cells: Cells = None,
    lossless: Annotated[bool, typer.Option("--lossless", help="Keep every pixel: FFV1 in .mkv, or PNG.")] = False,
    layout: Annotated[
        list[str] | None,
        typer.Option(
            "--layout",
            metavar="NAME",
            help=(
                "Also write a layout for other programs: hub (metadata.jsonl and a card), webdataset (tar"
                " files) or croissant (metadata); may be repeated."
            ),
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be written, and write nothing.")] = False,
    seed: Seed = 0,
    jobs: Workers = None,
    as_json: Json = False,
) -> None:
    options: dict[str, Any] = {
        "data": data,
        "dataset": dataset,
        "subset": subset,
        "fps": fps,
        "cells": None if cells is None else cells.split(","),
        "seed": seed,
        "lossless": lossless,
    }
    if dry_run:
        console.give(api.plan_build(benchmark, **options), as_json)
        return
    with console.progress(f"building {benchmark}") as advance:
        done = api.build(benchmark, out=out, layouts=layout or (), jobs=jobs, progress=advance, **options)
    console.give(done, as_json)
    for name, why in done.failures.items():
        console.say(f"{escape(name)}: set aside: {why}")
    if done.failures:
        raise typer.Exit(4)


@app.command(help="Generate the files of a data set, verify them, and replace damaged ones.")
def generate(
    name: Annotated[str, typer.Argument(metavar="DATASET", help="Name of a data set (`jostle names datasets`).")],
    subset: Annotated[
        list[str] | None, typer.Option("--subset", metavar="S", help="Subset to generate; may be repeated.")
    ] = None,
    root: Annotated[
        Path | None,
        typer.Option("--root", metavar="DIR", help="Folder of data sets; default: $JOSTLE_CACHE or ~/.cache/jostle."),
    ] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Compare every file with its hash.")] = False,
    seed: Seed = 0,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", "-j", min=1, envvar="JOSTLE_NUM_WORKERS", help="Number of processes; default: one per core."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    from jostle.datasets.dataset import datasets

    kind = datasets[name]
    if kind.on_disk:
        raise BadValue(f"{name} is recorded, not drawn; docs/how-to/get-the-data.md says where it comes from")
    for one in subset or ():
        kind.check_subset(one)
    folders = []
    for part in dict.fromkeys(subset or kind.subsets):
        with console.progress(f"{name} {part}") as advance:
            done = api.load_dataset(name, part, seed=seed, root=root, jobs=jobs, verify=verify, progress=advance)
        console.remark(f"{part}: {len(done.videos)} videos; {done.files}")
        folders.append(done)
    if as_json:
        parts = [
            {
                "subset": one.subset,
                "folder": str(one.folder),
                "videos": len(one.videos),
                "instances": len(one.truth),
                **vars(one.files),
            }
            for one in folders
        ]
        console.show_json({"format": 1, "dataset": name, "seed": seed, "subsets": parts})
        return
    for folder in dict.fromkeys(str(one.folder) for one in folders):
        console.show(escape(folder))


@app.command(help="Check a run, written copies or a data set: checksums, coverage, completeness.")
def verify(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder of a run, of a corrupted data set, or of a data set.")
    ],
    dataset: Annotated[
        str | None, typer.Option("--dataset", metavar="NAME", help="Name of the data set (`jostle names datasets`).")
    ] = None,
    subset: Annotated[str | None, typer.Option("--subset", metavar="S", help="Subset of the data set.")] = None,
    as_json: Json = False,
) -> None:
    with console.progress(f"checking {folder.name}") as advance:
        result = api.verify(folder, dataset=dataset, subset=subset, progress=advance)
    console.give(result, as_json)
    if result.altered:
        raise typer.Exit(6)
    if result.lacking:
        raise typer.Exit(4)
