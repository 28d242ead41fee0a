"""OpenAI-compatible server models: requests, replies, retries and malformed replies."""

from __future__ import annotations

import base64
import json
import math
import pickle
from collections.abc import Callable
from random import Random
from typing import Any

import cv2
import numpy as np
import pytest

from helpers.language_server import Behaviour, LanguageServer, chat, hang_up, language_server, reply
from helpers.mutation import json_changed
from jostle.errors import BadValue, DataError, NonFiniteOutput, ResourceError
from jostle.models.language.interface import Question
from jostle.models.language.loading import load_question_model
from jostle.models.language.openai_server import ServerModel, _read_reply, open_server
from jostle.models.language.prompts import answer_from_top_tokens
from jostle.models.language.server_client import LARGEST_REPLY, ServerClient

FRAMES = np.random.default_rng(0).integers(0, 256, (2, 6, 8, 3), np.uint8)
QUESTION = Question(FRAMES, np.array([0.5, 61.25]), "Which?", ("cat", "dog", "cow"))
VALID_REPLY = reply(chat("B", {"B": math.log(0.6), " A": math.log(0.2), "C": math.log(0.1)}))


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def model_of(server: LanguageServer, pauses: list[float] | None = None, tries: int = 2, **rest: Any) -> ServerModel:
    sleep: Callable[[float], None] = ([] if pauses is None else pauses).append
    timeout = rest.pop("timeout", 10.0)
    return ServerModel(ServerClient(server.url, "", timeout, tries, sleep), "m", **rest)


def test_request_has_png_frames_with_times_and_reply_has_log_probabilities() -> None:
    with language_server(VALID_REPLY) as server:
        model = load_question_model(f"openai:{server.url}#org/m%20b")
        (answer,) = model.answer([QUESTION])
    assert (answer.choice, answer.text, answer.lower_bounds) == (1, "B", ())
    assert answer.log_probs is not None
    assert np.exp(answer.log_probs) == pytest.approx(np.array([2, 6, 1]) / 9)
    (request,) = server.requests
    assert server.headers[0]["path"] == "/v1/chat/completions"
    assert "Authorization" not in server.headers[0]
    assert (request["model"], request["temperature"], request["logprobs"], request["top_logprobs"]) == (
        "org/m b",
        0,
        True,
        20,
    )
    parts = request["messages"][0]["content"]
    assert [part.get("text") for part in parts[::2]] == [
        "<0.5 seconds>", "<61.2 seconds>",
        "Which?\nA. cat\nB. dog\nC. cow\nAnswer with the letter of the right option only.",
    ]  # fmt: skip
    for frame, part in zip(FRAMES, parts[1::2], strict=True):
        head, _, data = part["image_url"]["url"].partition(",")
        assert head == "data:image/png;base64"
        decoded = cv2.imdecode(np.frombuffer(base64.b64decode(data), np.uint8), cv2.IMREAD_COLOR)
        assert np.array_equal(decoded[..., ::-1], frame)


def test_without_frames_only_the_question_is_sent() -> None:
    with language_server(VALID_REPLY) as server:
        model_of(server).answer([Question(FRAMES[:0], np.zeros(0), "Which?", ("cat", "dog"))])
        model_of(server, parts="video").answer([Question(FRAMES[:0], np.zeros(0), "Which?", ("cat", "dog"))])
    assert [len(request["messages"][0]["content"]) for request in server.requests] == [1, 1]
    assert "media_io_kwargs" not in server.requests[1]


def test_video_parts_are_jpeg_pictures_with_their_metadata() -> None:
    with language_server(VALID_REPLY) as server:
        model = open_server(f"openai:{server.url}?parts=video&answers=text#m", frames=2)
        (answer,) = model.answer([QUESTION])
    assert (answer.log_probs, answer.text, answer.choice) == (None, "B", 1)
    (request,) = server.requests
    assert "logprobs" not in request
    assert request["media_io_kwargs"] == {"video": {"fps": 1000.0, "frames_indices": [500, 61250]}}
    times, video, _ = request["messages"][0]["content"]
    assert times["text"] == "Frames at 0.5, 61.2 seconds."
    head, first, second = video["video_url"]["url"].split(",")
    assert head == "data:video/jpeg;base64"
    assert all(base64.b64decode(data)[:2] == b"\xff\xd8" for data in (first, second))


