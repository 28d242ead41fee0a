"""Server of OpenAI's protocol with scripted behaviour: it answers, stalls, cuts off or lies."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Behaviour = Callable[[BaseHTTPRequestHandler], None]


@dataclass
class LanguageServer:
    """What a test says and sees of the server."""

    url: str = ""
    behaviours: list[Behaviour] = field(default_factory=list)  # one a request, in order; the last stays
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def stall(self, handler: BaseHTTPRequestHandler) -> None:
        """Say nothing until the test is over."""
        self.ended.wait(30)

    def trickle(self, handler: BaseHTTPRequestHandler) -> None:
        """Begin a reply that never ends, a byte at a time."""
        handler.send_response(200)
        handler.send_header("Content-Length", "1000000")
        handler.end_headers()
        while not self.ended.wait(0.02):
            handler.wfile.write(b" ")


def chat(text: str | None = "A", top: dict[str, float] | None = None) -> dict[str, Any]:
    """Return a reply in the protocol's layout."""
    rows = [{"token": token, "logprob": value, "bytes": None} for token, value in (top or {}).items()]
    choice: dict[str, Any] = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    if top is not None:
        choice["logprobs"] = {"content": [{"token": rows[0]["token"], "logprob": -0.1, "top_logprobs": rows}]}
    return {"id": "1", "object": "chat.completion", "model": "m", "choices": [choice]}


def reply(content: object, status: int = 200, *, promise: int = 0, **headers: str) -> Behaviour:
    """Return a behaviour: a body as JSON, or bytes as they are; `promise` announces so many bytes more."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()

    def behave(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body) + promise))
        handler.end_headers()
        handler.wfile.write(body)

    return behave


def hang_up(handler: BaseHTTPRequestHandler) -> None:
    """Close the connection without a word."""
    handler.close_connection = True


@contextmanager
def language_server(*behaviours: Behaviour) -> Iterator[LanguageServer]:
    """Run a server on a free port of this machine."""
    state = LanguageServer(behaviours=list(behaviours))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with state.lock:
                state.requests.append(json.loads(body))
                state.headers.append({"path": self.path, **dict(self.headers.items())})
                behave = state.behaviours.pop(0) if len(state.behaviours) > 1 else state.behaviours[0]
            with suppress(OSError):
                behave(self)

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield state
    finally:
        state.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()
