"""Questions to a server that answers, stalls, cuts off, lies and drops fields."""

from __future__ import annotations

import base64
import json
import math
import pickle
from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
import pytest

from helpers.language_server import Behaviour, LanguageServer, chat, hang_up, language_server, reply
from jostle.errors import BadValue, DataError, NonFiniteOutput, ResourceError
from jostle.models.language.interface import Question
from jostle.models.language.loading import load_question_model
from jostle.models.language.openai_server import ServerModel, _read_reply, open_server
from jostle.models.language.prompts import answer_from_top_tokens
from jostle.models.language.server_client import LARGEST_REPLY, ServerClient

FRAMES = np.random.default_rng(0).integers(0, 256, (2, 6, 8, 3), np.uint8)
ASKED = Question(FRAMES, np.array([0.5, 61.25]), "Which?", ("cat", "dog", "cow"))
GOOD = reply(chat("B", {"B": math.log(0.6), " A": math.log(0.2), "C": math.log(0.1)}))


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def model_of(server: LanguageServer, pauses: list[float] | None = None, tries: int = 2, **rest: Any) -> ServerModel:
    sleep: Callable[[float], None] = ([] if pauses is None else pauses).append
    timeout = rest.pop("timeout", 10.0)
    return ServerModel(ServerClient(server.url, "", timeout, tries, sleep), "m", **rest)


def test_frames_go_as_png_with_their_times_and_log_probabilities_come_back() -> None:
    with language_server(GOOD) as server:
        model = load_question_model(f"openai:{server.url}#org/m%20b")
        (answer,) = model.answer([ASKED])
    assert (answer.choice, answer.text, answer.lower_bounds) == (1, "B", ())
    assert answer.log_probs is not None
    assert np.exp(answer.log_probs) == pytest.approx(np.array([2, 6, 1]) / 9)
    (sent,) = server.requests
    assert server.headers[0]["path"] == "/v1/chat/completions"
    assert "Authorization" not in server.headers[0]
    assert (sent["model"], sent["temperature"], sent["logprobs"], sent["top_logprobs"]) == ("org/m b", 0, True, 20)
    parts = sent["messages"][0]["content"]
    assert [part.get("text") for part in parts[::2]] == [
        "<0.5 seconds>", "<61.2 seconds>",
        "Which?\nA. cat\nB. dog\nC. cow\nAnswer with the letter of the right option only.",
    ]  # fmt: skip
    for frame, part in zip(FRAMES, parts[1::2], strict=True):
        head, _, data = part["image_url"]["url"].partition(",")
        assert head == "data:image/png;base64"
        shown = cv2.imdecode(np.frombuffer(base64.b64decode(data), np.uint8), cv2.IMREAD_COLOR)
        assert np.array_equal(shown[..., ::-1], frame)


def test_without_frames_only_the_question_is_sent() -> None:
    with language_server(GOOD) as server:
        model_of(server).answer([Question(FRAMES[:0], np.zeros(0), "Which?", ("cat", "dog"))])
        model_of(server, parts="video").answer([Question(FRAMES[:0], np.zeros(0), "Which?", ("cat", "dog"))])
    assert [len(sent["messages"][0]["content"]) for sent in server.requests] == [1, 1]
    assert "media_io_kwargs" not in server.requests[1]


def test_video_parts_are_jpeg_pictures_with_their_metadata() -> None:
    with language_server(GOOD) as server:
        model = open_server(f"openai:{server.url}?parts=video&answers=text#m", frames=2)
        (answer,) = model.answer([ASKED])
    assert (answer.log_probs, answer.text, answer.choice) == (None, "B", 1)
    (sent,) = server.requests
    assert "logprobs" not in sent
    assert sent["media_io_kwargs"] == {"video": {"fps": 1000.0, "frames_indices": [500, 61250]}}
    times, video, _ = sent["messages"][0]["content"]
    assert times["text"] == "Frames at 0.5, 61.2 seconds."
    head, first, second = video["video_url"]["url"].split(",")
    assert head == "data:video/jpeg;base64"
    assert all(base64.b64decode(data)[:2] == b"\xff\xd8" for data in (first, second))


