"""HTTP server on the loopback that answers range requests, and misbehaves where a test asks for it."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar


@dataclass
class RangeServer:
    """Content by path, and what goes wrong with it.

    Attributes:
        files: content by path, such as `/a.mp4`.
        cut: paths whose answers break off in the middle.
        changing: paths whose content is another after the first request for it.
        statuses: paths that are refused, with their status.
        slow: seconds before an answer with content begins, by path.
        ranges: whether requests for a range get it, or else the whole.
        requests: (method, path, range) of each request.
    """

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    cut: set[str] = field(default_factory=set)
    changing: set[str] = field(default_factory=set)
    statuses: dict[str, int] = field(default_factory=dict)
    slow: dict[str, float] = field(default_factory=dict)
    ranges: bool = True
    requests: list[tuple[str, str, str]] = field(default_factory=list)

    def url(self, path: str) -> str:
        """Address of a path."""
        return self.address + path


class Handler(BaseHTTPRequestHandler):
    """Answers HEAD and GET, with ranges."""

    protocol_version = "HTTP/1.1"
    served: ClassVar[RangeServer]

    def do_HEAD(self) -> None:
        self._answer(with_content=False)

    def do_GET(self) -> None:
        self._answer(with_content=True)

    def _answer(self, *, with_content: bool) -> None:
        served, path = self.served, self.path.partition("?")[0]
        wanted = self.headers.get("Range", "")
        served.requests.append((self.command, self.path, wanted))
        content = served.files.get(path)
        status = served.statuses.get(path, 404 if content is None else 200)
        if content is None or status != 200:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        etag = sha256(content).hexdigest()[:16]
        part = re.fullmatch(r"bytes=(\d+)-(\d*)", wanted) if served.ranges else None
        lo, hi = (int(part[1]), min(int(part[2] or len(content)) + 1, len(content))) if part else (0, len(content))
        self.send_response(206 if part else 200)
        if part:
            self.send_header("Content-Range", f"bytes {lo}-{hi - 1}/{len(content)}")
        self.send_header("Content-Length", str(hi - lo))
        self.send_header("Accept-Ranges", "bytes" if served.ranges else "none")
        self.send_header("ETag", f'"{etag}"')
        self.end_headers()
        if not with_content:
            return
        time.sleep(served.slow.get(path, 0.0))
        with contextlib.suppress(ConnectionError):
            self.wfile.write(content[lo : (lo + hi) // 2 if path in served.cut else hi])
        if path in served.cut:
            self.close_connection = True
        if path in served.changing:
            served.files[path] = content[:-1] + bytes([content[-1] ^ 1])

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def serve() -> Iterator[RangeServer]:
    """Serve on a free port until the block ends."""
    served = RangeServer()
    handler = type("ServedHandler", (Handler,), {"served": served})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        served.address = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield served
        finally:
            server.shutdown()
            thread.join()
