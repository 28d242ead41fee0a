"""Starting the viewer: a socket on the loopback interface, an address with a secret, and a quiet end."""

from __future__ import annotations

import errno
import secrets
import signal
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jostle.core.cache import cache_folder
from jostle.errors import BadValue, MissingExtra, ResourceError

HOST = "127.0.0.1"


def serve(
    runs: Iterable[Path],
    *,
    port: int = 0,
    verbose: bool = False,
    host: str = HOST,
    framed: bool = False,
    started: Callable[[str], None],
) -> None:
    """Serve runs until the process is stopped.

    Args:
        runs: run folders.
        port: to listen on; 0 for any that is free.
        verbose: whether the server says on stderr what fails.
        host: the name of this machine in the address, as the page that frames it has it.
        framed: whether a notebook on this machine may show it within its page.
        started: called once with the address to open, when it answers.

    Raises:
        DataError: if a folder is no run.
        ResourceError: if the port is taken.
        MissingExtra: if FastAPI or uvicorn is not installed.
    """
    try:
        import uvicorn

        from jostle.reporting.viewer.server import viewer_app
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith("jostle"):
            raise
        raise MissingExtra("the viewer", "view") from None
    from jostle.reporting.viewer.runs import RunCollection
    from jostle.reporting.viewer.store import MediaStore

    runs_served = RunCollection(runs)
    if not runs_served.folders:
        raise BadValue("no run to show; give the folder that `jostle run` wrote")
    with _listening(port) as listener:
        bound = listener.getsockname()[1]
        token = secrets.token_urlsafe(24)
        app = viewer_app(runs_served, MediaStore(cache_folder() / "viewer"), token=token, port=bound, framed=framed)
        logging: dict[str, Any] = {} if verbose else {"log_config": None, "log_level": "critical"}
        config = uvicorn.Config(
            app,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            timeout_graceful_shutdown=2,
            **logging,
        )
        only = next(iter(runs_served.folders)) if len(runs_served.folders) == 1 else None
        path = f"/runs/{only}" if only else "/"

        class Server(uvicorn.Server):
            """Says where it is as soon as it answers; Ctrl-C is how it is ended, and no interruption."""

            @contextmanager
            def capture_signals(self) -> Iterator[None]:
                with super().capture_signals():
                    yield
                    self._captured_signals = [one for one in self._captured_signals if one != signal.SIGINT]

            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                await super().startup(sockets)
                started(f"http://{host}:{bound}{path}?token={token}")

        Server(config).run(sockets=[listener])


def _listening(port: int) -> socket.socket:
    """A socket on the loopback interface; the port of a viewer that has just ended may be used again."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen(1024)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise ResourceError(
                f"port {port} is taken by another program; leave --port away for one that is free", fault="F85"
            ) from None
        if error.errno == errno.EACCES:
            raise ResourceError(f"port {port} is not for ordinary users; take one above 1023", fault="F85") from None
        raise
    return listener
