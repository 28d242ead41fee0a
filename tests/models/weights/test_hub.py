"""Weights of the Hugging Face hub, through its own library, from a hub that is a thread of this test."""

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

from jostle.errors import MissingExtra
from jostle.models.checkpoints import read_weights, write_weights
from jostle.models.weights.resolve import HubLocation, fetch_from_hub

COMMIT = "0123456789abcdef0123456789abcdef01234567"
EVIL = b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00true\x85R."  # runs a command, if it is trusted
CODE = """
import json, sys
from jostle.errors import JostleError
from jostle.models.weights.resolve import fetch_from_hub
try:
    print(json.dumps(["found", str(fetch_from_hub(sys.argv[1], folder=sys.argv[2] == "folder"))]))
except JostleError as error:
    print(json.dumps([type(error).__name__, str(error)]))
"""


class Hub:
    """What the hub holds by repository and file; it is asked as huggingface_hub asks."""

    def __init__(self) -> None:
        self.held: dict[str, dict[str, bytes]] = {}
        self.sent: list[str] = []
        self.url = ""


def _handler(hub: Hub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None: ...

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def do_GET(self) -> None:
            self._answer(body=True)

        def _answer(self, *, body: bool) -> None:
            parts = unquote(urlsplit(self.path).path).strip("/").split("/")
            listing = parts[:2] == ["api", "models"]
            repo = "/".join(parts[2:4] if listing else parts[:2])
            if repo not in hub.held:
                self._say(401, {"X-Error-Code": "RepoNotFound"}, b"{}", body)
            elif listing and "tree" in parts:
                rows = [{"type": "file", "path": n, "size": len(b), "oid": "0" * 40} for n, b in hub.held[repo].items()]
                self._say(200, {"X-Repo-Commit": COMMIT}, json.dumps(rows).encode(), body)
            elif listing:
                files = [{"rfilename": name} for name in hub.held[repo]]
                self._say(200, {}, json.dumps({"id": repo, "sha": COMMIT, "siblings": files}).encode(), body)
            else:
                name = "/".join(parts[4:])
                held = hub.held[repo].get(name)
                if held is None:
                    self._say(404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT}, b"", body)
                    return
                if body:
                    hub.sent.append(name)
                tag = hashlib.sha256(held).hexdigest()
                self._say(200, {"ETag": f'"{tag}"', "X-Repo-Commit": COMMIT}, held, body)

        def _say(self, code: int, headers: dict[str, str], content: bytes, body: bool) -> None:
            self.send_response(code)
            for name, value in ({"Content-Length": str(len(content))} | headers).items():
                self.send_header(name, value)
            self.end_headers()
            if body:
                self.wfile.write(content)

    return Handler


@pytest.fixture
def hub() -> Iterator[Hub]:
    pytest.importorskip("huggingface_hub")
    made = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(made))
    made.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    server.shutdown()
    server.server_close()
    thread.join()


