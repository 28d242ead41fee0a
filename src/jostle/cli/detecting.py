"""The verbs that run and train detectors: `detect`, `train`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jostle import api
from jostle.cli import voice
from jostle.cli.app import app
from jostle.cli.fetching import fetch
from jostle.cli.options import (
    Device,
    Json,
    MendBy,
    ModelProcesses,
    PlacementOption,
    Quiet,
    Seed,
    SpecOption,
    Verbose,
    VideoId,
    Workers,
)
from jostle.cli.tables import lines_of, percent
from jostle.errors import BadValue
from jostle.plugins import is_place

if TYPE_CHECKING:
    from jostle.extraction.bridging import Mended
    from jostle.types.predictions import Predictions
    from jostle.types.truth import Truth


@app.command(help="Find actions: features or video in, segments out.")
def detect(
    source: Annotated[
        Path,
        typer.Argument(metavar="IN", help="Features (T, C) as .npy, a video or folder of images, or a folder of any."),
    ],
    detector: Annotated[
        str,
        typer.Option(
            "--detector", metavar="NAME", help="See `jostle names detectors`; or your own, package.module:attribute."
        ),
    ],
    weights: Annotated[
        str | None,
        typer.Option(
            "--weights", metavar="F", help="Its weights: a file, or public, hf:ORG/NAME; of _puppets clean, robust."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="OUT", help="Write predictions there, ready for eval.")
    ] = None,
    extractor: Annotated[
        str | None,
        typer.Option("--extractor", metavar="NAME", help="Makes features of video; by default the one in the weights."),
    ] = None,
    extractor_weights: Annotated[
        str | None, typer.Option("--extractor-weights", metavar="F", help="Its weights: a file, public, hf:ORG/NAME.")
    ] = None,
    corruption: SpecOption = None,
    placement: PlacementOption = None,
    truth: Annotated[
        Path | None,
        typer.Option("--truth", metavar="GT", help="Gives rate and duration of each video, and its actions."),
    ] = None,
    subset: Annotated[str | None, typer.Option("--subset", metavar="S", help="Only videos of this subset.")] = None,
    video_id: VideoId = None,
    fps: Annotated[
        float | None, typer.Option("--fps", help="Rate of videos or images, where nothing else says it.")
    ] = None,
    duration: Annotated[float | None, typer.Option("--duration", help="Seconds of a single video.")] = None,
    stride: Annotated[
        int | None, typer.Option("--stride", min=1, help="Frames between two rows; 4 if `extract` noted no other.")
    ] = None,
    window: Annotated[
        int | None, typer.Option("--window", min=1, help="Frames a row has seen; 16 if `extract` noted no other.")
    ] = None,
    prefix: Annotated[str, typer.Option("--prefix", help="Before the id in file names, such as v_.")] = "",
    suffix: Annotated[str, typer.Option("--suffix", help="After the id in file names.")] = ".npy",
    video_scores: Annotated[
        Path | None,
        typer.Option("--video-scores", metavar="FILE", help="A video classifier's scores, for ActivityNet."),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting of the detector.")
    ] = None,
    mend: MendBy = None,
    seed: Seed = 0,
    jobs: Workers = None,
    model_processes: ModelProcesses = None,
    device: Device = "auto",
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> None:
    voice.speak(quiet, verbose)
    from jostle.extraction.folder import said_of
    from jostle.filing.files import read_truth
    from jostle.loading.detector import looks_at_frames
    from jostle.looking.detection import Grid, grid_of

    known = None if truth is None else read_truth(truth, subset=subset)
    if weights is None and not is_place(detector):
        raise BadValue(f"{detector} has to be given its weights: --weights F")
    fetch("detectors", detector, weights)
    changes = _settings(settings or [])
    made = api.load_detector(detector, weights=weights, **changes)
    facts: dict[str, Any] = {}
    shown = {"spec": corruption or (), "placement": placement, "video_id": video_id, "seed": seed, "fps": fps}
    if looks_at_frames(made):
        if extractor or extractor_weights:
            raise BadValue(f"{detector} looks at frames itself; leave the extractor out")
        facts = shown
    elif extractor or extractor_weights or corruption or placement or _is_video(source, prefix, suffix):
        name = extractor or _extractor_of(detector, weights, source)
        fetch("extractors", name, extractor_weights)
        facts |= {"extractor": name, "extractor_weights": extractor_weights, **shown}
    else:
        noted = grid_of(source)
        facts["grid"] = Grid(stride or noted.stride, window or noted.window, fps, prefix, suffix)
        facts["duration"] = duration
    set_aside: dict[str, str] = {}
    mended: dict[str, Mended] = {}
    with voice.progress("detecting") as advance:
        found = api.detect(
            source,
            detector,
            weights=weights,
            settings=changes,
            truth=known,
            video_scores=video_scores,
            jobs=jobs,
            model_processes=model_processes,
            device=device,
            mend=mend,
            on_mended=lambda name, one: mended.update({name: one}),
            on_bad=lambda name, error: set_aside.update({name: str(error)}),
            progress=advance,
            **facts,
        )
    for name, one in mended.items():
        for line in said_of(one):
            voice.remark(f"{voice.shown(name)}: {line}")
    struck = {name: [int(one.struck.sum()), len(one.struck)] for name, one in mended.items()}
    used = {} if mend is None else {"mended": {"by": mend, "struck_of_frames": struck}}
    _show(found, known if source.is_dir() else None, out, as_json, used)
    for name, why in set_aside.items():
        voice.say(f"{voice.shown(name)}: set aside: {why}")
    if set_aside:
        raise typer.Exit(4)


def _show(
    found: Predictions, known: Truth | None, out: Path | None, as_json: bool, used: dict[str, Any] | None = None
) -> None:
    from jostle.filing.files import write_predictions

    if known is not None and len(found.videos) < len(known.videos):
        voice.remark(f"{len(known.videos) - len(found.videos)} of {len(known.videos)} videos are not here")
    if out is not None:
        write_predictions(found, out)
        voice.remark(f"{len(found)} segments in {len(found.videos)} videos")
        voice.show(voice.shown(str(out)))
        return
    rows = [
        {
            "label": found.classes[found.label[i]],
            "segment": [float(found.start[i]), float(found.end[i])],
            "score": float(found.score[i]),
        }
        for i in range(len(found))
    ]
    if as_json:
        results: dict[str, list[dict[str, Any]]] = {name: [] for name in found.videos}
        for row, video in zip(rows, found.video, strict=True):
            results[found.videos[video]].append(row)
        voice.show_json({"version": "1", "results": results, "external_data": used or {}})
        return
    table = [["video", "start", "end", "score", "label"]]
    for row, video in zip(rows, found.video, strict=True):
        start, end = row["segment"]
        table.append(
            [
                voice.shown(found.videos[video]),
                f"{start:.2f}",
                f"{end:.2f}",
                f"{row['score']:.4f}",
                voice.shown(row["label"]),
            ]
        )
    for line in lines_of(table):
        voice.show(line)


@app.command(help="Train a detector or a recogniser, clean or robust; a run that was stopped goes on.")
def train(
    config: Annotated[Path, typer.Argument(metavar="CONFIG.toml", help="What to train, and on what.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for checkpoint, log and weights.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE ...]", help="Change settings, as in optimiser.lr=1e-3.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> None:
    voice.speak(quiet, verbose)
    with voice.progress("training") as advance:
        done = api.train(config, out, overrides=overrides or [], watch=_watching(advance))
    if as_json:
        voice.show_json({"format": 1} | vars(done) | {"folder": str(done.folder), "weights": str(done.weights)})
        return
    voice.show(voice.shown(str(done.weights)))
    chosen = f", chosen by {done.chosen_by} {percent(done.score)} %" if done.score is not None else ""
    skipped = f", {done.skipped} skipped as they were not finite" if done.skipped else ""
    loss = f"; loss {done.first_loss:.3f} at first, {done.last_loss:.3f} at last" if done.last_loss is not None else ""
    voice.remark(f"epoch {done.epoch}{chosen}; {done.steps} steps{skipped}{loss}")


def _watching(advance: Callable[..., None] | None) -> Callable[[Any], None] | None:
    """Says what a run is going to do, then where it stands."""
    if advance is None:
        return None

    def told(what: Any) -> None:
        if hasattr(what, "step"):
            advance(what.step, what.steps, what.sentence)
        else:
            voice.remark(what.sentence)

    return told


def _is_video(source: Path, prefix: str, suffix: str) -> bool:
    """Whether a path is to be decoded first: a video, or a folder with videos and without features."""
    from jostle.datasets.videos import find_videos
    from jostle.filing.names import VIDEO_SUFFIXES

    if not source.is_dir():
        return source.suffix.lower() in VIDEO_SUFFIXES
    return next(source.glob(f"{prefix}*{suffix}"), None) is None and bool(find_videos(source))


def _extractor_of(detector: str, weights: str | None, source: Path) -> str:
    """The extractor whose features a detector was trained on, if its weights say so."""
    from jostle.detectors.checkpoints import read_metadata
    from jostle.fetching.weights import weights_path

    path = None if weights is None else weights_path("detectors", detector, weights)
    name = None if path is None else read_metadata(path).get("extractor")
    if not name:
        raise BadValue(
            f"{source}: of video, features have to be made first: say by what, --extractor NAME; "
            "`jostle names extractors` lists them"
        )
    return name


def _settings(pairs: list[str]) -> dict[str, Any]:
    """Settings of a detector from `key=value`, as in a training file."""
    from jostle.settings import parsed_pairs

    return parsed_pairs(pairs)
