"""The program that the verbs are put into."""

from __future__ import annotations

from typing import Annotated

import typer

from jostle import __version__
from jostle.cli import voice

app = typer.Typer(
    name="jostle",
    help="Shows how badly a video model takes a knock, why, and how to train one that does not flinch.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        voice.show(f"jostle {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass
