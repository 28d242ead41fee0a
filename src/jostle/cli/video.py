"""The verbs that corrupt, inspect and mend video: `corrupt`, `sheet`, `inspect`, `mend`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from jostle import api
from jostle.cli import console
from jostle.cli.app import (
    Device,
    ImageRate,
    Jobs,
    Json,
    PlacementOption,
    Seed,
    SpecOption,
    TruthOption,
    VideoId,
    Workers,
    app,
)
from jostle.core.formatting import escape
from jostle.core.results import Written
from jostle.errors import BadValue
from jostle.io.files.atomic import refuse_output_in

OnMissing = Literal["error", "drop", "hold"]


@app.command(help="Corrupt a video: a file or a folder of images.")
def corrupt(
    source: Annotated[Path, typer.Argument(metavar="IN", help="Video file, or folder of images.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="OUT", help="Output: .mp4, .mkv or a folder.")],
    corruption: SpecOption = None,
    placement: PlacementOption = None,
    truth: TruthOption = None,
    video_id: VideoId = None,
    lossless: Annotated[bool, typer.Option("--lossless", help="Keep every pixel: FFV1 in .mkv, or PNG.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse a damaged input.")] = False,
    on_missing: Annotated[OnMissing, typer.Option(help="Handling of frames that cannot be decoded.")] = "drop",
    fps: ImageRate = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUT if it exists.")] = False,
    seed: Seed = 0,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    if not corruption:
        raise BadValue("say what to do to the video: -c SPEC, as in -c fog:3; `jostle names corruptions` lists them")
    with console.progress(f"corrupting {escape(source.name)}") as advance:
        done = api.corrupt_file(
            source,
            corruption,
            out,
            seed=seed,
            video_id=video_id,
            placement=placement,
            truth=truth,
            lossless=lossless,
            strict=strict,
            on_missing=on_missing,
            fps=fps,
            overwrite=overwrite,
            jobs=jobs,
            progress=advance,
        )
    console.give(done, as_json)


@app.command(help="Draw a contact sheet: corruptions by severities.")
def sheet(
    source: Annotated[Path, typer.Argument(metavar="IN", help="Video file, or folder of images.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="sheet.png", help="PNG file to write.")],
    corruption: SpecOption = None,
    placement: PlacementOption = None,
    truth: TruthOption = None,
    video_id: VideoId = None,
    fps: ImageRate = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    with console.progress("drawing") as advance:
        api.sheet(
            source,
            out,
            corruption,
            seed=seed,
            video_id=video_id,
            placement=placement,
            truth=truth,
            fps=fps,
            progress=advance,
        )
    console.give(Written({"out": out}, (out,)), as_json)


PICTURES = 12  # in the strip
InspectorName = Annotated[
    str, typer.Option("--inspector", metavar="F", help="Inspector: jostle, or weights of `jostle train`.")
]
Threshold = Annotated[
    float | None,
    typer.Option("--threshold", min=0, max=1, help="Least probability of damage; default: the inspector's."),
]


@app.command(help="Find the damaged frames of a video: black, blurred, covered, broken, overexposed ...")
def inspect(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="VIDEO", help="Video file, or folder of images; with --csv a folder of videos, or a .txt list."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Draw a strip: .png, .pdf or .svg; with --csv a .html page."),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option("--csv", metavar="FILE", help="Inspect a collection, and write a row per video."),
    ] = None,
    inspector: InspectorName = "jostle",
    causal: Annotated[bool, typer.Option("--causal", help="Use past frames only, as in live use.")] = False,
    threshold: Threshold = None,
    fps: ImageRate = None,
    device: Device = "auto",
    jobs: Workers = None,
    as_json: Json = False,
) -> None:
    if table is not None:
        if causal or threshold is not None:
            raise BadValue("--causal and --threshold are for a single video; leave them out with --csv")
        _inspect_collection(source, table, out, inspector, jobs, as_json)
        return
    if out is not None:
        refuse_output_in(source, out)
    with console.progress(f"inspecting {escape(source.name)}") as advance:
        inspection = api.inspection(
            source,
            inspector=inspector,
            causal=causal,
            threshold=threshold,
            device=device,
            fps=fps,
            pictures=0 if out is None else PICTURES,
            progress=advance,
        )
    if out is not None:
        api.draw_inspection(inspection, out, title=source.name)
    console.give(replace(inspection, out=out), as_json)


def _inspect_collection(
    source: Path, table: Path, page: Path | None, inspector: str, jobs: int | None, as_json: bool
) -> None:
    with console.progress("inspecting videos") as advance:
        done = api.inspect_collection(source, table, page=page, inspector=inspector, jobs=jobs, progress=advance)
    console.give(done, as_json)
    if any(one.error for one in done.files):
        raise typer.Exit(4)


@app.command(help="Replace the damaged frames of a video by the intact ones around them. Times and sound are kept.")
def mend(
    source: Annotated[Path, typer.Argument(metavar="IN", help="Video file, or folder of images.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="OUT", help="Output: .mp4, .mkv or a folder.")],
    how: Annotated[
        Literal["hold", "blend", "motion"],
        typer.Option("--how", help="Hold the last intact frame, blend to the next, or follow the motion between them."),
    ] = "blend",
    inspector: InspectorName = "jostle",
    threshold: Threshold = None,
    lossless: Annotated[bool, typer.Option("--lossless", help="Keep every pixel: FFV1 in .mkv, or PNG.")] = False,
    fps: ImageRate = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUT if it exists.")] = False,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    with console.progress(f"mending {escape(source.name)}") as advance:
        done = api.mend_file(
            source,
            out,
            how=how,
            inspector=inspector,
            threshold=threshold,
            device=device,
            lossless=lossless,
            fps=fps,
            overwrite=overwrite,
            progress=advance,
        )
    console.give(done, as_json)
