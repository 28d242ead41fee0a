"""The viewer within a notebook's page: a frame from this machine sees it, and one from elsewhere does not."""

from __future__ import annotations

import http.server
import queue
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.made_runs import made_run
from jostle.reporting.viewer.server import serve


def address_of(run: Path, **how: Any) -> str:
    """Of a viewer that ends with this process."""
    told: queue.Queue[str] = queue.Queue()
    threading.Thread(target=lambda: serve([run], started=told.put, **how), daemon=True).start()
    return told.get(timeout=60)


@pytest.fixture
def page_around() -> Iterator[Any]:
    """Serves a page that frames an address, as a notebook does, by the name that it is given."""
    held: list[str] = []

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = f'<iframe src="{held[-1]}" width="900" height="700"></iframe>'.encode()
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def around(address: str, host: str = "localhost") -> str:
        held.append(address)
        return f"http://{host}:{server.server_address[1]}/"

    yield around
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_run(tmp_path_factory.mktemp("inline") / "run")


def test_a_notebook_on_this_machine_frames_it(browser: Any, run: Path, page_around: Any) -> None:
    page = browser.new_page()
    page.goto(page_around(address_of(run, host="localhost", framed=True)))
    page.frame_locator("iframe").get_by_text("made-detection").first.wait_for(timeout=20_000)
    page.close()


def test_nobody_frames_it_otherwise(browser: Any, run: Path, page_around: Any) -> None:
    page = browser.new_page()
    page.goto(page_around(address_of(run)))
    page.wait_for_timeout(1500)
    assert page.frame_locator("iframe").get_by_text("made-detection").count() == 0
    page.close()
