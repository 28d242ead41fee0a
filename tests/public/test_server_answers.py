"""Answers of a server on this machine: when letters' log-probabilities count, and what of its messages is kept."""

from __future__ import annotations

import base64
import json
import math
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

import jostle

pytest.importorskip("torch")  # runs of models need it

SECRET = "sk-proj-Loopback/Secret+0123456789"
Reply = tuple[int, bytes]
RECIPE = """
name = "served-c"
version = 1
dataset = "folder"
task = "questions"
metric = "answer_accuracy"

[[groups]]
name = "noise"
corruptions = ["gaussian_noise"]
severities = [3]
"""


class Server:
    """Server whose reply a test sets."""

    def __init__(self) -> None:
        self.reply: Callable[[], Reply] = lambda: (200, b"{}")
        self.raw: bytes | None = None  # sent instead of a reply of HTTP
        self.keys: set[str] = set()
        state = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                state.keys.add(self.headers.get("Authorization", ""))
                if state.raw is not None:
                    self.wfile.write(state.raw)
                    self.close_connection = True
                    return
                status, body = state.reply()
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                return

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/v1"


@pytest.fixture
def server() -> Iterator[Server]:
    one = Server()
    thread = threading.Thread(target=one.http.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield one
    one.http.shutdown()
    one.http.server_close()
    thread.join()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    frames = np.random.default_rng(0).integers(0, 256, (8, 32, 48, 3), np.uint8)
    with av.open(str(folder / "a.mp4"), "w") as out:
        stream: Any = out.add_stream("libx264", rate=8)
        stream.width, stream.height, stream.pix_fmt = 48, 32, "yuv420p"
        for frame in frames:
            out.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        out.mux(stream.encode())
    rows = [{"video": "a", "question": "Which?", "options": ["cat", "dog", "cow"], "answer": "A"}]
    (folder / "questions.json").write_text(json.dumps(rows))
    (folder.parent / "served.toml").write_text(RECIPE)
    return folder


def chat(text: str | None, *positions: tuple[str, dict[str, float]]) -> Callable[[], Reply]:
    """Return a reply of OpenAI's protocol: its text, and each token with the probabilities of its position."""
    content = [
        {"token": token, "logprob": math.log(top.get(token, 0.5)), "bytes": None,
         "top_logprobs": [{"token": one, "logprob": math.log(p), "bytes": None} for one, p in top.items()]}
        for token, top in positions
    ]  # fmt: skip
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "logprobs": {"content": content}}
    body = json.dumps({"id": "1", "object": "chat.completion", "choices": [choice]}).encode()
    return lambda: (200, body)


def run(server: Server, folder: Path, out: Path, settings: str = "?tries=1") -> dict[str, Any]:
    """Run the questions on a server, and return the answer on clean video."""
    model = f"openai:{server.url}{settings}#m"
    jostle.run(
        folder.parent / "served.toml", model=model, data=folder, out=out, input={"frames": 2, "orders": "published"}
    )
    rows = json.loads((out / "predictions" / "clean.json").read_text())
    answer: dict[str, Any] = next(iter(rows["answers"].values())) if "answers" in rows else _first_answer(rows)
    return answer


def _first_answer(value: Any) -> dict[str, Any]:
    found = [value] if isinstance(value, dict) else []
    while found:
        one = found.pop()
        if "choice" in one:
            return one
        found += [inner for inner in one.values() if isinstance(inner, dict)]
    raise AssertionError("no answer in the predictions")


