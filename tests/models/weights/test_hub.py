"""Weights from the Hugging Face hub: huggingface_hub against a fake hub that runs in a thread."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import torch

from jostle.models.checkpoints import read_weights, write_weights
from jostle.models.weights.resolve import HubLocation

COMMIT = "0123456789abcdef0123456789abcdef01234567"
MALICIOUS_PICKLE = b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00true\x85R."  # runs a command when it is unpickled
FETCH_SCRIPT = """
import json, sys
from jostle.errors import JostleError
from jostle.models.weights.resolve import fetch_from_hub
try:
    print(json.dumps(["found", str(fetch_from_hub(sys.argv[1], folder=sys.argv[2] == "folder"))]))
except JostleError as error:
    print(json.dumps([type(error).__name__, str(error)]))
"""


class FakeHub:
    """Fake hub that answers the requests of huggingface_hub: files by repository and name."""

    def __init__(self) -> None:
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.downloads: list[str] = []
        self.url = ""


def _handler(hub: FakeHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None: ...

        def do_HEAD(self) -> None:
            self._handle(body=False)

        def do_GET(self) -> None:
            self._handle(body=True)

        def _handle(self, *, body: bool) -> None:
            parts = unquote(urlsplit(self.path).path).strip("/").split("/")
            listing = parts[:2] == ["api", "models"]
            repo = "/".join(parts[2:4] if listing else parts[:2])
            if repo not in hub.repositories:
                self._respond(401, {"X-Error-Code": "RepoNotFound"}, b"{}", body)
            elif listing and "tree" in parts:
                rows = [
                    {"type": "file", "path": path, "size": len(data), "oid": "0" * 40}
                    for path, data in hub.repositories[repo].items()
                ]
                self._respond(200, {"X-Repo-Commit": COMMIT}, json.dumps(rows).encode(), body)
            elif listing:
                files = [{"rfilename": name} for name in hub.repositories[repo]]
                self._respond(200, {}, json.dumps({"id": repo, "sha": COMMIT, "siblings": files}).encode(), body)
            else:
                name = "/".join(parts[4:])
                payload = hub.repositories[repo].get(name)
                if payload is None:
                    self._respond(404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT}, b"", body)
                    return
                if body:
                    hub.downloads.append(name)
                tag = hashlib.sha256(payload).hexdigest()
                self._respond(200, {"ETag": f'"{tag}"', "X-Repo-Commit": COMMIT}, payload, body)

        def _respond(self, code: int, headers: dict[str, str], content: bytes, body: bool) -> None:
            self.send_response(code)
            for name, value in ({"Content-Length": str(len(content))} | headers).items():
                self.send_header(name, value)
            self.end_headers()
            if body:
                self.wfile.write(content)

    return Handler


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    pytest.importorskip("huggingface_hub")
    fake_hub = FakeHub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(fake_hub))
    fake_hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield fake_hub
    server.shutdown()
    server.server_close()
    thread.join()


def fetch_in_process(hub_url: str, home: Path, location: str, target: str = "file") -> tuple[str, str]:
    """Call `fetch_from_hub` in a new process, as huggingface_hub reads its settings at import.

    Returns:
        "found" and the path, or the name of the error's class and its message.
    """
    variables = {
        "HF_ENDPOINT": hub_url,
        "HF_HOME": str(home),
        "HF_HUB_DISABLE_XET": "1",
        "JOSTLE_CACHE": str(home / "ours"),
    }
    process = subprocess.run(
        [sys.executable, "-c", FETCH_SCRIPT, location, target],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert process.returncode == 0, process.stderr
    kind, text = json.loads(process.stdout.splitlines()[-1])
    return kind, text


@pytest.fixture
def tensors(tmp_path: Path) -> bytes:
    write_weights({"a": torch.arange(3.0)}, tmp_path / "tensors.safetensors")
    return (tmp_path / "tensors.safetensors").read_bytes()


def test_single_safetensors_file_is_chosen(hub: FakeHub, tmp_path: Path, tensors: bytes) -> None:
    hub.repositories["org/net"] = {"README.md": b"x", "net.safetensors": tensors, "net.pth": b"\x80"}
    kind, path = fetch_in_process(hub.url, tmp_path, "hf:org/net")
    assert kind == "found", path
    assert Path(path).read_bytes() == tensors
    assert hub.downloads == ["net.safetensors"]
    fetch_in_process(hub.url, tmp_path, "hf:org/net")
    assert hub.downloads == ["net.safetensors"]  # the second time from its cache


def test_file_must_be_named_when_there_are_several(hub: FakeHub, tmp_path: Path, tensors: bytes) -> None:
    hub.repositories["org/net"] = {"a.safetensors": tensors, "deep/b.pth": b"bytes"}
    hub.repositories["org/two"] = {"a.safetensors": tensors, "b.safetensors": tensors}
    kind, path = fetch_in_process(hub.url, tmp_path, "hf:org/net/deep/b.pth")
    assert kind == "found", path
    assert Path(path).read_bytes() == b"bytes"
    kind, message = fetch_in_process(hub.url, tmp_path, "hf:org/two")
    assert (kind, "2 files of tensors" in message, "hf:org/two/FILE" in message) == ("BadValue", True, True)


def test_folder_download_contains_only_settings_and_tensors(hub: FakeHub, tmp_path: Path, tensors: bytes) -> None:
    hub.repositories["org/net"] = {
        "config.json": b"{}",
        "model.safetensors": tensors,
        "pytorch_model.bin": b"",
        "x.py": b"",
    }
    hub.repositories["org/net"] |= {"chat_template.jinja": b"x", "merges.txt": b"a b"}
    kind, folder = fetch_in_process(hub.url, tmp_path, "hf:org/net", "folder")
    assert kind == "found", folder
    names = sorted(path.name for path in Path(folder).iterdir())
    assert names == ["chat_template.jinja", "config.json", "merges.txt", "model.safetensors"]


def test_pytorch_bin_folder_is_converted_without_running_code(hub: FakeHub, tmp_path: Path) -> None:
    torch.save({"a": torch.arange(3.0)}, tmp_path / "old.bin")
    hub.repositories["org/old"] = {"config.json": b"{}", "pytorch_model.bin": (tmp_path / "old.bin").read_bytes()}
    kind, folder = fetch_in_process(hub.url, tmp_path, "hf:org/old", "folder")
    assert kind == "found", folder
    assert sorted(path.name for path in Path(folder).iterdir()) == ["config.json", "model.safetensors"]
    assert read_weights(Path(folder) / "model.safetensors")["a"].tolist() == [0, 1, 2]
    hub.repositories["org/evil"] = {"config.json": b"{}", "pytorch_model.bin": MALICIOUS_PICKLE}
    kind, message = fetch_in_process(hub.url, tmp_path, "hf:org/evil", "folder")
    assert kind == "CheckpointError"
    assert "nothing in it was run" in message


def test_missing_repositories_and_files_are_reported(hub: FakeHub, tmp_path: Path) -> None:
    hub.repositories["org/net"] = {"README.md": b"x"}
    for location, expected in (
        ("hf:org/none", "there is no such repository"),
        ("hf:org/net/a.pth", "has no file 'a.pth'"),
        ("hf:org/net", "holds no safetensors (README.md)"),
    ):
        kind, message = fetch_in_process(hub.url, tmp_path, location)
        assert kind == "BadValue", message
        assert expected in message


@pytest.mark.slow  # the library retries for half a minute
def test_unreachable_hub_error_names_the_file_to_download(tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    kind, message = fetch_in_process("http://127.0.0.1:1", tmp_path, "hf:org/net/a.safetensors")
    assert kind == "ResourceError"
    assert "fetch https://huggingface.co/org/net/resolve/main/a.safetensors by hand" in message


def test_hub_location_is_parsed() -> None:
    assert HubLocation.parse("hf:org/net") == HubLocation("org/net")
    assert HubLocation.parse("hf:org/net@v1.0") == HubLocation("org/net", "v1.0")
    assert HubLocation.parse("hf:o.r-g/n_e.t/deep/file.pth") == HubLocation("o.r-g/n_e.t", None, "deep/file.pth")
