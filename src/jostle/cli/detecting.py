"""The verbs that run and train detectors: `detect`, `train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from jostle import api
from jostle.cli import voice
from jostle.cli.app import app
from jostle.cli.options import Device, Json, Quiet, Verbose
from jostle.cli.tables import lines_of, percent


@app.command(help="Find actions: features in, segments out.")
def detect(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A .npy file of features (T, C), or a folder of them.")],
    detector: Annotated[str, typer.Option("--detector", metavar="NAME", help="See `jostle names detectors`.")],
    weights: Annotated[Path, typer.Option("--weights", metavar="F", help="Its weights: .safetensors, .pth.tar, .pth.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="OUT", help="Write predictions there, ready for eval.")
    ] = None,
    truth: Annotated[
        Path | None, typer.Option("--truth", metavar="GT", help="Gives rate and duration of each video.")
    ] = None,
    subset: Annotated[str | None, typer.Option("--subset", metavar="S", help="Only videos of this subset.")] = None,
    fps: Annotated[float | None, typer.Option("--fps", help="Rate of the videos, where the truth lacks it.")] = None,
    duration: Annotated[float | None, typer.Option("--duration", help="Seconds of a single video.")] = None,
    stride: Annotated[int, typer.Option("--stride", min=1, help="Frames between two rows.")] = 4,
    window: Annotated[int, typer.Option("--window", min=1, help="Frames a row has seen.")] = 16,
    prefix: Annotated[str, typer.Option("--prefix", help="Before the id in file names, such as v_.")] = "",
    suffix: Annotated[str, typer.Option("--suffix", help="After the id in file names.")] = ".npy",
    video_scores: Annotated[
        Path | None,
        typer.Option("--video-scores", metavar="FILE", help="A video classifier's scores, for ActivityNet."),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting of the detector.")
    ] = None,
    device: Device = "auto",
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> None:
    voice.speak(quiet, verbose)
    from jostle.datasets.files import read_truth, write_predictions
    from jostle.evaluation.detection import Grid

    known = None if truth is None else read_truth(truth, subset=subset)
    made = api.load_detector(detector, weights=weights, **_settings(settings or []))
    made.to(_device(device))
    with voice.progress("detecting") as advance:
        found = api.detect(
            source,
            made,
            truth=known,
            grid=Grid(stride, window, fps, prefix, suffix),
            duration=duration,
            video_scores=video_scores,
            progress=advance,
        )
    if known is not None and len(found.videos) < len(known.videos):
        voice.remark(f"{len(known.videos) - len(found.videos)} of {len(known.videos)} videos have no features here")
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
        voice.show_json({"version": "1", "results": results, "external_data": {}})
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


@app.command(help="Train a detector, clean or robust; a run that was stopped goes on.")
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
        done = api.train(config, out, overrides=overrides or [], progress=advance)
    if as_json:
        voice.show_json({"format": 1} | vars(done) | {"folder": str(done.folder), "weights": str(done.weights)})
        return
    voice.show(voice.shown(str(done.weights)))
    chosen = f", chosen by {percent(done.score)} %" if done.score is not None else ""
    skipped = f", {done.skipped} skipped as they were not finite" if done.skipped else ""
    voice.remark(f"epoch {done.epoch}{chosen}; {done.steps} steps{skipped}")


def _settings(pairs: list[str]) -> dict[str, Any]:
    """Settings of a detector from `key=value`, as in a training file."""
    from jostle.settings import parsed_pairs

    return parsed_pairs(pairs)


def _device(wanted: str) -> str:
    from jostle.detectors.devices import device_for

    return str(device_for(wanted))
