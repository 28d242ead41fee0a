"""The verbs of models: `detect`, `extract`, `train`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from jostle import api
from jostle.api.config import DetectConfig, ExtractConfig
from jostle.cli import console
from jostle.cli.app import Json, Workers, app, fetch
from jostle.cli.options import Given, with_options
from jostle.core.formatting import escape
from jostle.core.options import option, reworded
from jostle.core.plugins import is_import_path
from jostle.core.types.video_location import location_of
from jostle.errors import BadValue
from jostle.io.files.atomic import refuse_existing
from jostle.io.options import OutOptions, OverwriteOptions
from jostle.models.options import ModelOptions

if TYPE_CHECKING:
    from jostle.features.interpolation import MendingResult


@app.command(help="Detect actions in videos or feature files.")
@with_options(DetectConfig)
def detect(
    given: Given,
    out: Annotated[
        Path | None,
        reworded(OutOptions, "out", "Write predictions to this file, for `jostle eval`."),
    ] = None,
    subset: Annotated[str | None, reworded(ExtractConfig, "subset")] = None,
    stride: Annotated[
        int | None,
        reworded(ExtractConfig, "stride", "Frames between two rows; default: as recorded by `extract`, or 4."),
    ] = None,
    window: Annotated[
        int | None, option("Frames of a window; default: as recorded by `extract`, or 16.", least=1)
    ] = None,
    prefix: Annotated[str, option("Prefix of ids in file names, such as v_.")] = "",
    suffix: Annotated[str, option("Suffix of ids in file names.")] = ".npy",
    jobs: Workers = None,
    as_json: Json = False,
) -> None:
    from jostle.evaluation.inference.feature_detection import FeatureGrid, holds_video, read_grid
    from jostle.evaluation.results.detections import DetectedActions
    from jostle.features.folder import mending_warnings
    from jostle.io.files.annotations import read_truth, write_predictions
    from jostle.models.loading.detectors import looks_at_frames
    from jostle.models.loading.extractors import recorded_extractor

    config = DetectConfig(**given.keywords())
    source, name = location_of(config.source), str(config.detector)
    known = None if config.truth is None else read_truth(str(config.truth), subset=subset)
    weights = None if config.weights is None else str(config.weights)
    if weights is None and not is_import_path(name):
        raise BadValue(f"{name} has to be given its weights: --weights F")
    fetch("detectors", name, weights)
    model = api.load_detector(name, weights=weights, **(config.settings or {}))
    of_video = config.extractor or config.extractor_weights
    facts: dict[str, Any] = {}
    if looks_at_frames(model):
        if of_video:
            raise BadValue(f"{name} processes frames itself; leave the extractor out")
    elif of_video or config.spec or config.placement or holds_video(source, prefix, suffix):
        facts["extractor"] = config.extractor or recorded_extractor(name, weights, source)
        fetch("extractors", facts["extractor"], given.values.get("extractor_weights"))
    else:
        noted = read_grid(source)
        rate = None if config.fps is None else float(config.fps)
        facts["grid"] = FeatureGrid(stride or noted.stride, window or noted.window, rate, prefix, suffix)
    set_aside: dict[str, str] = {}
    mended: dict[str, MendingResult] = {}
    with console.progress("detecting") as advance:
        callbacks = {
            "on_mended": lambda name, one: mended.update({name: one}),
            "on_bad": lambda name, error: set_aside.update({name: str(error)}),
            "progress": advance,
        }
        predictions = api.detect(**given.keywords(**facts, **callbacks, truth=known, jobs=jobs))
    for video, one in mended.items():
        for line in mending_warnings(one):
            console.remark(f"{escape(video)}: {line}")
    damaged = {video: (int(one.damaged.sum()), len(one.damaged)) for video, one in mended.items()}
    annotated = len(known.videos) if known is not None and source.is_dir() else None
    found = DetectedActions(predictions, out, annotated, None if config.mend is None else str(config.mend), damaged)
    if out is not None:
        write_predictions(predictions, out)
    console.give(found, as_json and out is None)
    console.end_with_failures(set_aside.items())


@app.command(help="Train a detector or a recogniser, clean or robust, or resume its training.")
def train(
    config: Annotated[Path, option("TOML file that says what to train, and on which data.", metavar="CONFIG.toml")],
    overrides: Annotated[
        Sequence[str] | None,
        option("Change settings, for example optimiser.lr=1e-3.", metavar="[KEY=VALUE ...]"),
    ] = None,
    *,
    out: Annotated[Path, reworded(OutOptions, "out", "Folder for the checkpoint, log and weights.", metavar="DIR")],
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


@app.command(help="Extract features of videos, one .npy file (T, C) each; existing ones are kept.")
@with_options(ExtractConfig)
def extract(given: Given, jobs: Workers = None, as_json: Json = False) -> None:
    config = ExtractConfig(**given.keywords())
    fetch("extractors", config.extractor, given.values.get("weights"))
    with console.progress(f"extracting {escape(location_of(config.source).name)}") as advance:
        done = api.extract(**given.keywords(jobs=jobs, progress=advance))
    console.give(done, as_json)
    console.end_with_failures(done.set_aside.items())


@app.command(help="Write a network as an ONNX file: the inspector, a recogniser or a feature detector.")
def export(
    part: Annotated[str, option("`inspector`, or a name of `jostle names models` or `detectors`.", metavar="PART")],
    *,
    out: Annotated[Path, reworded(OutOptions, "out", "File to write.", metavar="FILE.onnx")],
    weights: Annotated[
        str | None,
        reworded(ModelOptions, "weights", "Weights; default for the inspector: the bundled ones."),
    ] = None,
    network: Annotated[
        Literal["causal", "both"],
        option(
            "Network of the inspector: causal, for live use, or both, which uses past and future frames.",
        ),
    ] = "causal",
    overwrite: Annotated[bool, reworded(OverwriteOptions, "overwrite", "Replace FILE.onnx if it exists.")] = False,
    as_json: Json = False,
) -> None:
    refuse_existing(out, overwrite)
    done = api.export(part, out, weights=weights, network=network)
    console.give(done, as_json)