def test_answers_keep_the_order_of_their_questions() -> None:
    def echo(handler: Any) -> None:
        with server.lock:
            texts = [sent["messages"][0]["content"][-1]["text"] for sent in server.requests]
        handler.server.seen = getattr(handler.server, "seen", [])
        mine = next(text for text in texts if text not in handler.server.seen)
        handler.server.seen.append(mine)
        reply(chat(mine[0]))(handler)

    asked = [Question(FRAMES, np.arange(2.0), f"{letter}?", tuple("xyzw")) for letter in "DBCA"]
    with language_server(echo) as server:
        answers = model_of(server, concurrency=1).answer(asked)
    assert [answer.choice for answer in answers] == [3, 1, 2, 0]


def test_requests_run_at_the_same_time() -> None:
    import threading

    meeting = threading.Barrier(3, timeout=10)

    def wait(handler: Any) -> None:
        meeting.wait()  # breaks unless three requests are there at once
        GOOD(handler)

    with language_server(wait) as server:
        answers = model_of(server, concurrency=3).answer([ASKED] * 3)
    assert [answer.choice for answer in answers] == [1, 1, 1]


def test_a_server_without_log_probabilities_is_read_as_text() -> None:
    with language_server(reply(chat("C")), reply(chat("I cannot tell.")), reply(chat(None)), reply(chat(""))) as server:
        answers = model_of(server, concurrency=1).answer([ASKED] * 4)
    assert [(answer.choice, answer.log_probs) for answer in answers] == [(2, None), *[(None, None)] * 3]
    assert [answer.text for answer in answers] == ["C", "I cannot tell.", "", ""]


@pytest.mark.fault("F169")
def test_F169_an_option_that_the_server_did_not_list_is_marked_as_bounded() -> None:
    with language_server(reply(chat("B", {"B": -0.5, "The": -2.0}))) as server:
        (answer,) = model_of(server).answer([ASKED])
    assert answer.lower_bounds == (True, False, True)
    assert answer.log_probs is not None
    assert min(answer.log_probs) > -4


PASSING: dict[str, Behaviour] = {
    "hangs up": hang_up,
    "cuts off": reply(b'{"choices": [', promise=100),
    "cuts off without a word": reply(b'{"choices": [{"message": {"con'),
    "is busy": reply({"error": "busy"}, 429),
    "fails": reply(b"<html>", 500),
    "restarts": reply(b"", 503),
    "is no JSON": reply(b"<html>hello</html>"),
    "is NaN": reply(b'{"choices": [{"message": {"content": "A"}, "logprobs": NaN}]}'),
    "is huge": reply(b" " * (LARGEST_REPLY + 1)),
    "is deep": reply(b"[" * 100_000),
    "has no choices": reply({"choices": []}),
    "has no message": reply({"choices": [{"text": "A"}]}),
    "drops the content": reply({"choices": [{"message": {"role": "assistant"}}]}),
    "is another kind": reply({"choices": [{"message": {"content": 3}}]}),
    "is a list": reply([1, 2]),
    "is null": reply(b"null"),
}


@pytest.mark.parametrize("kind", PASSING)
def test_failures_that_pass_are_tried_again(kind: str) -> None:
    pauses: list[float] = []
    with language_server(PASSING[kind], GOOD) as server:
        (answer,) = model_of(server, pauses).answer([ASKED])
    assert answer.choice == 1
    assert len(server.requests) == 2
    assert len(pauses) == 1
    assert 0.5 <= pauses[0] <= 1.5


@pytest.mark.fault("F171")
@pytest.mark.parametrize("kind", PASSING)
def test_F171_failures_that_stay_are_told_and_never_an_answer(kind: str) -> None:
    with language_server(PASSING[kind]) as server, pytest.raises((ResourceError, DataError), match="3 times"):
        model_of(server, tries=3).answer([ASKED])
    assert len(server.requests) == 3


