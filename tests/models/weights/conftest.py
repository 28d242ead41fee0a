"""Local HTTPS file server with a self-signed certificate; its failures can be configured."""

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
class FileServer:
    """Contents and behaviour of the HTTPS file server.

    Attributes:
        files: content by path.
        truncate_after: bytes after which a response is cut off, one number per response; later ones are complete.
        stall: whether a truncated response keeps the connection open without sending anything.
        content_length: Content-Length to send instead of the true one; an empty string for no such header.
        redirects: target URL by path.
        statuses: status codes to send instead of a file, one per response.
        omit_etag: whether responses have no ETag.
        requests: (path, Range header) of every request.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    truncate_after: list[int] = field(default_factory=list)
    stall: bool = False
    content_length: int | str | None = None
    redirects: dict[str, str] = field(default_factory=dict)
    statuses: list[int] = field(default_factory=list)
    omit_etag: bool = False
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    url: str = ""
    released: threading.Event = field(default_factory=threading.Event)


def _handler(file_server: FileServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: Any) -> None: ...

        def do_GET(self) -> None:
            file_server.requests.append((self.path, self.headers.get("Range")))
            self.close_connection = True
            if file_server.statuses:
                self._head(file_server.statuses.pop(0), {"Content-Length": "0"})
            elif self.path in file_server.redirects:
                self._head(302, {"Location": file_server.redirects[self.path], "Content-Length": "0"})
            elif self.path not in file_server.files:
                self._head(404, {"Content-Length": "0"})
            else:
                self._send(file_server.files[self.path])

        def _send(self, content: bytes) -> None:
            tag = f'"{hash(content):x}"'
            begin, code, headers = 0, 200, {} if file_server.omit_etag else {"ETag": tag}
            requested_range = self.headers.get("Range")
            if requested_range and self.headers.get("If-Range") == tag:
                begin = int(requested_range.removeprefix("bytes=").removesuffix("-"))
                if begin >= len(content):
                    self._head(416, {"Content-Length": "0"})
                    return
                code = 206
                headers["Content-Range"] = f"bytes {begin}-{len(content) - 1}/{len(content)}"
            body = content[begin:]
            length = str(len(body) if file_server.content_length is None else file_server.content_length)
            self._head(code, headers | ({"Content-Length": length} if length else {}))
            self.wfile.write(body[: file_server.truncate_after[0]] if file_server.truncate_after else body)
            self.wfile.flush()
            if file_server.truncate_after:
                file_server.truncate_after.pop(0)
                if file_server.stall:
                    file_server.released.wait(10)

        def _head(self, code: int, headers: dict[str, str]) -> None:
            self.send_response(code)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()

    return Handler


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a self-signed certificate for 127.0.0.1 and its key."""
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
def file_server(certificate: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    """Empty HTTPS server whose certificate this process trusts by SSL_CERT_FILE."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
    monkeypatch.setattr(download, "PAUSE_S", 0.01)
    monkeypatch.setattr(download, "STALL_S", 0.5)
    for name in ("https_proxy", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    server = FileServer()
    with _RunningServer(server, certificate):
        yield server


class _RunningServer:
    def __init__(self, file_server: FileServer, certificate: Path) -> None:
        self._file_server = file_server
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(file_server))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._server.handle_error = lambda *_: None  # a client may hang up
        file_server.url = f"https://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._file_server.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
