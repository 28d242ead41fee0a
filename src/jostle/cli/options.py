"""Options that several verbs share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from jostle import api
from jostle.cli import console
from jostle.core.plugins import is_import_path

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no remarks.")]
Verbose = Annotated[int, typer.Option("--verbose", "-v", count=True, help="More remarks; -vv shows tracebacks.")]
Seed = Annotated[int, typer.Option("--seed", envvar="JOSTLE_SEED", help="Seed of every random draw.")]
Jobs = Annotated[
    int | None, typer.Option("--jobs", "-j", min=1, envvar="JOSTLE_NUM_WORKERS", help="Threads; by default one a core.")
]
Workers = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=1, envvar="JOSTLE_NUM_WORKERS", help="Videos at once; by default one a core."),
]
ModelProcesses = Annotated[
    int | None,
    typer.Option(
        "--model-processes",
        metavar="N",
        min=0,
        help="Processes that hold the model; by default one a GPU, on a CPU 0, where every worker has it.",
    ),
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
WindowRule = Annotated[
    Literal["all", "released", "released-json"],
    typer.Option("--rule", help="Which windows: all full ones, or as many as THUMOS14-C's programs make."),
]
ReproducedBugs = Annotated[
    list[str] | None,
    typer.Option(
        "--reproduce-bug",
        metavar="FAULT",
        help="Repeat a fault of THUMOS14-C's programs: skipped-window, early-row; several apply.",
    ),
]
MendBy = Annotated[
    str | None,
    typer.Option(
        "--mend",
        metavar="BY",
        help="Replace what damaged frames touch by what lies around; found by jostle, or by your own weights.",
    ),
]
Device = Annotated[
    Literal["auto", "cpu", "cuda"],
    typer.Option("--device", help="Where networks run; auto: a GPU if there is one."),
]
BenchmarkName = Annotated[
    str, typer.Argument(metavar="BENCHMARK", help="See `jostle names benchmarks`; or a .toml file.")
]
DatasetName = Annotated[
    str | None,
    typer.Option(
        "--dataset", metavar="NAME", help="Put the recipe on another data set: `jostle names datasets`, or folder."
    ),
]
SubsetName = Annotated[
    str | None, typer.Option("--subset", metavar="S", help="Another subset than the recipe's; default: the data set's.")
]
ImageRate = Annotated[
    float | None, typer.Option("--fps", help="Rate of folders of images, where nothing else says it; default: 30.")
]
DataFolder = Annotated[Path | None, typer.Option("--data", metavar="DIR", help="Folder with annotations and videos.")]
Cells = Annotated[
    str | None,
    typer.Option("--cells", metavar="SPEC,...", help="Only these; a corruption, a cell, group:NAME or all."),
]


def fetch(kind: str, name: str | None, weights: str | None) -> None:
    """Download weights into the cache if the user asked for that by name."""
    from jostle.models.weights.shipped.sources import is_fetched

    if name is None or is_import_path(name) or not is_fetched(weights) or weights is None:
        return
    if console.quiet():
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # the hub's library draws its own
    with console.progress(f"fetching weights of {name}, MiB") as advance:
        api.fetch_weights(kind, name, weights, progress=advance)
