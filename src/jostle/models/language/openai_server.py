"""Questions to servers that speak OpenAI's protocol, such as vLLM, SGLang and llama.cpp.

Frames are sent as PNG, each with its time as text before it, since bare pictures have
no times. Where the server gives log-probabilities, those of the first token decide; otherwise its text is read.
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
        count = len(question.options)

        def read(reply: Any) -> Answer:
            text, top = _read_reply(reply)
            answer = None
            if top is not None and self.answers == "log_probs":
                answer = answer_from_top_tokens(top, count, self.model)
            if answer is not None:
                return replace(answer, text=text)
            if text is None:
                raise ValueError("it has neither text nor log-probabilities")
            return Answer(None, text, read_choice(text, question.options))

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


def _read_reply(reply: Any) -> tuple[str | None, list[tuple[str, float]] | None]:
    """Return the text of a reply, and the tokens that might have been its first with their log-probabilities.

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
    return None if text is ... else text or "", _read_top_tokens(choice.get("logprobs"))


def _read_top_tokens(value: Any) -> list[tuple[str, float]] | None:
    """Return the alternatives of the first token; None where a server gives none, as many do without a word."""
    content = value.get("content") if isinstance(value, dict) else None
    if not isinstance(content, list) or not content:
        return None
    first = content[0]
    rows = first.get("top_logprobs") if isinstance(first, dict) else None
    if not isinstance(rows, list) or not rows:
        return None
    try:
        top = [(row["token"], float(row["logprob"])) for row in rows]
    except (KeyError, TypeError, ValueError, OverflowError):
        raise ValueError("its top_logprobs have no token or logprob") from None
    if any(not isinstance(token, str) for token, _ in top) or any(math.isnan(value) for _, value in top):
        raise ValueError("its top_logprobs have no token or logprob")
    return top
