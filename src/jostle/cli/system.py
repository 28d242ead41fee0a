"""The verbs that look around: `names`, `doctor`, `demo`."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

from jostle import api
from jostle.cli import console
from jostle.cli.app import Jobs, Json, Seed, Verbose, app
from jostle.cli.options import ExitCode
from jostle.core.options import option, reworded
from jostle.core.results import Written
from jostle.errors import BadValue
from jostle.gate.options import StopOptions
from jostle.io.options import OutOptions
from jostle.models.loading.names import DESCRIBED
from jostle.models.options import ModelOptions


@app.command(help="List names of a kind, or print one published table; -v: inputs and weights of networks.")
def names(
    kind: Annotated[
        str,
        option(
            "corruptions, profiles, placements, protocols, metrics, statistics, formats, styles, detectors, "
            "extractors, models, objectdetectors, languagemodels, datasets, benchmarks, published, "
            "menders, damagefinders, sections, tasks, trackers, videosources, losses, divergences or trainingtasks.",
            metavar="KIND",
        ),
    ],
    name: Annotated[str | None, option("Published table to print.", metavar="[NAME]")] = None,
    *,
    profile: Annotated[str | None, option("List the corruptions of this profile.")] = None,
    level: Annotated[str | None, option("List this level only: frame, clip, codec or time.")] = None,
    origin: Annotated[bool, option("Print where each comes from: jostle, or a package.")] = False,
    as_json: Json = False,
    verbose: Verbose = 0,
) -> None:
    console.speak(False, verbose)
    if name is not None:
        if kind != "published":
            raise BadValue(f"only published tables are shown by name; `jostle names {kind}` lists what there is")
        console.give(api.published(name), as_json)
        return
    if verbose and kind in DESCRIBED:
        _show_networks(kind, as_json)
        return
    origins = api.origins(kind, profile=profile, level=level)
    if as_json:
        console.show_json(origins if origin else list(origins))
        return
    width = max(map(len, origins), default=0)
    for listed, whose in origins.items():
        console.show(f"{listed:{width}}  {whose}" if origin else listed)
    foreign = [f"{listed} of {whose}" for listed, whose in origins.items() if whose != "jostle"]
    if foreign and not origin:
        console.remark(f"not jostle's own: {', '.join(foreign)}")


def _show_networks(kind: str, as_json: bool) -> None:
    descriptions = api.describe(kind)
    if as_json:
        console.show_json([asdict(one) for one in descriptions])
        return
    width = max(len(one.name) for one in descriptions)
    wide = max(len(one.sees) for one in descriptions)
    for one in descriptions:
        console.show(f"{one.name:{width}}  {one.sees:{wide}}  {one.weights}")


@app.command(
    help="Report what is installed and works, and test it; or compare a model's preparation of frames with a transform."
)
def doctor(
    *,
    model: Annotated[
        str | None,
        reworded(
            ModelOptions,
            "model",
            "Compare the preparation of this model's frames.",
            metavar="NAME|MODULE:ATTRIBUTE",
        ),
    ] = None,
    against: Annotated[
        str | None,
        reworded(
            StopOptions, "against", "With this transform, as it was used in training.", metavar="MODULE:ATTRIBUTE"
        ),
    ] = None,
    video: Annotated[Path | None, option("On this video; default: frames of odd sizes.", metavar="VIDEO")] = None,
    as_json: Json = False,
    verbose: Verbose = 0,
) -> None:
    console.speak(False, verbose)
    if model is not None or against is not None or video is not None:
        if model is None or against is None:
            raise BadValue("--model and --against go together")
        difference = api.compare_preparation(model, against, video)
        console.give(difference, as_json)
        if not difference.alike:
            raise ExitCode(4)
        return
    health = api.doctor()
    console.give(health, as_json)
    if not health.well:
        raise ExitCode(5)


@app.command(help="Run the whole loop on generated films, in a minute; or every corruption on your video.")
def demo(
    video: Annotated[Path | None, option("Your video, to corrupt.", metavar="VIDEO")] = None,
    *,
    out: Annotated[
        Path | None, reworded(OutOptions, "out", "Folder to write to; default: demo, or demo-full.", metavar="DIR")
    ] = None,
    full: Annotated[bool, option("Use all films, cells and corruptions; takes minutes.")] = False,
    films: Annotated[bool, option("Only leave two films and their annotations, to try things on; in seconds.")] = False,
    seed: Seed = 0,
    jobs: Jobs = None,
    as_json: Json = False,
) -> None:
    folder = out or Path("demo-full" if full else "demo")
    if video is not None:
        if full or films:
            raise BadValue("--full and --films are for the demo on films made here; leave them or VIDEO out")
        _demo_video(video, folder, seed, as_json)
        return
    if films:
        if full:
            raise BadValue("--films makes no runs; leave it or --full out")
        with console.stages() as advance:
            place = api.demo_films(folder, seed=seed, progress=partial(advance, "rendering films"))
        console.give(Written({"films": place, "truth": place / "truth.json"}, (place,)), as_json)
        return
    with console.stages() as advance:
        done = api.demo(folder, full=full, seed=seed, jobs=jobs, progress=advance)
    console.give(done, as_json)


def _demo_video(video: Path, folder: Path, seed: int, as_json: bool) -> None:
    with console.stages() as advance:
        done = api.demo_video(video, folder, seed=seed, progress=advance)
    console.give(done, as_json)