def test_answers_are_in_the_order_of_the_questions() -> None:
    def echo(handler: Any) -> None:
        with server.lock:
            texts = [request["messages"][0]["content"][-1]["text"] for request in server.requests]
        handler.server.answered = getattr(handler.server, "answered", [])
        text_of_this_request = next(text for text in texts if text not in handler.server.answered)
        handler.server.answered.append(text_of_this_request)
        reply(chat(text_of_this_request[0]))(handler)

    questions = [Question(FRAMES, np.arange(2.0), f"{letter}?", tuple("xyzw")) for letter in "DBCA"]
    with language_server(echo) as server:
        answers = model_of(server, concurrency=1).answer(questions)
    assert [answer.choice for answer in answers] == [3, 1, 2, 0]


def test_requests_run_concurrently() -> None:
    import threading

    barrier = threading.Barrier(3, timeout=10)

    def wait(handler: Any) -> None:
        barrier.wait()  # fails unless three requests arrive at the same time
        VALID_REPLY(handler)

    with language_server(wait) as server:
        answers = model_of(server, concurrency=3).answer([QUESTION] * 3)
    assert [answer.choice for answer in answers] == [1, 1, 1]


def test_reply_without_log_probabilities_is_parsed_as_text() -> None:
    with language_server(reply(chat("C")), reply(chat("I cannot tell.")), reply(chat(None)), reply(chat(""))) as server:
        answers = model_of(server, concurrency=1).answer([QUESTION] * 4)
    assert [(answer.choice, answer.log_probs) for answer in answers] == [(2, None), *[(None, None)] * 3]
    assert [answer.text for answer in answers] == ["C", "I cannot tell.", "", ""]


@pytest.mark.fault("F169")
def test_F169_option_missing_from_the_top_tokens_is_a_lower_bound() -> None:
    with language_server(reply(chat("B", {"B": -0.5, "The": -2.0}))) as server:
        (answer,) = model_of(server).answer([QUESTION])
    assert answer.lower_bounds == (True, False, True)
    assert answer.log_probs is not None
    assert min(answer.log_probs) > -4