@pytest.mark.parametrize(
    ("reply", "choice", "probable"),
    [
        # The letters hold most of the position that answers: they count.
        (chat("B", ("B", {"B": 0.6, "A": 0.2, "The": 0.1})), 1, True),
        (chat("The answer is B.", ("The", {"The": 0.98, "A": 0.01}), (" answer", {" answer": 1.0}),
              (" is", {" is": 1.0}), (" B", {" B": 0.7, " C": 0.25}), (".", {".": 1.0})), 1, True),
        (chat(None, ("C", {"C": 0.9, "A": 0.05})), 2, True),
        # A tiny mass on a letter says nothing: the text does.
        (chat("The answer is B.", ("The", {"The": 0.98, "A": 0.01}), (" answer is B.", {" answer is B.": 1.0})),
         1, False),
        (chat("It shows a dog.", ("It", {"It": 0.97, "C": 0.02}), (" shows a dog.", {" shows a dog.": 1.0})), 1, False),
        (chat("I cannot tell.", ("I", {"I": 0.9, "C": 0.05}), (" cannot tell.", {" cannot tell.": 1.0})), None, False),
        (chat("B", ("B", {"B": 0.3, "The": 0.3, "I": 0.2, "A": 0.1})), 1, False),
        # An article takes most of its position, and answers nothing.
        (chat("A man walks.", ("A", {"A": 0.95, "The": 0.05}), (" man walks.", {" man walks.": 1.0})), None, False),
        (chat("A man. So B", ("A", {"A": 0.95, "The": 0.05}), (" man. So", {" man. So": 1.0}), (" B", {" B": 0.9})),
         1, True),
        (chat("A or B", ("A", {"A": 0.9, "B": 0.1}), (" or", {" or": 1.0}), (" B", {" B": 1.0})), None, False),
    ],
)  # fmt: skip
def test_letters_count_where_they_hold_most_of_the_position_that_answers(
    server: Server, folder: Path, tmp_path: Path, reply: Callable[[], Reply], choice: int | None, probable: bool
) -> None:
    server.reply = reply
    answer = run(server, folder, tmp_path / "run")
    assert (answer["choice"], answer["probabilities"] is not None) == (choice, probable)


def everything(folder: Path) -> str:
    return "".join(path.read_text("utf-8", "replace") for path in folder.rglob("*") if path.is_file())


@pytest.mark.fault("F170")
@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": f"Incorrect API key provided: {SECRET}"}},
        {"error": f"Bearer {SECRET[:9]}*****{SECRET[-4:]} is not known"},
        {"error": SECRET.upper()},
        {"error": "key " + SECRET.replace("/", "%2F").replace("+", "%2B")},
        {"error": f"{'x' * 280} {SECRET}"},
        {"error": f"{SECRET[5:20]} in the middle"},
        {"error": " ".join(SECRET)},
        {"error": "\n".join(SECRET[i : i + 5] for i in range(0, len(SECRET), 5))},
        {"error": base64.b64encode(f"Bearer {SECRET}".encode()).decode()},
        {"error": SECRET.encode().hex()},
        {"error": SECRET[::-1]},
    ],
)
@pytest.mark.parametrize("status", [400, 401, 404, 503])
def test_a_message_that_echoes_the_key_is_neither_shown_nor_stored(
    server: Server, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: Any, status: int
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    server.reply = lambda: (status, json.dumps(body).replace("/", "\\/").encode())
    with pytest.raises(jostle.JostleError) as caught:
        run(server, folder, tmp_path / "run")
    assert server.keys == {f"Bearer {SECRET}"}  # it was sent, and could be echoed
    text = f"{caught.value} {''.join(getattr(caught.value, '__notes__', []))} {everything(tmp_path)}"
    text = text.lower().replace("\\n", "").replace("\n", "").replace("\\/", "/")
    for part in (SECRET[i : i + 8] for i in range(len(SECRET) - 7)):
        assert part.lower() not in text
    for whole in (json.dumps(body["error"]).strip('"'), SECRET[::-1]):
        assert whole.lower() not in text
    assert server.url in str(caught.value)  # what failed is still said


@pytest.mark.fault("F170")
def test_what_is_no_http_and_a_reply_that_holds_the_key_are_not_kept_either(
    server: Server, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    server.raw = f"Authorization: Bearer {SECRET}\r\n\r\n".encode()
    with pytest.raises(jostle.JostleError) as caught:
        run(server, folder, tmp_path / "no-http")
    assert SECRET[:8] not in f"{caught.value}{everything(tmp_path)}"
    server.raw = None
    server.reply = chat(f"Unauthorised: {SECRET}. B", (SECRET, {SECRET: 1.0}))
    run(server, folder, tmp_path / "run")
    assert SECRET[:8] not in everything(tmp_path)
