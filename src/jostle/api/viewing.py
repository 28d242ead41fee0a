"""The verb that shows runs in a browser: `view`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path


def view(
    runs: str | Path | Sequence[str | Path],
    *,
    port: int = 0,
    browser: bool = True,
    verbose: bool = False,
    started: Callable[[str], None] | None = None,
) -> None:
    """Show runs in a browser on this machine, until it is interrupted.

    Args:
        runs: a run folder, or several.
        port: to listen on; 0 for any that is free.
        browser: whether to open one.
        verbose: whether the server says on stderr what fails.
        started: called with the address once it answers.

    Raises:
        DataError: if a folder is no run.
        ResourceError: if the port is taken.
        MissingExtra: if the packages of the viewer are not installed.
    """
    from jostle.viewer.serving import serve

    given = [runs] if isinstance(runs, str | Path) else runs

    def tell(address: str) -> None:
        if started is not None:
            started(address)
        if browser:
            _open(address)

    serve([Path(run) for run in given], port=port, verbose=verbose, started=tell)


def _open(address: str) -> None:
    """Open a browser without waiting for it; a machine that has none is left alone."""
    import threading
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
