"""The verbs that corrupt, inspect and mend video: `corrupt`, `sheet`, `inspect`, `mend`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from jostle import api
from jostle.cli import console
from jostle.cli.app import Jobs, Json, Workers, app
from jostle.cli.options import ExitCode, Given, with_options
from jostle.core.formatting import escape
from jostle.core.options import option, reworded
from jostle.core.results import Written
from jostle.core.tables import TableOptions
from jostle.core.types.video_location import location_of
from jostle.corruptions.options import SeedOptions, SpecOptions
from jostle.errors import BadValue
from jostle.io.files.atomic import refuse_output_in
from jostle.io.options import (
    DamagedInputOptions,
    LosslessOptions,
    OutOptions,
    OverwriteOptions,
    RateOptions,
    VideoOptions,
)
from jostle.mending.options import ThresholdOptions, WatchOptions
from jostle.models.options import DeviceOptions

# `corrupt_file`, `mend_file`, `inspection` and `sheet` have keywords of their own: Python replaces outputs, computes on
# the CPU and draws clips unless it is told otherwise; a command refuses, takes a GPU and reads files.


@dataclass(frozen=True, kw_only=True, eq=False)
class OutputOptions(LosslessOptions, OverwriteOptions):
    """Output"""

    out: Path = field(metadata=reworded(OutOptions, "out", "Output: .mp4, .mkv or a folder."))


@dataclass(frozen=True, kw_only=True, eq=False)
class CorruptConfig(SpecOptions, OutputOptions, DamagedInputOptions, VideoOptions, SeedOptions):
    """Options of corrupting a video, as requested."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SheetConfig(SpecOptions, VideoOptions, SeedOptions):
    """Options of a contact sheet, as requested."""


@dataclass(frozen=True, kw_only=True, eq=False)
class InspectConfig(ThresholdOptions, RateOptions, DeviceOptions):
    """Options of inspecting videos, as requested."""

    source: str | Path = field(
        kw_only=False,
        metadata=reworded(
            VideoOptions,
            "source",
            "Video file or address, or folder of images; with --csv a folder of videos, or a .txt list.",
            metavar="VIDEO",
        ),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class MendConfig(ThresholdOptions, OutputOptions, VideoOptions, DeviceOptions):
    """Options of mending a video, as requested."""


@app.command(help="Corrupt a video: a file or a folder of images.")
@with_options(CorruptConfig)
def corrupt(given: Given, jobs: Jobs = None, as_json: Json = False) -> None:
    if not given.values.get("spec"):
        raise BadValue("say what to do to the video: -c SPEC, as in -c fog:3; `jostle names corruptions` lists them")
    source = location_of(given.values["source"])
    with console.progress(f"corrupting {escape(source.name)}") as advance:
        done = api.corrupt_file(**given.filled(jobs=jobs, progress=advance))
    console.give(done, as_json)


@app.command(help="Draw a contact sheet: corruptions by severities.")
@with_options(SheetConfig)
def sheet(
    given: Given,
    out: Annotated[Path, reworded(OutOptions, "out", "PNG file to write.", metavar="sheet.png")],
    as_json: Json = False,
) -> None:
    with console.progress("drawing") as advance:
        api.sheet(**given.keywords(out=out, progress=advance))
    console.give(Written({"out": out}, (out,)), as_json)


PICTURES = 12  # in the strip


@app.command(help="Find the damaged frames of a video: black, blurred, covered, broken, overexposed ...")
@with_options(InspectConfig)
def inspect(
    given: Given,
    out: Annotated[
        Path | None,
        reworded(OutOptions, "out", "Draw a strip: .png, .pdf or .svg; with --csv a .html page.", metavar="FILE"),
    ] = None,
    table: Annotated[
        Path | None,
        reworded(TableOptions, "csv", "Inspect a collection, and write a row per video.", flag="--csv"),
    ] = None,
    causal: Annotated[bool, option("Use past frames only, as in live use.")] = False,
    jobs: Workers = None,
    as_json: Json = False,
) -> None:
    options = given.filled()
    source = location_of(options.pop("source"))
    if table is not None:
        if causal or "threshold" in given.values:
            raise BadValue("--causal and --threshold are for a single video; leave them out with --csv")
        _inspect_collection(source, table, out, options["inspector"], jobs, as_json)
        return
    if out is not None:
        refuse_output_in(source, out)
    with console.progress(f"inspecting {escape(source.name)}") as advance:
        pictures = 0 if out is None else PICTURES
        inspection = api.inspection(source, causal=causal, pictures=pictures, progress=advance, **options)
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
        raise ExitCode(4)


@app.command(help="Replace the damaged frames of a video by the intact ones around them. Times and sound are kept.")
@with_options(MendConfig)
def mend(
    given: Given,
    how: Annotated[
        str,
        reworded(
            WatchOptions,
            "how",
            "Mender: hold the last intact frame, blend to the next, follow the motion between them, or one of your own "
            "(`jostle names menders`, or package.module:function).",
            metavar="NAME",
        ),
    ] = "blend",
    as_json: Json = False,
) -> None:
    source = location_of(given.values["source"])
    with console.progress(f"mending {escape(source.name)}") as advance:
        done = api.mend_file(**given.filled(how=how, progress=advance))
    console.give(done, as_json)
