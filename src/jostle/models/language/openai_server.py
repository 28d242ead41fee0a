"""Questions to servers that speak OpenAI's protocol, such as vLLM, SGLang and llama.cpp.

Frames are sent as PNG, each with its time as text before it, since bare pictures have
no times. A server's text is read; where it gives
log-probabilities, and letters of options hold most of those of the token that answers, they decide.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args
from urllib.parse import unquote

import cv2
import numpy as np
import numpy.typing as npt

from jostle.errors import BadValue
from jostle.metrics.answer_text import read_choice
from jostle.models.language.interface import Answer, Question, split_settings
from jostle.models.language.prompts import (
    OPTION,
    TEMPLATE,
    answer_from_top_tokens,
    check_question,
    letter_of,
    video_metadata,
    write_prompt,
)
from jostle.models.language.server_client import ServerClient

PREFIX = "openai:"
TIME = "<{time:.1f} seconds>"
TIMES = "Frames at {times} seconds."
FRAMES = 16
TOP = 20  # tokens whose log-probabilities a server gives at most
MAX_TOKENS = 16  # of an answer; a letter takes one, a sentence more
JPEG_QUALITY = 95

Parts = Literal["images", "video"]
Answers = Literal["log_probs", "text"]
SETTINGS: dict[str, Any] = {
    "parts": "images", "answers": "log_probs", "concurrency": 4, "timeout": 120.0, "tries": 6, "key": "",
}  # fmt: skip


@dataclass(frozen=True)
class ServerModel:
    """Model behind a server of OpenAI's protocol.

    Attributes:
        client: the server.
        model: name of the model there.
        frames: number of frames to show.
        parts: `images`: PNG with times as text; `video`: vLLM's video parts, of JPEG pictures.
        answers: `log_probs` of the letters where the server gives them; or `text`.
        concurrency: number of requests at a time.
    """

    client: ServerClient
    model: str
    frames: int = FRAMES
    parts: Parts = "images"
    answers: Answers = "log_probs"
    concurrency: int = 4

    def __post_init__(self) -> None:
        for name, known in (("parts", get_args(Parts)), ("answers", get_args(Answers))):
            if getattr(self, name) not in known:
                raise BadValue(f"{self.client.url}: {name} is {' or '.join(known)}, not {getattr(self, name)!r}")
        if self.frames < 1 or self.concurrency < 1:
            raise BadValue(f"{self.client.url}: frames and concurrency must be at least 1")

    def describe(self) -> dict[str, object]:
        """Return what goes into the record; there is no key in it."""
        images = self.parts == "images"
        return {
            "kind": "openai",
            "url": self.client.url,
            "model": self.model,
            "prompt": TEMPLATE,
            "option": OPTION,
            "times": TIME if images else TIMES,
            "parts": self.parts,
            "picture": "png" if images else f"jpeg {JPEG_QUALITY}",
            "frames": self.frames,
            "answers": self.answers,
            "top_logprobs": TOP if self.answers == "log_probs" else None,
            "max_tokens": MAX_TOKENS,
            "temperature": 0,
        }

    def answer(self, questions: Sequence[Question]) -> list[Answer]:
        """Answer questions, several at a time, each in a request of its own.

        Raises:
            ResourceError: if the server cannot be reached, or refuses us.
            DataError: F171 if its replies cannot be read.
        """
        for question in questions:
            check_question(question)
        with ThreadPoolExecutor(self.concurrency) as pool:
            futures = [pool.submit(self._answer, question) for question in questions]
            try:
                return [future.result() for future in futures]
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _answer(self, question: Question) -> Answer:
        def read(reply: Any) -> Answer:
            text, positions = _read_reply(reply)
            choice = read_choice(text, question.options)
            if self.answers == "log_probs":
                top = _answering(positions, choice, not (text or "").strip(), question.options)
                answer = None if top is None else answer_from_top_tokens(top, len(question.options), self.model)
                if answer is not None:
                    return replace(answer, text=text)
            if text is None:
                raise ValueError("it has neither text nor log-probabilities of letters")
            return Answer(None, text, choice)

        answer: Answer = self.client.post("/chat/completions", self._payload(question), read)
        return answer

    def _payload(self, question: Question) -> dict[str, Any]:
        payload: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "user", "content": [*self._media(question), _text(write_prompt(question))]}],
            "temperature": 0,
            "max_tokens": MAX_TOKENS,
        }
        if self.answers == "log_probs":
            payload |= {"logprobs": True, "top_logprobs": TOP}
        if self.parts == "video" and len(question.frames):
            known = video_metadata(question.times)
            payload["media_io_kwargs"] = {"video": {name: known[name] for name in ("fps", "frames_indices")}}
        return payload

    def _media(self, question: Question) -> list[dict[str, Any]]:
        if not len(question.frames):
            return []
        if self.parts == "images":
            return [
                part
                for frame, time in zip(question.frames, question.times.tolist(), strict=True)
                for part in (_text(TIME.format(time=time)), _url("image_url", "data:image/png;base64,", [_png(frame)]))
            ]
        times = ", ".join(f"{time:.1f}" for time in question.times.tolist())
        pictures = [_encode(frame, ".jpg", cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY) for frame in question.frames]
        return [_text(TIMES.format(times=times)), _url("video_url", "data:video/jpeg;base64,", pictures)]


def open_server(name: str, *, frames: int | None = None) -> ServerModel:
    """Return the model of `openai:URL#MODEL`, perhaps with settings: `openai:URL?parts=video&concurrency=8#MODEL`.

    Raises:
        BadValue: if the address is none, or holds a key (F170).
    """
    plain, settings = split_settings(name.removeprefix(PREFIX), SETTINGS)
    url, _, model = plain.partition("#")
    if not model:
        raise BadValue(f"{name}: names no model; a server is openai:URL#MODEL, as openai:http://localhost:8000/v1#qwen")
    client = ServerClient(url, **{key: settings.pop(key) for key in ("key", "timeout", "tries")})
    return ServerModel(client, unquote(model), FRAMES if frames is None else frames, **settings)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _url(kind: str, prefix: str, pictures: Sequence[bytes]) -> dict[str, Any]:
    return {"type": kind, kind: {"url": prefix + ",".join(base64.b64encode(data).decode() for data in pictures)}}


def _png(frame: npt.NDArray[np.uint8]) -> bytes:
    return _encode(frame, ".png", cv2.IMWRITE_PNG_COMPRESSION, 3)


def _encode(frame: npt.NDArray[np.uint8], suffix: str, *flags: int) -> bytes:
    done, data = cv2.imencode(suffix, np.ascontiguousarray(frame[..., ::-1]), list(flags))
    assert done
    return bytes(data)


@dataclass(frozen=True)
class _Position:
    """Token of a reply, and those that might have been there with their log-probabilities."""

    token: str | None
    top: list[tuple[str, float]]


def _answering(
    positions: Sequence[_Position], choice: int | None, silent: bool, options: Sequence[str]
) -> list[tuple[str, float]] | None:
    """Return the tokens of the position that answers, or None if there is none.

    It is the token from which on the text is read as it is in the end: the last of "The answer is B", the first of
    "B, as he turns". The "A" of "A man turns" answers nothing, and words of an option are no letter. A reply without
    text has its first token alone.
    """
    if not positions:
        return None
    if silent or (len(positions) == 1 and choice is not None):
        return positions[0].top
    tokens = [position.token for position in positions]
    if choice is None or None in tokens:
        return None
    written = ""
    settled = None
    for index, token in enumerate(tokens):
        written += token or ""
        if read_choice(written, options) != choice:
            settled = None
        elif settled is None:
            settled = index
    return None if settled is None or letter_of(tokens[settled] or "") is None else positions[settled].top


def _read_reply(reply: Any) -> tuple[str | None, list[_Position]]:
    """Return the text of a reply, and its tokens with what else they might have been.

    Raises:
        ValueError: if the reply is none of a chat.
    """
    try:
        choice = reply["choices"][0]
        message = choice["message"]
        text = message.get("content", ...)
    except (KeyError, IndexError, TypeError, AttributeError):
        raise ValueError("it has no choices[0].message") from None
    if isinstance(text, list):  # some servers send parts
        text = "".join(str(part.get("text", "")) for part in text if isinstance(part, dict))
    if text is not ... and text is not None and not isinstance(text, str):
        raise ValueError("its content is no text")
    return None if text is ... else text or "", _read_positions(choice.get("logprobs"))


def _read_positions(value: Any) -> list[_Position]:
    """Return the tokens of a reply; none where a server gives no log-probabilities, as many do without a word."""
    content = value.get("content") if isinstance(value, dict) else None
    positions = []
    for entry in content if isinstance(content, list) else ():
        rows = entry.get("top_logprobs") if isinstance(entry, dict) else None
        if not isinstance(rows, list) or not rows:
            break
        token = entry.get("token")
        positions.append(_Position(token if isinstance(token, str) else None, _read_top_tokens(rows)))
    return positions


def _read_top_tokens(rows: list[Any]) -> list[tuple[str, float]]:
    try:
        top = [(row["token"], float(row["logprob"])) for row in rows]
    except (KeyError, TypeError, ValueError, OverflowError):
        raise ValueError("its top_logprobs have no token or logprob") from None
    if any(not isinstance(token, str) for token, _ in top) or any(math.isnan(value) for _, value in top):
        raise ValueError("its top_logprobs have no token or logprob")
    return top
