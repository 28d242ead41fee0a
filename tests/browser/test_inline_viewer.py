"""The viewer in an iframe of a notebook: allowed for pages of this machine only."""

from __future__ import annotations

import http.server
import queue
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.synthetic_runs import write_run
from jostle.reporting.viewer.server import serve


def address_of(run: Path, **options: Any) -> str:
    """Start a viewer that ends with this process and return its address."""
    addresses: queue.Queue[str] = queue.Queue()
    threading.Thread(target=lambda: serve([run], started=addresses.put, **options), daemon=True).start()
    return addresses.get(timeout=60)


@pytest.fixture
def framing_page() -> Iterator[Any]:
    """Serve a page that shows an address in an iframe, as a notebook does, and return its URL by host name."""
    addresses: list[str] = []

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = f'<iframe src="{addresses[-1]}" width="900" height="700"></iframe>'.encode()
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def frame_page(address: str, host: str = "localhost") -> str:
        addresses.append(address)
        return f"http://{host}:{server.server_address[1]}/"

    yield frame_page
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("options", [{"host": "localhost", "framed": True}, {}], ids=["asked", "by default"])
def test_only_a_notebook_on_this_machine_that_asks_may_frame_the_viewer(
    browser: Any, tmp_path: Path, framing_page: Any, options: dict[str, Any]
) -> None:
    page = browser.new_page()
    page.goto(framing_page(address_of(write_run(tmp_path / "run"), **options)))
    shown = page.frame_locator("iframe").get_by_text("made-detection")
    if options:
        shown.first.wait_for(timeout=20_000)
    else:
        page.wait_for_timeout(1500)
        assert shown.count() == 0
    page.close()
