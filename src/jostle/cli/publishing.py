"""The verbs that take a finished run elsewhere: `track`, `card`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jostle import api
from jostle.cli import voice
from jostle.cli.app import app
from jostle.cli.options import Json, Quiet, Verbose


@app.command(help="Log a finished run with a tracker: TensorBoard, Weights & Biases or MLflow.")
def track(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="What `jostle run` wrote.")],
    to: Annotated[str, typer.Option("--to", metavar="TRACKER", help="tensorboard, wandb or mlflow.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="For what the tracker keeps; usual: RUN/tracking."),
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> None:
    voice.speak(quiet, verbose)
    where = api.track(run, to, folder=out)
    if as_json:
        voice.show_json({"format": 1, "tracker": to, "see": where})
    else:
        voice.show(voice.shown(where))


@app.command(help="Write a model card and a data set card for the Hugging Face hub; nothing is sent.")
def card(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="What `jostle run` wrote.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Gets model/ and dataset/.")],
    licence: Annotated[
        str | None, typer.Option("--licence", metavar="ID", help="As the hub writes it, such as apache-2.0.")
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> None:
    voice.speak(quiet, verbose)
    model, dataset = api.card(run, out, licence=licence)
    if as_json:
        voice.show_json({"format": 1, "model": str(model), "dataset": str(dataset)})
        return
    for path in (model, dataset):
        voice.show(voice.shown(str(path)))
