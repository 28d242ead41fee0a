"""The addresses of the viewer: pages, their JSON twins, videos in parts, and the few files that pages are made of."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from jostle.errors import DataError, JostleError
from jostle.reporting.viewer import run_pages
from jostle.reporting.viewer.access import Guard
from jostle.reporting.viewer.gallery_page import CLEAN_EXCERPT, gallery_page, spec_of
from jostle.reporting.viewer.ranges import file_response
from jostle.reporting.viewer.rendering import Excerpt, Showing, still
from jostle.reporting.viewer.runs import RunCollection, Snapshot, Unfinished
from jostle.reporting.viewer.store import MediaStore, Work
from jostle.reporting.viewer.video_page import video_page

KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".html": "text/html"}
NOT_YET = "not rendered yet; ask for the same address with .json\n"
Page = Callable[[], dict[str, Any]]


class NotHere(Exception):
    """Error for an address that leads nowhere."""


def viewer_app(collection: RunCollection, store: MediaStore, *, token: str, port: int, framed: bool = False) -> Guard:
    """The application, with its guard before it.

    Args:
        collection: the runs to serve.
        store: renders videos and keeps them.
        token: the secret of the printed address.
        port: that is listened on.
        framed: whether a notebook on this machine may show it within its page.
    """

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
        """A page and its twin: the page is the same shell everywhere, which fetches the twin and draws it."""

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
            return partial(run_pages.unfinished_page, run) if isinstance(run, Unfinished) else find(run, request)

        return found

    def cell(run: Snapshot, request: Request) -> Page:
        show = _count(request, "show", run_pages.SHOWN)
        return partial(run_pages.cell_page, run, _cell(run, request), show=show)

    def video(run: Snapshot, request: Request) -> Page:
        return partial(video_page, run, _cell(run, request), _video(run, request), tiou=_share(request, "tiou"))

    page("/", lambda _: partial(run_pages.index_page, collection))
    page("/runs/{run}", of_run(lambda run, _: partial(run_pages.run_page, run)))
    page("/runs/{run}/gallery", of_run(lambda run, _: partial(gallery_page, run)))
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

    def media(path: str, work: Callable[[Request], Work]) -> None:
        def state(request: Request) -> Response:
            try:
                return JSONResponse({"format": 1, **store.ask(work(request)).to_dict()})
            except JostleError as error:
                return JSONResponse({"format": 1, "state": "failed", "share": 0.0, "film": None, "message": str(error)})

        async def video(request: Request) -> Response:
            ready = await run_in_threadpool(lambda: store.ready(work(request)))
            if ready is None or ready.path is None:
                return Response(NOT_YET, 503, {"retry-after": "1"})
            return await file_response(ready.path, request.headers, kind="video/mp4", head=request.method == "HEAD")

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


def _add_files(app: FastAPI) -> None:
    def static(name: str) -> Response:
        if name not in _files():
            raise NotHere
        return Response(_files()[name], media_type=KINDS[Path(name).suffix], headers={"cache-control": "no-cache"})

    app.add_api_route("/static/{name}", static, methods=["GET", "HEAD"])


@cache
def _files() -> dict[str, bytes]:
    """The files that pages are made of, read once; only their names lead anywhere."""
    folder = resources.files("jostle.reporting.viewer") / "static"
    return {entry.name: entry.read_bytes() for entry in folder.iterdir() if Path(entry.name).suffix in KINDS}


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