TEMPORARY_FAILURES: dict[str, Behaviour] = {
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


@pytest.mark.parametrize("kind", TEMPORARY_FAILURES)
def test_temporary_failures_are_retried(kind: str) -> None:
    pauses: list[float] = []
    with language_server(TEMPORARY_FAILURES[kind], VALID_REPLY) as server:
        (answer,) = model_of(server, pauses).answer([QUESTION])
    assert answer.choice == 1
    assert len(server.requests) == 2
    assert len(pauses) == 1
    assert 0.5 <= pauses[0] <= 1.5


@pytest.mark.fault("F171")
@pytest.mark.parametrize("kind", TEMPORARY_FAILURES)
def test_F171_lasting_failures_raise_after_all_retries(kind: str) -> None:
    with (
        language_server(TEMPORARY_FAILURES[kind]) as server,
        pytest.raises((ResourceError, DataError), match="3 times"),
    ):
        model_of(server, tries=3).answer([QUESTION])
    assert len(server.requests) == 3


@pytest.mark.parametrize("name", ["stall", "trickle"])
def test_stalled_server_times_out(name: str) -> None:
    with language_server(VALID_REPLY) as server:
        server.behaviours = [getattr(server, name), VALID_REPLY]
        (answer,) = model_of(server, timeout=0.2).answer([QUESTION])
        assert answer.choice == 1
        server.behaviours = [getattr(server, name)]
        with pytest.raises(ResourceError, match=r"does not answer within 0\.2 seconds, 2 times"):
            model_of(server, timeout=0.2).answer([QUESTION])


@pytest.mark.parametrize(("header", "pause"), [("7", 7), ("1e9", 120), ("-3", 0), ("Thu, 01 Jan 1970 00:00:00 GMT", 0)])
def test_retry_after_is_honoured_within_limits(header: str, pause: float) -> None:
    pauses: list[float] = []
    with language_server(reply(b"", 429, Retry_After=header), VALID_REPLY) as server:
        model_of(server, pauses).answer([QUESTION])
    assert pauses == [pause]


@pytest.mark.parametrize("header", ["nan", "soon", "inf"])
def test_invalid_retry_after_uses_the_default_pause(header: str) -> None:
    pauses: list[float] = []
    with language_server(reply(b"", 503, Retry_After=header), VALID_REPLY) as server:
        model_of(server, pauses).answer([QUESTION])
    assert 0.5 <= pauses[0] <= 1.5


@pytest.mark.fault("F168")
@pytest.mark.parametrize("top", [{"A": 0.7, "B": -0.1}, {"A": -0.1, "B": -0.1, "C": -0.1}, {"A": 1e308}])
def test_F168_invalid_log_probabilities_are_refused(top: dict[str, float]) -> None:
    with language_server(reply(chat("A", top))) as server, pytest.raises(NonFiniteOutput) as caught:
        model_of(server).answer([QUESTION])
    assert caught.value.fault == "F168"


@pytest.mark.parametrize("row", [{"token": "A"}, {"token": 3, "logprob": -1}, {"token": "A", "logprob": "x"}, 5])
def test_malformed_log_probabilities_raise(row: Any) -> None:
    content = chat("A", {"A": -0.1})
    content["choices"][0]["logprobs"]["content"][0]["top_logprobs"] = [row]
    with language_server(reply(content)) as server, pytest.raises(DataError, match="no token or logprob"):
        model_of(server).answer([QUESTION])


@pytest.mark.parametrize("value", [None, {}, {"content": None}, {"content": []}, {"content": [{"token": "A"}]}, 3])
def test_missing_log_probability_fields_fall_back_to_text(value: Any) -> None:
    content = chat("C")
    content["choices"][0]["logprobs"] = value
    with language_server(reply(content)) as server:
        (answer,) = model_of(server).answer([QUESTION])
    assert (answer.choice, answer.log_probs) == (2, None)


@pytest.mark.parametrize(
    ("status", "kind", "message"),
    [(401, ResourceError, "OPENAI_API_KEY"), (404, ResourceError, "address and model"),
     (302, ResourceError, "not followed"), (400, DataError, "too long"), (422, DataError, "too long")],
)  # fmt: skip
def test_permanent_errors_are_not_retried(status: int, kind: type[Exception], message: str) -> None:
    with language_server(reply({"error": "too long"}, status, Location="http://127.0.0.1:1/")) as server:
        with pytest.raises(kind, match=message):
            model_of(server, tries=5).answer([QUESTION])
        assert len(server.requests) == 1


@pytest.mark.fault("F170")
def test_F170_api_key_is_sent_to_the_server_and_never_stored_or_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "sk-very-secret-0123456789"
    monkeypatch.setenv("OPENAI_API_KEY", f"{secret}\n")
    leaky = reply({"error": f"Incorrect API key provided: {secret}; {secret[:12]}... and ...{secret[-8:]}"}, 401)
    with language_server(leaky) as server:
        model = model_of(server)
        with pytest.raises(ResourceError) as caught:
            model.answer([QUESTION])
        assert server.headers[0]["Authorization"] == f"Bearer {secret}"
        server.behaviours = [reply(f"{secret} is no JSON".encode())]
        with pytest.raises(DataError) as bad_reply:
            model.answer([QUESTION])
    texts = [str(caught.value), str(bad_reply.value), repr(model), json.dumps(model.describe())]
    texts.append(str(pickle.dumps(ServerClient(server.url))))
    for text in texts:
        assert "secret" not in text
        assert "23456789" not in text
    monkeypatch.setenv("OPENAI_API_KEY", "sk-\x01-wrong")
    with pytest.raises(BadValue, match="characters that no key has") as bad_key:
        model.answer([QUESTION])
    assert "wrong" not in str(bad_key.value)


@pytest.mark.fault("F170")
def test_F170_default_key_is_not_sent_over_plain_http(monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_invalid_addresses_are_refused(name: str) -> None:
    with pytest.raises(BadValue):
        open_server(name)


def test_describe_records_the_request_settings() -> None:
    record = open_server("openai:http://localhost:8000/v1?concurrency=8#m", frames=8).describe()
    assert (record["url"], record["model"], record["frames"]) == ("http://localhost:8000/v1", "m", 8)
    assert (record["parts"], record["picture"], record["top_logprobs"], record["temperature"]) == (
        "images",
        "png",
        20,
        0,
    )
    assert "{question}" in str(record["prompt"])


def test_mutated_replies_are_either_parsed_or_refused() -> None:
    valid_reply = json.dumps(chat("A", {"A": -0.2, "B": -3.0})).encode()
    outcomes = {"answered": 0, "refused": 0}
    for number in range(2000):
        try:
            text, positions = _read_reply(json.loads(json_changed(valid_reply, Random(number))))
            for position in positions:
                answer_from_top_tokens(position.top, 3, "m")
            outcomes["answered"] += 1
            assert text is None or isinstance(text, str)
        except (ValueError, NonFiniteOutput):
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 100