@pytest.mark.parametrize("name", ["stall", "trickle"])
def test_a_server_that_stalls_is_left_in_time(name: str) -> None:
    with language_server(GOOD) as server:
        server.behaviours = [getattr(server, name), GOOD]
        (answer,) = model_of(server, timeout=0.2).answer([ASKED])
        assert answer.choice == 1
        server.behaviours = [getattr(server, name)]
        with pytest.raises(ResourceError, match=r"does not answer within 0\.2 seconds, 2 times"):
            model_of(server, timeout=0.2).answer([ASKED])


@pytest.mark.parametrize(("header", "pause"), [("7", 7), ("1e9", 120), ("-3", 0), ("Thu, 01 Jan 1970 00:00:00 GMT", 0)])
def test_the_pause_that_a_server_asks_for_is_kept_within_reason(header: str, pause: float) -> None:
    pauses: list[float] = []
    with language_server(reply(b"", 429, Retry_After=header), GOOD) as server:
        model_of(server, pauses).answer([ASKED])
    assert pauses == [pause]


@pytest.mark.parametrize("header", ["nan", "soon", "inf"])
def test_a_pause_that_is_none_is_ours(header: str) -> None:
    pauses: list[float] = []
    with language_server(reply(b"", 503, Retry_After=header), GOOD) as server:
        model_of(server, pauses).answer([ASKED])
    assert 0.5 <= pauses[0] <= 1.5


@pytest.mark.fault("F168")
@pytest.mark.parametrize("top", [{"A": 0.7, "B": -0.1}, {"A": -0.1, "B": -0.1, "C": -0.1}, {"A": 1e308}])
def test_F168_log_probabilities_that_are_none_are_refused(top: dict[str, float]) -> None:
    with language_server(reply(chat("A", top))) as server, pytest.raises(NonFiniteOutput) as caught:
        model_of(server).answer([ASKED])
    assert caught.value.fault == "F168"


@pytest.mark.parametrize("row", [{"token": "A"}, {"token": 3, "logprob": -1}, {"token": "A", "logprob": "x"}, 5])
def test_broken_log_probabilities_are_no_answer(row: Any) -> None:
    content = chat("A", {"A": -0.1})
    content["choices"][0]["logprobs"]["content"][0]["top_logprobs"] = [row]
    with language_server(reply(content)) as server, pytest.raises(DataError, match="no token or logprob"):
        model_of(server).answer([ASKED])


@pytest.mark.parametrize("value", [None, {}, {"content": None}, {"content": []}, {"content": [{"token": "A"}]}, 3])
def test_fields_that_a_server_drops_leave_the_text(value: Any) -> None:
    content = chat("C")
    content["choices"][0]["logprobs"] = value
    with language_server(reply(content)) as server:
        (answer,) = model_of(server).answer([ASKED])
    assert (answer.choice, answer.log_probs) == (2, None)


@pytest.mark.parametrize(
    ("status", "kind", "said"),
    [(401, ResourceError, "OPENAI_API_KEY"), (404, ResourceError, "address and model"),
     (302, ResourceError, "not followed"), (400, DataError, "too long"), (422, DataError, "too long")],
)  # fmt: skip
def test_what_does_not_pass_is_not_tried_again(status: int, kind: type[Exception], said: str) -> None:
    with language_server(reply({"error": "too long"}, status, Location="http://127.0.0.1:1/")) as server:
        with pytest.raises(kind, match=said):
            model_of(server, tries=5).answer([ASKED])
        assert len(server.requests) == 1


