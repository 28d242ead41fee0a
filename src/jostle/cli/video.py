"""The verbs that corrupt, inspect and mend video: `corrupt`, `sheet`, `inspect`, `mend`."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from jostle import api
from jostle.cli import console
from jostle.cli.app import Jobs, Json, Workers, app
from jostle.cli.options import ExitCode, Given, with_options
from jostle.cli.tables import lines_of
from jostle.core.formatting import percent
from jostle.core.options import option
from jostle.corruptions.options import SeedOptions, SpecOptions
from jostle.errors import BadValue
from jostle.io.files.atomic import refuse_output_in
from jostle.io.options import DamagedInputOptions, LosslessOptions, OverwriteOptions, RateOptions
from jostle.mending.options import ThresholdOptions
from jostle.models.options import DeviceOptions


@dataclass(frozen=True, kw_only=True, eq=False)
class VideoOptions(RateOptions):
    """Video"""

    source: Path = field(kw_only=False, metadata=option("Video file, or folder of images.", metavar="IN"))


@dataclass(frozen=True, kw_only=True, eq=False)
class OutputOptions(LosslessOptions, OverwriteOptions):
    """Output"""

    out: Path = field(metadata=option("Output: .mp4, .mkv or a folder.", short="-o", metavar="OUT"))


@dataclass(frozen=True, kw_only=True, eq=False)
class CorruptConfig(SpecOptions, OutputOptions, DamagedInputOptions, VideoOptions, SeedOptions):
    """Options of corrupting a video, as requested."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SheetConfig(SpecOptions, VideoOptions, SeedOptions):
    """Options of a contact sheet, as requested."""


