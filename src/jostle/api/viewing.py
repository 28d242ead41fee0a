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
    """Show runs in a browser on this machine, until it is interrupted; in a notebook, below the cell, until that ends.

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
    from jostle.progress import in_notebook
    from jostle.viewer.serving import serve

    given = [runs] if isinstance(runs, str | Path) else runs
    if browser and in_notebook():
        _inline([Path(run) for run in given], port)
        return

    def tell(address: str) -> None:
        if started is not None:
            started(address)
        if browser:
            _open(address)

    serve([Path(run) for run in given], port=port, verbose=verbose, started=tell)


def _inline(runs: list[Path], port: int) -> None:
    """Serve from a thread that ends with the notebook, and show the page in a frame.

    The address has `localhost`, as the notebook's usually does: browsers send no cookie to a frame of another site.
    """
    import queue
    import threading

    from IPython.display import HTML, display

    from jostle.viewer.serving import serve

    told: queue.Queue[str | BaseException] = queue.Queue()

    def work() -> None:
        try:
            serve(runs, port=port, host="localhost", framed=True, started=told.put)
        except BaseException as error:  # it belongs to whoever asked, and not to this thread
            told.put(error)

    threading.Thread(target=work, daemon=True, name="jostle viewer").start()
    address = told.get()
    if isinstance(address, BaseException):
        raise address
    frame = f'<iframe src="{address}" width="100%" height="720" style="border:1px solid rgba(128,128,128,.4)"></iframe>'
    display(HTML(f'{frame}<p><a href="{address}" target="_blank" rel="noreferrer">open in a tab of its own</a></p>'))


def _open(address: str) -> None:
    """Open a browser without waiting for it; a machine that has none is left alone."""
    import threading
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
