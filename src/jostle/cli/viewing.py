"""The verb that shows runs in a browser: `view`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from jostle import api
from jostle.cli import voice
from jostle.cli.app import app
from jostle.cli.options import Quiet, Verbose


@app.command(help="Look at runs in a browser: heat map, videos by damage, clean and corrupted side by side.")
def view(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders that `jostle run` wrote.")],
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port on this machine; 0 for any that is free.")
    ] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> None:
    voice.speak(quiet, verbose)

    def started(address: str) -> None:
        voice.show(address)
        sys.stdout.flush()
        voice.remark("Ctrl-C ends it")

    api.view(runs, port=port, browser=not no_browser, verbose=verbose > 0, started=started)