@pytest.mark.fault("F170")
def test_F170_the_key_goes_to_the_server_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "sk-very-secret-0123456789"
    monkeypatch.setenv("OPENAI_API_KEY", f"{secret}\n")
    leaky = reply({"error": f"Incorrect API key provided: {secret}; {secret[:12]}... and ...{secret[-8:]}"}, 401)
    with language_server(leaky) as server:
        model = model_of(server)
        with pytest.raises(ResourceError) as caught:
            model.answer([ASKED])
        assert server.headers[0]["Authorization"] == f"Bearer {secret}"
        server.behaviours = [reply(f"{secret} is no JSON".encode())]
        with pytest.raises(DataError) as unread:
            model.answer([ASKED])
    held = [str(caught.value), str(unread.value), repr(model), json.dumps(model.describe())]
    held.append(str(pickle.dumps(ServerClient(server.url))))
    for text in held:
        assert "secret" not in text
        assert "23456789" not in text
    monkeypatch.setenv("OPENAI_API_KEY", "sk-\x01-wrong")
    with pytest.raises(BadValue, match="characters that no key has") as strange:
        model.answer([ASKED])
    assert "wrong" not in str(strange.value)


@pytest.mark.fault("F170")
def test_F170_the_default_key_is_not_sent_to_strangers_in_the_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")
    monkeypatch.setenv("OTHER", "sk-theirs")
    assert "Authorization" not in ServerClient("http://example.org/v1")._headers()
    assert ServerClient("https://example.org/v1")._headers()["Authorization"] == "Bearer sk-mine"
    assert ServerClient("http://example.org/v1", "OTHER")._headers()["Authorization"] == "Bearer sk-theirs"
    with pytest.raises(BadValue, match="no variable MISSING"):
        ServerClient("http://example.org/v1", "MISSING")
    with pytest.raises(BadValue, match="no name and no password") as caught:
        open_server("openai:http://me:sk-mine@example.org/v1#m")
    assert "sk-mine" not in str(caught.value)


@pytest.mark.parametrize(
    "name", ["openai:http://h/v1", "openai:http://h:x/v1#m", "openai:http://h/v1?part=video#m", "openai:file:///x#m",
             "openai:http://h/v1?parts=pictures#m", "openai:http://h/v1?tries=many#m", "openai:http://h/v1?timeout=nan#m"],
)  # fmt: skip
def test_an_address_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(BadValue):
        open_server(name)


def test_the_record_says_how_it_was_asked() -> None:
    known = open_server("openai:http://localhost:8000/v1?concurrency=8#m", frames=8).describe()
    assert (known["url"], known["model"], known["frames"]) == ("http://localhost:8000/v1", "m", 8)
    assert (known["parts"], known["picture"], known["top_logprobs"], known["temperature"]) == ("images", "png", 20, 0)
    assert "{question}" in str(known["prompt"])


def test_no_reply_ends_in_anything_but_an_answer_or_a_refusal() -> None:
    values: list[Any] = [None, True, -1, 10**400, 0.5, -0.5, "", "A", "nan", [], {}, [None], {"token": "A"}, [[1]]]
    whole = chat("A", {"A": -0.2, "B": -3.0})

    def mutate(node: Any, rng: np.random.Generator) -> Any:
        """Replace one value somewhere below by one of another kind, or leave it out."""
        keys = list(node) if isinstance(node, dict) else list(range(len(node))) if isinstance(node, list) else []
        if not keys or rng.random() < 0.15:
            return values[rng.integers(len(values))]
        key, copy = keys[rng.integers(len(keys))], node.copy()
        if rng.random() < 0.2:
            del copy[key]
        else:
            copy[key] = mutate(node[key], rng)
        return copy

    seen = {"answered": 0, "refused": 0}
    for number in range(2000):
        content = mutate(whole, np.random.default_rng(number))
        try:
            text, top = _read_reply(content)
            if top is not None:
                answer_from_top_tokens(top, 3, "m")
            seen["answered"] += 1
            assert text is None or isinstance(text, str)
        except (ValueError, NonFiniteOutput):
            seen["refused"] += 1
    assert min(seen.values()) > 100
