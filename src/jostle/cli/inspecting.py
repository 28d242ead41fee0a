"""The verbs that find struck frames and mend them: `inspect`, `mend`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from jostle import api
from jostle.cli import voice
from jostle.cli.app import app
from jostle.cli.options import Device, ImageRate, Json, Quiet, Verbose
from jostle.cli.tables import lines_of, percent

PICTURES = 12  # in the strip
InspectorName = Annotated[
    str, typer.Option("--inspector", metavar="F", help="jostle's own, or weights that `jostle train` wrote.")
]
Threshold = Annotated[
    float | None,
    typer.Option("--threshold", min=0, max=1, help="From which probability a frame counts; usual: the inspector's."),
]


@app.command(help="Find the frames of a video that were struck: black, blurred, covered, broken, overexposed ...")
def inspect(
    source: Annotated[Path, typer.Argument(metavar="VIDEO", help="A video file, or a folder of images.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Draw a strip of it: .png, .pdf or .svg.")
    ] = None,
    inspector: InspectorName = "jostle",
    causal: Annotated[bool, typer.Option("--causal", help="Look at the past alone, as live use has to.")] = False,
    threshold: Threshold = None,
    fps: ImageRate = None,
    device: Device = "auto",
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> None:
    voice.speak(quiet, verbose)
    with voice.progress(f"inspecting {voice.shown(source.name)}") as advance:
        found = api.inspection(
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
        api.draw_inspection(found, out, title=source.name)
    if as_json:
        voice.show_json(found.to_dict() | {"out": None if out is None else str(out)})
        return
    rows = [["frames", "seconds", "probability"]]
    for one in found.to_dict()["stretches"]:
        frames = f"{one['first']}-{one['stop'] - 1}" if one["stop"] - one["first"] > 1 else str(one["first"])
        rows.append([frames, f"{one['start_s']:.2f}-{one['end_s']:.2f}", percent(one["probability"])])
    if len(rows) > 1:
        for line in lines_of(rows):
            voice.show(line)
    count, total = int(found.struck.sum()), len(found.probabilities)
    what = "all" if count == total and total else "none" if not count else f"{count}"
    voice.remark(f"{what} of {total} frames struck, at a threshold of {found.threshold:.3f}")
    if out is not None:
        voice.show(voice.shown(str(out)))


@app.command(help="Take struck frames out of a video: the whole ones around them stand in. Times and sound are kept.")
def mend(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A video file, or a folder of images.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="OUT", help="Where to write; .mp4, .mkv or a folder.")],
    how: Annotated[
        Literal["hold", "blend", "motion"],
        typer.Option("--how", help="Hold the last whole frame, blend to the next, or follow the motion between them."),
    ] = "blend",
    inspector: InspectorName = "jostle",
    threshold: Threshold = None,
    lossless: Annotated[bool, typer.Option("--lossless", help="Keep every pixel: FFV1 in .mkv, or PNG.")] = False,
    fps: ImageRate = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace OUT if it exists.")] = False,
    device: Device = "auto",
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> None:
    voice.speak(quiet, verbose)
    with voice.progress(f"mending {voice.shown(source.name)}") as advance:
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
    for warning in done.warnings:
        voice.remark(f"{voice.shown(source.name)}: {warning}")
    if as_json:
        told = {"out": str(done.path), "frames": done.frames, "mended": done.mended, "audio": done.audio}
        voice.show_json({"format": 1, **told, "how": how, "warnings": list(done.warnings)})
        return
    voice.show(voice.shown(str(done.path)))
    voice.remark(f"{done.mended} of {done.frames} frames mended{'' if done.audio else ', no sound'}")
