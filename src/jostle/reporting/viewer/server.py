"""The viewer's server: its addresses, and its start on the loopback interface with a secret in the address.

There are pages, their JSON twins, videos in parts, and the few files that pages are made of.
"""

from __future__ import annotations

import errno
import re
import secrets
import signal
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException

from jostle.core.environment import cache_folder
from jostle.errors import BadValue, DataError, JostleError, MissingExtra, ResourceError
from jostle.reporting.charts.palette import loss_colours
from jostle.reporting.viewer import pages
from jostle.reporting.viewer.access import Guard
from jostle.reporting.viewer.excerpt_pages import CLEAN_EXCERPT, gallery_page, probe_page, spec_of, trial_of
from jostle.reporting.viewer.rendering import DamagedExcerpt, Excerpt, Showing, still
from jostle.reporting.viewer.runs import RunCollection, Snapshot, Unfinished
from jostle.reporting.viewer.store import MediaStore, Work
from jostle.reporting.viewer.video_page import video_page

KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html"}
NOT_YET = "not rendered yet; ask for the same address with .json\n"
Page = Callable[[], dict[str, Any]]
_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")


class NotHere(Exception):
    """Error for an address that leads nowhere."""


def viewer_app(collection: RunCollection, store: MediaStore, *, token: str, port: int, framed: bool = False) -> Guard:
    """The application with its guard before it; `framed` lets a notebook on this machine show it within its page."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        store.close()
        collection.close()

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False, lifespan=lifespan)
    _add_pages(app, collection)
    _add_media(app, collection, store)
    _add_files(app)

    @app.exception_handler(NotHere)
    async def not_here(request: Request, _: NotHere) -> Response:
        return _failed(request, 404, "There is nothing at this address.")

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        return _failed(request, error.status_code, "There is nothing at this address.")

    @app.exception_handler(JostleError)
    async def failed(request: Request, error: JostleError) -> Response:
        return _failed(request, 503 if isinstance(error, DataError) else 400, str(error))

    return Guard(app, token=token, port=port, framed=framed)


def _failed(request: Request, status: int, message: str) -> Response:
    """An error as a page to people and as JSON to programs; nobody's text is read as HTML."""
    if request.url.path.endswith(".json"):
        return JSONResponse({"format": 1, "page": "error", "title": "Error", "message": message}, status)
    if "." in request.url.path.rpartition("/")[2] or request.url.path.startswith("/static"):
        return Response(message + "\n", status, media_type="text/plain")
    return Response(_files()["shell.html"], status, media_type="text/html")


def _add_pages(app: FastAPI, collection: RunCollection) -> None:
    def page(path: str, find: Callable[[Request], Page]) -> None:
        """A page and its JSON: the page is the same shell everywhere, which fetches the JSON and draws it."""

        def shell(request: Request) -> Response:
            find(request)  # so that an address without a page answers 404
            return Response(_files()["shell.html"], media_type="text/html")

        def twin(request: Request) -> Response:
            return JSONResponse(find(request)())

        app.add_api_route("/index.json" if path == "/" else f"{path}.json", twin, methods=["GET", "HEAD"])
        app.add_api_route(path, shell, methods=["GET", "HEAD"])

    def of_run(find: Callable[[Snapshot, Request], Page]) -> Callable[[Request], Page]:
        """Return a page of a run, or a waiting page until its analysis is finished."""

        def found(request: Request) -> Page:
            run = _requested_run(collection, request)
            return partial(pages.unfinished_page, run) if isinstance(run, Unfinished) else find(run, request)

        return found

    def cell(run: Snapshot, request: Request) -> Page:
        show = _count(request, "show", pages.VIDEOS_PER_PAGE)
        return partial(pages.cell_page, run, _cell(run, request), show=show)

    def video(run: Snapshot, request: Request) -> Page:
        return partial(video_page, run, _cell(run, request), _video(run, request), tiou=_share(request, "tiou"))

    page("/", lambda _: partial(pages.index_page, collection))
    page("/runs/{run}", of_run(lambda run, _: partial(pages.run_page, run)))
    page("/runs/{run}/gallery", of_run(lambda run, _: partial(gallery_page, run)))
    page("/runs/{run}/probe", of_run(lambda run, _: partial(probe_page, run)))
    page("/runs/{run}/cells/{cell}", of_run(cell))
    page("/runs/{run}/cells/{cell}/videos/{video}", of_run(video))