@dataclass(frozen=True, kw_only=True, eq=False)
class InspectConfig(ThresholdOptions, RateOptions, DeviceOptions):
    """Options of inspecting videos, as requested."""

    source: Path = field(
        kw_only=False,
        metadata=option(
            "Video file, or folder of images; with --csv a folder of videos, or a .txt list.", metavar="VIDEO"
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
    source = given.values["source"]
    with console.progress(f"corrupting {console.escape(source.name)}") as advance:
        done = api.corrupt_file(**given.filled(jobs=jobs, progress=advance))
    for warning in done.warnings:
        console.remark(f"{console.escape(source.name)}: {warning}")
    if as_json:
        console.show_json(
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
        console.show(console.escape(str(done.path)))
        console.remark(f"{done.struck} of {done.frames} frames corrupted{'' if done.audio else ', no sound'}")


@app.command(help="Draw a contact sheet: corruptions by severities.")
@with_options(SheetConfig)
def sheet(
    given: Given,
    out: Annotated[Path, option("PNG file to write.", short="-o", metavar="sheet.png")],
    as_json: Json = False,
) -> None:
    with console.progress("drawing") as advance:
        path = api.sheet(**given.keywords(out=out, progress=advance))
    if as_json:
        console.show_json({"format": 1, "out": str(path)})
    else:
        console.show(console.escape(str(path)))


PICTURES = 12  # in the strip
WORST_VIDEOS = 20  # in the table of a collection


@app.command(help="Find the damaged frames of a video: black, blurred, covered, broken, overexposed ...")
@with_options(InspectConfig)
def inspect(
    given: Given,
    out: Annotated[
        Path | None,
        option("Draw a strip: .png, .pdf or .svg; with --csv a .html page.", short="-o", metavar="FILE"),
    ] = None,
    table: Annotated[
        Path | None,
        option("Inspect a collection, and write a row per video.", flag="--csv", metavar="FILE"),
    ] = None,
    causal: Annotated[bool, option("Use past frames only, as in live use.")] = False,
    jobs: Workers = None,
    as_json: Json = False,
) -> None:
    options = given.filled()
    source = options.pop("source")
    if table is not None:
        if causal or "threshold" in given.values:
            raise BadValue("--causal and --threshold are for a single video; leave them out with --csv")
        _inspect_collection(source, table, out, options["inspector"], jobs, as_json)
        return
    if out is not None:
        refuse_output_in(source, out)
    with console.progress(f"inspecting {console.escape(source.name)}") as advance:
        pictures = 0 if out is None else PICTURES
        inspection = api.inspection(source, causal=causal, pictures=pictures, progress=advance, **options)
    if out is not None:
        api.draw_inspection(inspection, out, title=source.name)
    if as_json:
        console.show_json(inspection.to_dict() | {"out": None if out is None else str(out)})
        return
    rows = [["frames", "seconds", "kind", "probability"]]
    for one in inspection.to_dict()["stretches"]:
        frames = f"{one['first']}-{one['stop'] - 1}" if one["stop"] - one["first"] > 1 else str(one["first"])
        rows.append([frames, f"{one['start_s']:.2f}-{one['end_s']:.2f}", one["kind"], percent(one["probability"])])
    if len(rows) > 1:
        console.show_lines(lines_of(rows))
    count, total = int(inspection.struck.sum()), len(inspection.probabilities)
    what = "all" if count == total and total else "none" if not count else f"{count}"
    decoded = _decoder_report(inspection.concealed, inspection.undecodable)
    console.remark(f"{what} of {total} frames damaged, at a threshold of {inspection.threshold:.3f}{decoded}")
    if out is not None:
        console.show(console.escape(str(out)))


def _decoder_report(concealed: int, undecodable: int) -> str:
    """What the decoder says of its frames, for the end of a line."""
    parts = [f"{concealed} show what the decoder concealed"] if concealed else []
    parts += [f"{undecodable} more did not decode"] if undecodable else []
    return "".join(f"; {part}" for part in parts)


def _inspect_collection(
    source: Path, table: Path, page: Path | None, inspector: str, jobs: int | None, as_json: bool
) -> None:
    with console.progress("inspecting videos") as advance:
        done = api.inspect_collection(source, table, page=page, inspector=inspector, jobs=jobs, progress=advance)
    for warning in done.warnings:
        console.remark(warning)
    unread = [one for one in done.files if one.error]
    for one in unread:
        console.remark(f"{console.escape(one.video)}: {one.error}")
    summary = done.to_dict()
    if as_json:
        console.show_json(summary)
    else:
        rows = [["video", "damaged, %", "events", "mostly"]]
        ranked = sorted((one for one in done.files if one.damaged), key=lambda one: -one.share)
        for one in ranked[:WORST_VIDEOS]:
            rows.append([console.escape(one.video), percent(one.share), str(one.events), one.main_kind])
        if len(rows) > 1:
            console.show_lines(lines_of(rows))
        if len(ranked) > WORST_VIDEOS:
            console.remark(f"and {len(ranked) - WORST_VIDEOS} more")
        console.remark(
            f"{summary['damaged_videos']} of {summary['videos']} videos have damaged frames, "
            f"{percent(summary['share_damaged'])} % of {summary['frames']} frames"
            f"{_decoder_report(summary['concealed'], 0)}. {done.false_alarms}"
        )
        for path in (done.csv, done.page):
            if path is not None:
                console.show(console.escape(str(path)))
    if unread:
        raise ExitCode(4)


@app.command(help="Replace the damaged frames of a video by the intact ones around them. Times and sound are kept.")
@with_options(MendConfig)
def mend(
    given: Given,
    how: Annotated[
        Literal["hold", "blend", "motion"],
        option("Hold the last intact frame, blend to the next, or follow the motion between them."),
    ] = "blend",
    as_json: Json = False,
) -> None:
    source = given.values["source"]
    with console.progress(f"mending {console.escape(source.name)}") as advance:
        done = api.mend_file(**given.filled(how=how, progress=advance))
    for warning in done.warnings:
        console.remark(f"{console.escape(source.name)}: {warning}")
    if as_json:
        facts = {"out": str(done.path), "frames": done.frames, "mended": done.mended, "audio": done.audio}
        decoded = {"concealed": done.concealed, "undecodable": done.undecodable}
        console.show_json({"format": 1, **facts, **decoded, "how": how, "warnings": list(done.warnings)})
        return
    console.show(console.escape(str(done.path)))
    report = _decoder_report(done.concealed, done.undecodable)
    console.remark(f"{done.mended} of {done.frames} frames mended{'' if done.audio else ', no sound'}{report}")
