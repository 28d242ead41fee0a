"""The verb that makes features: `extract`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from jostle import api
from jostle.cli import voice
from jostle.cli.app import app
from jostle.cli.fetching import fetch
from jostle.cli.options import (
    Device,
    ImageRate,
    Json,
    MendBy,
    ModelProcesses,
    PlacementOption,
    Quiet,
    ReleasedFaults,
    Seed,
    SpecOption,
    TruthOption,
    Verbose,
    VideoId,
    WindowRule,
    Workers,
)


@app.command(help="Make features: video in, one .npy (T, C) each out; a run that was stopped goes on.")
def extract(
    source: Annotated[
        Path, typer.Argument(metavar="IN", help="A video file or folder of images, or a folder of them.")
    ],
    extractor: Annotated[
        str, typer.Option("--extractor", metavar="NAME", help="See `jostle names extractors`, models.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for features and features.json.")],
    weights: Annotated[
        str | None, typer.Option("--weights", metavar="F", help="Its weights: a file, public or hf:ORG/NAME.")
    ] = None,
    corruption: SpecOption = None,
    placement: PlacementOption = None,
    truth: TruthOption = None,
    subset: Annotated[str | None, typer.Option("--subset", metavar="S", help="Only videos of this subset.")] = None,
    video_id: VideoId = None,
    fps: ImageRate = None,
    clean: Annotated[
        Path | None,
        typer.Option("--clean", metavar="DIR", help="Clean features with frames: compute only what changed."),
    ] = None,
    mend: MendBy = None,
    keep_frames: Annotated[
        bool, typer.Option("--keep-frames", help="Also write what was seen of each frame, to DIR/frames.")
    ] = False,
    rule: WindowRule = "all",
    released_fault: ReleasedFaults = None,
    stride: Annotated[
        int | None, typer.Option("--stride", min=1, help="Frames from one window to the next, if not as usual.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace features made with other settings.")] = False,
    seed: Seed = 0,
    jobs: Workers = None,
    model_processes: ModelProcesses = None,
    device: Device = "auto",
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> None:
    voice.speak(quiet, verbose)
    faults: Any = released_fault or ()  # whoever knows them says which there are
    fetch("extractors", extractor, weights)
    with voice.progress(f"extracting {voice.shown(source.name)}") as advance:
        done = api.extract(
            source,
            extractor,
            out,
            weights=weights,
            spec=corruption or (),
            placement=placement,
            truth=truth,
            subset=subset,
            video_id=video_id,
            seed=seed,
            fps=fps,
            stride=stride,
            rule=rule,
            released_faults=faults,
            keep_frames=keep_frames,
            clean=clean,
            mend=mend,
            overwrite=overwrite,
            jobs=jobs,
            model_processes=model_processes,
            device=device,
            progress=advance,
        )
    for warning in done.warnings:
        voice.remark(warning)
    for name, why in done.set_aside.items():
        voice.say(f"{voice.shown(name)}: set aside: {why}")
    if as_json:
        voice.show_json(
            {
                "format": 1,
                "out": str(done.folder),
                "made": list(done.made),
                "kept": list(done.kept),
                "set_aside": dict(done.set_aside),
                "cost": asdict(done.cost),
                "warnings": list(done.warnings),
            }
        )
    else:
        voice.show(voice.shown(str(done.folder)))
        voice.remark(
            f"{len(done.made)} extracted, {len(done.kept)} there already, {len(done.set_aside)} set aside; "
            f"{done.cost.decoded} frames decoded, {done.cost.seen} seen, {done.cost.joined} windows"
            + (f", {done.cost.flows} flows" if done.cost.flows else "")
        )
    if done.set_aside:
        raise typer.Exit(4)
