"""The verbs of models: `detect`, `extract`, `train`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from jostle import api
from jostle.cli import console
from jostle.cli.app import (
    Device,
    ImageRate,
    Json,
    MendBy,
    ModelProcesses,
    PlacementOption,
    ReproducedBugs,
    Seed,
    SpecOption,
    TruthOption,
    VideoId,
    WindowRule,
    Workers,
    app,
    fetch,
)
from jostle.core.formatting import escape
from jostle.core.plugins import is_import_path
from jostle.errors import BadValue

if TYPE_CHECKING:
    from jostle.features.interpolation import MendingResult


@app.command(help="Detect actions in videos or feature files.")
def detect(
    source: Annotated[
        Path,
        typer.Argument(metavar="IN", help="Features (T, C) as .npy, a video or image folder, or a folder of them."),
    ],
    detector: Annotated[
        str,
        typer.Option(
            "--detector",
            metavar="NAME",
            help="Name of a detector (`jostle names detectors`), or your own as package.module:attribute.",
        ),
    ],
    weights: Annotated[
        str | None,
        typer.Option(
            "--weights",
            metavar="F",
            help="Weights of the detector: a file, public or hf:ORG/NAME; for _puppets clean or robust.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="OUT", help="Write predictions to this file, for `jostle eval`."),
    ] = None,
    extractor: Annotated[
        str | None,
        typer.Option(
            "--extractor",
            metavar="NAME",
            help="Feature extractor, for videos; default: the one recorded in the weights.",
        ),
    ] = None,
    extractor_weights: Annotated[
        str | None,
        typer.Option(
            "--extractor-weights", metavar="F", help="Weights of the extractor: a file, public or hf:ORG/NAME."
        ),
    ] = None,
    corruption: SpecOption = None,
    placement: PlacementOption = None,
    truth: Annotated[
        Path | None,
        typer.Option(
            "--truth", metavar="GT", help="Annotations, for the frame rate, duration and actions of each video."
        ),
    ] = None,
    subset: Annotated[str | None, typer.Option("--subset", metavar="S", help="Use videos of this subset only.")] = None,
    video_id: VideoId = None,
    fps: Annotated[
        float | None, typer.Option("--fps", help="Frame rate of videos or images that do not state it.")
    ] = None,
    duration: Annotated[
        float | None, typer.Option("--duration", help="Duration of a single video, in seconds.")
    ] = None,
    stride: Annotated[
        int | None,
        typer.Option("--stride", min=1, help="Frames between two rows; default: as recorded by `extract`, or 4."),
    ] = None,
    window: Annotated[
        int | None,
        typer.Option("--window", min=1, help="Frames of a window; default: as recorded by `extract`, or 16."),
    ] = None,
    prefix: Annotated[str, typer.Option("--prefix", help="Prefix of ids in file names, such as v_.")] = "",
    suffix: Annotated[str, typer.Option("--suffix", help="Suffix of ids in file names.")] = ".npy",
    video_scores: Annotated[
        Path | None,
        typer.Option("--video-scores", metavar="FILE", help="Scores of a video classifier, for ActivityNet."),
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
) -> None:
    from jostle.core.config import parse_pairs
    from jostle.evaluation.inference.feature_detection import FeatureGrid, read_grid
    from jostle.evaluation.results.detections import DetectedActions
    from jostle.features.folder import mending_warnings
    from jostle.io.files.annotations import read_truth, write_predictions
    from jostle.models.loading.models import looks_at_frames

    known = None if truth is None else read_truth(truth, subset=subset)
    if weights is None and not is_import_path(detector):
        raise BadValue(f"{detector} has to be given its weights: --weights F")
    fetch("detectors", detector, weights)
    changes = parse_pairs(settings or [])
    model = api.load_detector(detector, weights=weights, **changes)
    facts: dict[str, Any] = {}
    options = {"spec": corruption or (), "placement": placement, "video_id": video_id, "seed": seed, "fps": fps}
    if looks_at_frames(model):
        if extractor or extractor_weights:
            raise BadValue(f"{detector} processes frames itself; leave the extractor out")
        facts = options
    elif extractor or extractor_weights or corruption or placement or _is_video(source, prefix, suffix):
        name = extractor or _extractor_of(detector, weights, source)
        fetch("extractors", name, extractor_weights)
        facts |= {"extractor": name, "extractor_weights": extractor_weights, **options}
    else:
        noted = read_grid(source)
        facts["grid"] = FeatureGrid(stride or noted.stride, window or noted.window, fps, prefix, suffix)
        facts["duration"] = duration
    set_aside: dict[str, str] = {}
    mended: dict[str, MendingResult] = {}
    with console.progress("detecting") as advance:
        predictions = api.detect(
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
        for line in mending_warnings(one):
            console.remark(f"{escape(name)}: {line}")
    damaged = {name: (int(one.damaged.sum()), len(one.damaged)) for name, one in mended.items()}
    annotated = len(known.videos) if known is not None and source.is_dir() else None
    found = DetectedActions(predictions, out, annotated, mend, damaged)
    if out is not None:
        write_predictions(predictions, out)
    console.give(found, as_json and out is None)
    for name, why in set_aside.items():
        console.say(f"{escape(name)}: set aside: {why}")
    if set_aside:
        raise typer.Exit(4)


@app.command(help="Train a detector or a recogniser, clean or robust, or resume its training.")
def train(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG.toml", help="TOML file that says what to train, and on which data.")
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the checkpoint, log and weights.")
    ],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE ...]", help="Change settings, for example optimiser.lr=1e-3."),
    ] = None,
    as_json: Json = False,
) -> None:
    with console.progress("training") as advance:
        done = api.train(config, out, overrides=overrides or [], watch=_watching(advance))
    console.give(done, as_json)


def _watching(advance: Callable[..., None] | None) -> Callable[[Any], None] | None:
    """Says what a run is going to do, then where it stands."""
    if advance is None:
        return None

    def report_event(what: Any) -> None:
        if hasattr(what, "step"):
            advance(what.step, what.steps, what.sentence)
        else:
            console.remark(what.sentence)

    return report_event


def _is_video(source: Path, prefix: str, suffix: str) -> bool:
    """Whether a path must be decoded: a video, or a folder with videos and without features."""
    from jostle.datasets.videos import find_videos
    from jostle.io.files.video_ids import VIDEO_SUFFIXES

    if not source.is_dir():
        return source.suffix.lower() in VIDEO_SUFFIXES
    return next(source.glob(f"{prefix}*{suffix}"), None) is None and bool(find_videos(source))


def _extractor_of(detector: str, weights: str | None, source: Path) -> str:
    """The extractor whose features a detector was trained on, if its weights say so."""
    from jostle.models.checkpoints import read_metadata
    from jostle.models.weights.resolve import weights_path

    path = None if weights is None else weights_path("detectors", detector, weights)
    name = None if path is None else read_metadata(path).get("extractor")
    if not name:
        raise BadValue(
            f"{source}: a video needs an extractor to compute features: --extractor NAME; "
            "`jostle names extractors` lists them"
        )
    return name


@app.command(help="Extract features of videos, one .npy file (T, C) each; existing ones are kept.")
def extract(
    source: Annotated[Path, typer.Argument(metavar="IN", help="Video file or image folder, or a folder of them.")],
    extractor: Annotated[
        str,
        typer.Option(
            "--extractor", metavar="NAME", help="Name of an extractor (`jostle names extractors`), or a recogniser."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for features and features.json.")],
    weights: Annotated[
        str | None,
        typer.Option("--weights", metavar="F", help="Weights of the extractor: a file, public or hf:ORG/NAME."),
    ] = None,
    corruption: SpecOption = None,
    placement: PlacementOption = None,
    truth: TruthOption = None,
    subset: Annotated[str | None, typer.Option("--subset", metavar="S", help="Use videos of this subset only.")] = None,
    video_id: VideoId = None,
    fps: ImageRate = None,
    clean: Annotated[
        Path | None,
        typer.Option(
            "--clean",
            metavar="DIR",
            help="Folder of clean features with frame features, so that only what changed is computed.",
        ),
    ] = None,
    mend: MendBy = None,
    keep_frames: Annotated[
        bool, typer.Option("--keep-frames", help="Also write the features of single frames, to DIR/frames.")
    ] = False,
    rule: WindowRule = "all",
    reproduce_bug: ReproducedBugs = None,
    stride: Annotated[
        int | None, typer.Option("--stride", min=1, help="Frames from one window to the next; default: the model's.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace features made with other settings.")] = False,
    seed: Seed = 0,
    jobs: Workers = None,
    model_processes: ModelProcesses = None,
    device: Device = "auto",
    as_json: Json = False,
) -> None:
    bugs: Any = reproduce_bug or ()  # checked where they are defined
    fetch("extractors", extractor, weights)
    with console.progress(f"extracting {escape(source.name)}") as advance:
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
            reproduce_bugs=bugs,
            keep_frames=keep_frames,
            clean=clean,
            mend=mend,
            overwrite=overwrite,
            jobs=jobs,
            model_processes=model_processes,
            device=device,
            progress=advance,
        )
    console.give(done, as_json)
    for name, why in done.set_aside.items():
        console.say(f"{escape(name)}: set aside: {why}")
    if done.set_aside:
        raise typer.Exit(4)


@app.command(help="Write a network as an ONNX file: the inspector, a recogniser or a feature detector.")
def export(
    part: Annotated[
        str, typer.Argument(metavar="PART", help="`inspector`, or a name of `jostle names models` or `detectors`.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE.onnx", help="File to write.")],
    weights: Annotated[
        str | None,
        typer.Option("--weights", metavar="F", help="Weights; default for the inspector: the bundled ones."),
    ] = None,
    network: Annotated[
        Literal["causal", "both"],
        typer.Option(
            "--network",
            help="Network of the inspector: causal, for live use, or both, which uses past and future frames.",
        ),
    ] = "causal",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace FILE.onnx if it exists.")] = False,
    as_json: Json = False,
) -> None:
    if out.exists() and not overwrite:
        raise BadValue(f"{out} exists; pass --overwrite to replace it")
    done = api.export(part, out, weights=weights, network=network)
    console.give(done, as_json)