def _add_media(app: FastAPI, collection: RunCollection, store: MediaStore) -> None:
    stills = threading.Semaphore(2)

    def showing(request: Request) -> Work:
        found = _finished(collection, request)
        name = _video(found, request)
        return Showing(found.record, name, _cell(found, request), _source(found, name))

    def excerpt(request: Request) -> Work:
        found = _finished(collection, request)
        name, key = _video(found, request), request.path_params["spec"]
        spec = None if key == CLEAN_EXCERPT else spec_of(key)
        if spec is None and key != CLEAN_EXCERPT:
            raise NotHere
        return Excerpt(name, spec, found.record.about.seed, _source(found, name), found.record.rates.get(name))

    def damaged(request: Request) -> Work:
        found = _finished(collection, request)
        name, trial = _video(found, request), trial_of(found, request.path_params["trial"])
        if trial is None:
            raise NotHere
        rate = found.record.rates.get(name)
        return DamagedExcerpt(name, *trial, found.record.about.seed, _source(found, name), rate)

    def media(path: str, work: Callable[[Request], Work]) -> None:
        def state(request: Request) -> Response:
            try:
                return JSONResponse({"format": 1, **store.ask(work(request)).to_dict()})
            except JostleError as error:
                return JSONResponse({"format": 1, "state": "failed", "share": 0.0, "film": None, "message": str(error)})

        def video(request: Request) -> Response:
            ready = store.ready(work(request))
            if ready is None or ready.path is None:
                return Response(NOT_YET, 503, {"retry-after": "1"})
            return video_response(ready.path, request)

        def frame(request: Request) -> Response:
            ready = store.ready(work(request))
            if ready is None or ready.path is None:
                return Response(NOT_YET, 503, {"retry-after": "1"})
            with stills:  # a few at a time: each holds a decoder
                return Response(still(ready.path, _count(request, "frame", 0)), media_type="image/jpeg")

        app.add_api_route(f"{path}.json", state, methods=["GET", "HEAD"])
        app.add_api_route(f"{path}.mp4", video, methods=["GET", "HEAD"])
        app.add_api_route(f"{path}.jpg", frame, methods=["GET", "HEAD"])

    media("/media/{run}/{cell}/{video}", showing)
    media("/excerpts/{run}/{spec}/{video}", excerpt)
    media("/probes/{run}/{trial}/{video}", damaged)


def video_response(path: Path, request: Request) -> Response:
    """Return a video or the requested range of it: 200, 206, 304, 404 or 416.

    What is no single range of bytes counts as no range at all, as RFC 9110 allows; Starlette would answer 400.
    """
    try:
        state = path.stat()
    except OSError:
        return PlainTextResponse("this file is no longer there", 404)
    response = FileResponse(path, media_type="video/mp4", stat_result=state)
    response.headers["cache-control"] = "private, no-cache"
    tags = request.headers.get("if-none-match", "").split(",")
    if response.headers["etag"] in [tag.strip().removeprefix("W/") for tag in tags]:
        kept = {key: value for key, value in response.headers.items() if not key.startswith("content-")}
        return Response(status_code=304, headers=kept)
    match = _RANGE.fullmatch(request.headers.get("range", "").strip())
    if not match or not any(match.groups()) or (all(match.groups()) and int(match[2]) < int(match[1])):
        request.scope["headers"] = [pair for pair in request.scope["headers"] if pair[0] != b"range"]
    return response


def _add_files(app: FastAPI) -> None:
    def static(name: str) -> Response:
        if name not in _files():
            raise NotHere
        return Response(_files()[name], media_type=KINDS[Path(name).suffix], headers={"cache-control": "no-cache"})

    app.add_api_route("/static/{name}", static, methods=["GET", "HEAD"])


LOSS_COLOURS = "heat.css"  # as in the map of the report


@cache
def _files() -> dict[str, bytes]:
    """The files that pages are made of, read once; only their names lead anywhere."""
    folder = resources.files("jostle.reporting.viewer") / "static"
    files = {entry.name: entry.read_bytes() for entry in folder.iterdir() if Path(entry.name).suffix in KINDS}
    return files | {LOSS_COLOURS: loss_colours().encode()}


def _requested_run(collection: RunCollection, request: Request) -> Snapshot | Unfinished:
    found = collection.run(request.path_params["run"])
    if found is None:
        raise NotHere
    return found


def _finished(collection: RunCollection, request: Request) -> Snapshot:
    found = _requested_run(collection, request)
    if isinstance(found, Unfinished):
        raise DataError(f"the run has no scores yet: {found.why}")
    return found


def _cell(snapshot: Snapshot, request: Request) -> str:
    if request.path_params["cell"] not in snapshot.cells:
        raise NotHere
    return snapshot.cells[request.path_params["cell"]]


def _video(snapshot: Snapshot, request: Request) -> str:
    name = snapshot.videos.name(request.path_params["video"])
    if name is None:
        raise NotHere
    return name


def _source(snapshot: Snapshot, video: str) -> Path:
    path = snapshot.record.sources.get(video)
    if path is None:
        raise DataError(f"{video}: the run does not say where it lies")
    return path


def _count(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, "")
    return min(int(text), 100_000) if text.isascii() and text.isdecimal() and len(text) < 10 else default


def _share(request: Request, name: str) -> float | None:
    """A number above 0 and up to 1 from the address; anything else counts as not given."""
    try:
        value = float(request.query_params.get(name, ""))
    except ValueError:
        return None
    return value if 0 < value <= 1 else None


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