def asked(hub_url: str, home: Path, said: str, wants: str = "file") -> tuple[str, str]:
    """What `from_hub` gives in a process of its own: the library reads its settings when it is imported."""
    more = {"HF_ENDPOINT": hub_url, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1", "JOSTLE_CACHE": str(home / "ours")}
    done = subprocess.run(
        [sys.executable, "-c", CODE, said, wants], env=os.environ | more, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    kind, text = json.loads(done.stdout.splitlines()[-1])
    return kind, text


@pytest.fixture
def tensors(tmp_path: Path) -> bytes:
    write_weights({"a": torch.arange(3.0)}, tmp_path / "tensors.safetensors")
    return (tmp_path / "tensors.safetensors").read_bytes()


def test_the_one_file_of_tensors_is_meant(hub: Hub, tmp_path: Path, tensors: bytes) -> None:
    hub.held["org/net"] = {"README.md": b"x", "net.safetensors": tensors, "net.pth": b"\x80"}
    kind, found = asked(hub.url, tmp_path, "hf:org/net")
    assert kind == "found", found
    assert Path(found).read_bytes() == tensors
    assert hub.sent == ["net.safetensors"]
    asked(hub.url, tmp_path, "hf:org/net")
    assert hub.sent == ["net.safetensors"]  # its cache has it


def test_a_file_is_named_where_there_are_several(hub: Hub, tmp_path: Path, tensors: bytes) -> None:
    hub.held["org/net"] = {"a.safetensors": tensors, "deep/b.pth": b"bytes"}
    hub.held["org/two"] = {"a.safetensors": tensors, "b.safetensors": tensors}
    kind, found = asked(hub.url, tmp_path, "hf:org/net/deep/b.pth")
    assert kind == "found", found
    assert Path(found).read_bytes() == b"bytes"
    kind, said = asked(hub.url, tmp_path, "hf:org/two")
    assert (kind, "2 files of tensors" in said, "hf:org/two/FILE" in said) == ("BadValue", True, True)


def test_a_folder_holds_settings_and_tensors_only(hub: Hub, tmp_path: Path, tensors: bytes) -> None:
    hub.held["org/net"] = {"config.json": b"{}", "model.safetensors": tensors, "pytorch_model.bin": b"", "x.py": b""}
    hub.held["org/net"] |= {"chat_template.jinja": b"x", "merges.txt": b"a b"}
    kind, found = asked(hub.url, tmp_path, "hf:org/net", "folder")
    assert kind == "found", found
    held = sorted(path.name for path in Path(found).iterdir())
    assert held == ["chat_template.jinja", "config.json", "merges.txt", "model.safetensors"]


def test_a_folder_from_before_safetensors_is_read_without_trust(hub: Hub, tmp_path: Path) -> None:
    torch.save({"a": torch.arange(3.0)}, tmp_path / "old.bin")
    hub.held["org/old"] = {"config.json": b"{}", "pytorch_model.bin": (tmp_path / "old.bin").read_bytes()}
    kind, found = asked(hub.url, tmp_path, "hf:org/old", "folder")
    assert kind == "found", found
    assert sorted(path.name for path in Path(found).iterdir()) == ["config.json", "model.safetensors"]
    assert read_weights(Path(found) / "model.safetensors")["a"].tolist() == [0, 1, 2]
    hub.held["org/evil"] = {"config.json": b"{}", "pytorch_model.bin": EVIL}
    kind, said = asked(hub.url, tmp_path, "hf:org/evil", "folder")
    assert kind == "CheckpointError"
    assert "nothing in it was run" in said


def test_what_is_not_there_is_said(hub: Hub, tmp_path: Path) -> None:
    hub.held["org/net"] = {"README.md": b"x"}
    for said, expected in (
        ("hf:org/none", "there is no such repository"),
        ("hf:org/net/a.pth", "has no file 'a.pth'"),
        ("hf:org/net", "holds no safetensors (README.md)"),
    ):
        kind, told = asked(hub.url, tmp_path, said)
        assert kind == "BadValue", told
        assert expected in told


@pytest.mark.slow  # the library tries for half a minute
def test_without_a_hub_it_is_said_what_to_fetch(tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    kind, told = asked("http://127.0.0.1:1", tmp_path, "hf:org/net/a.safetensors")
    assert kind == "ResourceError"
    assert "fetch https://huggingface.co/org/net/resolve/main/a.safetensors by hand" in told


def test_without_the_library_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtra, match=r"jostle\[hf\]"):
        fetch_from_hub("hf:org/net")


def test_a_place_on_the_hub_is_said_in_one_word() -> None:
    assert HubLocation.parse("hf:org/net") == HubLocation("org/net")
    assert HubLocation.parse("hf:org/net@v1.0") == HubLocation("org/net", "v1.0")
    assert HubLocation.parse("hf:o.r-g/n_e.t/deep/file.pth") == HubLocation("o.r-g/n_e.t", None, "deep/file.pth")
