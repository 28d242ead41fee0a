"""A server of files by https on this machine, with a certificate made on the spot, that can be told to misbehave."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from jostle.models.weights import download


@dataclass
class Files:
    """What the server holds, and how it behaves.

    Attributes:
        held: bytes by path.
        cut: bytes after which it ends an answer, one number an answer; then it behaves.
        stall: whether it then keeps the line open and says nothing.
        claims: a length to claim instead of the true one; an empty text for none.
        moved: where else it sends a path on to.
        status: an answer instead of a file, one an answer.
        tagless: whether it does not say which version a file is.
        asked: (path, Range) of every request.
    """

    held: dict[str, bytes] = field(default_factory=dict)
    cut: list[int] = field(default_factory=list)
    stall: bool = False
    claims: int | str | None = None
    moved: dict[str, str] = field(default_factory=dict)
    status: list[int] = field(default_factory=list)
    tagless: bool = False
    asked: list[tuple[str, str | None]] = field(default_factory=list)
    url: str = ""
    released: threading.Event = field(default_factory=threading.Event)


def _handler(files: Files) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None: ...

        def do_GET(self) -> None:
            files.asked.append((self.path, self.headers.get("Range")))
            self.close_connection = True
            if files.status:
                self._head(files.status.pop(0), {"Content-Length": "0"})
            elif self.path in files.moved:
                self._head(302, {"Location": files.moved[self.path], "Content-Length": "0"})
            elif self.path not in files.held:
                self._head(404, {"Content-Length": "0"})
            else:
                self._send(files.held[self.path])

        def _send(self, whole: bytes) -> None:
            tag = f'"{hash(whole):x}"'
            begin, code, headers = 0, 200, {} if files.tagless else {"ETag": tag}
            wanted = self.headers.get("Range")
            if wanted and self.headers.get("If-Range") == tag:
                begin = int(wanted.removeprefix("bytes=").removesuffix("-"))
                if begin >= len(whole):
                    self._head(416, {"Content-Length": "0"})
                    return
                code = 206
                headers["Content-Range"] = f"bytes {begin}-{len(whole) - 1}/{len(whole)}"
            body = whole[begin:]
            length = str(len(body) if files.claims is None else files.claims)
            self._head(code, headers | ({"Content-Length": length} if length else {}))
            self.wfile.write(body[: files.cut[0]] if files.cut else body)
            self.wfile.flush()
            if files.cut:
                files.cut.pop(0)
                if files.stall:
                    files.released.wait(10)

        def _head(self, code: int, headers: dict[str, str]) -> None:
            self.send_response(code)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()

    return Handler


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for 127.0.0.1 and its key, in one file."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("certificate")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
        + ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
        + ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")],
        check=True,
        capture_output=True,
    )
    return folder


@pytest.fixture
def files(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Files]:
    """An empty server that this process trusts, as it trusts others: by the certificates it is told of."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
    monkeypatch.setattr(download, "PAUSE_S", 0.01)
    monkeypatch.setattr(download, "STALL_S", 0.5)
    for name in ("https_proxy", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    made = Files()
    with _serving(made, certificate):
        yield made


class _serving:
    def __init__(self, files: Files, certificate: Path) -> None:
        self._files = files
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(files))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._server.handle_error = lambda *_: None  # a client may hang up
        files.url = f"https://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._files.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
