"""The viewer as a process: address, port, concurrent requests and shutdown."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import sys
import time
from pathlib import Path

import pytest

import jostle.api
from helpers.served import Served, served
from jostle.errors import DataError, MissingExtra, ResourceError
from jostle.reporting.viewer.server import serve

CELL = "thumos14-c-black_frame-3"


async def get(server: Served, path: str, *headers: str) -> tuple[int, bytes]:
    """Send one HTTP request over a raw socket and return status and body."""
    host = server.origin.removeprefix("http://")
    name, port = host.split(":")
    reader, writer = await asyncio.open_connection(name, int(port))
    cookie = f"Cookie: jostle-{port}={server.token}"
    lines = [f"GET {path} HTTP/1.1", f"Host: {host}", "Connection: close", cookie, *headers]
    writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
    await writer.drain()
    response = await reader.read()
    writer.close()
    head, _, body = response.partition(b"\r\n\r\n")
    return int(head.split()[1]) if head else 0, body


def memory_of(process: int) -> int:
    """Return the resident memory of a process in bytes."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.mark.fault("F85")
def test_F85_port_in_use_is_reported(runs: dict[str, Path]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ResourceError, match=f"port {port} is taken by another program; leave --port away"):
            serve([runs["detection"]], port=port, started=pytest.fail)


def test_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no run\.json there; give the folder that `jostle run` wrote"):
        jostle.api.view(tmp_path, browser=False)


def test_missing_packages_name_the_extra_to_install(runs: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MissingExtra, match=re.escape("pip install 'jostle[view]'")):
        jostle.api.view(runs["detection"], browser=False)


@pytest.mark.slow
def test_viewer_process_serves_and_stops(runs: dict[str, Path], tmp_path: Path) -> None:
    with served(tmp_path, runs["detection"]) as server:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/runs/detection\?token=[\w-]{32}", server.address)
        assert asyncio.run(get(server, "/runs/detection.json"))[0] == 200
        assert asyncio.run(get(server, "/runs/detection.json", "Origin: http://evil.example"))[0] == 403
        code, stderr = server.end()
        assert (code, stderr.strip()) == (0, "Ctrl-C ends it")


@pytest.mark.fault("F81")
@pytest.mark.slow
def test_F81_server_listens_on_localhost_only(runs: dict[str, Path], tmp_path: Path) -> None:
    with served(tmp_path, runs["detection"]) as server:
        port = int(server.origin.rpartition(":")[2])
        listening = [
            line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines()[1:] if line.split()[3] == "0A"
        ]
        assert [name for name in listening if int(name.partition(":")[2], 16) == port] == [f"0100007F:{port:04X}"]
        assert server.end(signal.SIGTERM)[0] == 143


@pytest.mark.fault("F83")
@pytest.mark.slow
def test_F83_a_thousand_requests_at_once(runs: dict[str, Path], tmp_path: Path) -> None:
    """Every request is answered or rejected, and neither memory nor file handles leak."""
    with served(tmp_path, runs["detection"]) as server:
        address = f"/media/detection/{CELL}/a"
        end = time.monotonic() + 60
        while b'"ready"' not in asyncio.run(get(server, f"{address}.json"))[1]:
            assert time.monotonic() < end
            time.sleep(0.1)
        process = server.process.pid
        before = memory_of(process)

        async def many() -> list[int]:
            ranges = [f"Range: bytes={i % 5000}-" for i in range(1000)]
            responses = await asyncio.gather(
                *(get(server, f"{address}.mp4", range_header) for range_header in ranges), return_exceptions=True
            )
            return [response[0] if isinstance(response, tuple) else 0 for response in responses]

        codes = asyncio.run(many())
        assert set(codes) <= {206, 0}  # 0: there was no handle left for the connection
        assert codes.count(206) >= 800
        assert memory_of(process) - before < 100 * 2**20
        assert asyncio.run(get(server, f"{address}.mp4"))[0] == 200
        assert len(os.listdir(f"/proc/{process}/fd")) < 60
