"""The verbs that corrupt video: `corrupt`, `sheet`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from jostle import api
from jostle.cli import voice
from jostle.cli.app import app
from jostle.cli.options import (
    ImageRate,
    Jobs,
    Json,
    PlacementOption,
    Quiet,
    Seed,
    SpecOption,
    TruthOption,
    Verbose,
    VideoId,
)
from jostle.errors import BadValue

OnMissing = Literal["error", "drop", "hold"]


@app.command(help="Corrupt one video: a file or a folder of images in, one out.")
def corrupt(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A video file, or a folder of images.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="OUT", help="Where to write; .mp4, .mkv or a folder.")],
    corruption: SpecOption = None,
    placement: PlacementOption = None,
    truth: TruthOption = None,
    video_id: VideoId = None,
    lossless: Annotated[bool, typer.Option("--lossless", help="Keep every pixel: FFV1 in .mkv, or PNG.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse a damaged input.")] = False,
    on_missing: Annotated[OnMissing, typer.Option(help="What becomes of frames that cannot be had.")] = "drop",
    fps: ImageRate = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUT if it exists.")] = False,
    seed: Seed = 0,
    jobs: Jobs = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> None:
    voice.speak(quiet, verbose)
    if not corruption:
        raise BadValue("say what to do to the video: -c SPEC, as in -c fog:3; `jostle names corruptions` lists them")
    with voice.progress(f"corrupting {voice.shown(source.name)}") as advance:
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
    for warning in done.warnings:
        voice.remark(f"{voice.shown(source.name)}: {warning}")
    if as_json:
        voice.show_json(
            {
                "format": 1,
                "out": str(done.path),
                "frames": done.frames,
                "struck": done.struck,
                "audio": done.audio,
                "damage": [list(span) for span in done.damage],
                "warnings": list(done.warnings),
            }
        )
    else:
        voice.show(voice.shown(str(done.path)))
        voice.remark(f"{done.struck} of {done.frames} frames struck{'' if done.audio else ', no sound'}")


@app.command(help="Draw a contact sheet: corruptions by severities.")
def sheet(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A video file, or a folder of images.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="sheet.png", help="Where to write the PNG.")],
    corruption: SpecOption = None,
    placement: PlacementOption = None,
    truth: TruthOption = None,
    video_id: VideoId = None,
    fps: ImageRate = None,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> None:
    voice.speak(quiet, verbose)
    with voice.progress("drawing") as advance:
        path = api.sheet(
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
    if as_json:
        voice.show_json({"format": 1, "out": str(path)})
    else:
        voice.show(voice.shown(str(path)))
