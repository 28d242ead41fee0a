"""JSON over HTTP to a server that may stall, cut off or refuse, with retries; the key stays in the environment."""

from __future__ import annotations

import base64
import hashlib
import http.client
import json
import math
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, NoReturn
from urllib.parse import SplitResult, unquote, urlsplit

from jostle.core.random import rng_for
from jostle.errors import BadValue, DataError, ResourceError

KEY = "OPENAI_API_KEY"  # variable that holds the key, unless another is named
RETRIED = (408, 409, 425, 429, 500, 502, 503, 504, 529)  # statuses that may pass
LONGEST_PAUSE = 120.0  # seconds, also where a server asks for more
LARGEST_REPLY = 8 << 20  # bytes
QUOTED = 300  # characters of a server's message that are quoted
RUN = 6  # letters and digits of the key in a row that make a message one that repeats it
REPEATED = "[a text that repeats the key, and is not kept]"
_LOCAL = ("localhost", "127.0.0.1", "::1")


class _Again(Exception):
    """A failure that may pass; `pause` is what the server asks for."""

    def __init__(self, why: str, pause: float | None = None, *, reply: bool = False) -> None:
        super().__init__(why)
        self.pause, self.reply = pause, reply


@dataclass(frozen=True)
class ServerClient:
    """Client of a server, with retries and a time-out.

    Attributes:
        url: address without a key, such as `http://localhost:8000/v1`.
        key: name of the environment variable with the key; empty for `OPENAI_API_KEY`, which is sent only by https or
            to this machine.
        timeout: seconds for one request and its reply, from beginning to end.
        tries: attempts at a request.
        sleep: waits so many seconds between attempts.
    """

    url: str
    key: str = ""
    timeout: float = 120.0
    tries: int = 6
    sleep: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        parts = _split(self.url)
        if parts.username is not None or parts.password is not None:
            raise BadValue(
                "a server's address holds no name and no password; put the key into an environment variable, and name "
                "that with key=VARIABLE",
                fault="F170",
            )
        if not (math.isfinite(self.timeout) and self.timeout > 0 and self.tries >= 1):
            raise BadValue(f"{self.url}: timeout must be above 0 and tries at least 1")
        if self.key and self.key not in os.environ:
            raise BadValue(f"{self.url}: the environment has no variable {self.key}; set it to the key of the server")

    def post(self, path: str, payload: dict[str, Any], read: Callable[[Any], Any]) -> Any:
        """Send a payload, and return what `read` makes of the reply.

        Failures that may pass are tried again, later each time: a lost connection, a time-out, a busy server, a reply
        that is cut off or that `read` refuses with a `ValueError`.

        Raises:
            ResourceError: if the server cannot be reached, or refuses us; a run can be continued later.
            DataError: F171 if its replies cannot be read, or if it refuses the request itself.
        """
        body = json.dumps(payload, allow_nan=False).encode()
        digest = hashlib.sha256(body).hexdigest()
        for attempt in range(self.tries):
            try:
                return self._attempt(path, body, read)
            except _Again as failure:
                if attempt + 1 == self.tries:
                    self._give_up(failure)
                # Spread out, as all requests of a batch fail at once; from the content, as all draws.
                spread = 0.5 + float(rng_for(0, "server pause", digest, attempt).random())
                pause = min(2.0**attempt, 30.0) * spread if failure.pause is None else failure.pause
                self.sleep(min(pause, LONGEST_PAUSE))
        raise AssertionError("unreachable")

    def _give_up(self, failure: _Again) -> NoReturn:
        message = f"{self.url}: {failure}, {self.tries} times"
        if failure.reply:
            raise DataError(f"{message}; look into the log of the server", fault="F171") from None
        raise ResourceError(f"{message}; see that it runs, then run again, and finished videos are kept") from None

    def _attempt(self, path: str, body: bytes, read: Callable[[Any], Any]) -> Any:
        status, headers, content = self._exchange(path, body)
        text = self._quoted(content.decode("utf-8", "replace"))
        if status in RETRIED:
            raise _Again(f"answers with status {status} ({text})", _seconds(headers.get("Retry-After")))
        if status in (401, 403):
            raise ResourceError(
                f"{self.url}: refuses the request with status {status} ({text}); put its key into the environment "
                f"variable {self.key or KEY}"
                + ("" if self._sends_key() or self.key else ", and name it with key=VARIABLE, as it is not local")
            )
        if status == 404:
            raise ResourceError(f"{self.url}: has no such page or model ({text}); check address and model")
        if 300 <= status < 400:
            raise ResourceError(
                f"{self.url}: sends on to another address (status {status}), which is not followed, as the key would "
                "go along; give that address"
            )
        if status != 200:
            raise DataError(f"{self.url}: refuses the request with status {status} ({text})", fault="F171")
        try:
            return read(self._without_key(json.loads(content, parse_constant=_refuse_constant)))
        except (ValueError, RecursionError) as error:
            raise _Again(f"sent a reply that cannot be read: {self._quoted(str(error))}", reply=True) from None

    def _exchange(self, path: str, body: bytes) -> tuple[int, http.client.HTTPMessage, bytes]:
        """Send one request; the whole exchange ends by the time-out, also if bytes come one by one."""
        parts = _split(self.url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=self.timeout)
        headers, late = self._headers(), threading.Event()
        timer: threading.Timer | None = None
        try:
            connection.connect()
            timer = _cut_later(connection.sock, self.timeout, late)
            connection.request("POST", parts.path.rstrip("/") + path, body, headers)
            with connection.getresponse() as response:
                content = response.read(LARGEST_REPLY + 1)
                lacking = response.length  # bytes that were announced and did not come
            if lacking and not late.is_set() and len(content) <= LARGEST_REPLY:
                raise _Again("cut its reply off")
        except (OSError, http.client.HTTPException) as error:
            if late.is_set() or isinstance(error, TimeoutError):
                raise _Again(f"does not answer within {self.timeout:g} seconds") from None
            raise _Again(
                f"cannot be reached, or hangs up ({type(error).__name__}: {self._quoted(str(error))})"
            ) from None
        finally:
            if timer is not None:
                timer.cancel()
            connection.close()
        if late.is_set():
            raise _Again(f"does not answer within {self.timeout:g} seconds")
        if len(content) > LARGEST_REPLY:
            raise _Again(f"sends more than {LARGEST_REPLY >> 20} MiB for one answer", reply=True)
        return response.status, response.headers, content

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if secret := self._secret():
            headers["Authorization"] = f"Bearer {secret}"
        return headers

    def _sends_key(self) -> bool:
        """Whether the default key is for this server: another's would be readable on its way to it."""
        parts = _split(self.url)
        return parts.scheme == "https" or parts.hostname in _LOCAL

    def _secret(self) -> str:
        """Return the key; it is read for each request, so that no object holds it."""
        secret = os.environ.get(self.key or KEY, "").strip() if self.key or self._sends_key() else ""
        if not (secret.isascii() and secret.isprintable() if secret else True):
            raise BadValue(f"the environment variable {self.key or KEY} holds characters that no key has", fault="F170")
        return secret

    def _quoted(self, text: str) -> str:
        """Return the beginning of a server's message, or none of it if it repeats the key or a part of it.

        What is left of a key that is replaced in a text can be more than one thinks: it may be cut off, masked,
        escaped, or in capitals.
        """
        return REPEATED if self._repeats_key(text) else text.strip()[:QUOTED]

    def _repeats_key(self, text: str, run: int = RUN) -> bool:
        secret = self._secret()
        if not secret:
            return False
        escaped = re.sub(r"\\u00([0-9a-fA-F]{2})", r"%\1", text)  # of JSON
        plain = (text, unquote(text), unquote(escaped), re.sub(r"\\[bfnrt]", "", text))
        forms = {_alphanumeric(form) for form in plain}
        runs = _runs(secret, run) | _runs(secret[::-1], run)
        for encoded in _encodings(secret):
            runs |= _runs(encoded, 2 * run)
        return any(part in form for part in runs for form in forms)

    def _without_key(self, value: Any) -> Any:
        """Return a reply without texts that repeat the key: answers are stored. Short keys are words of any text."""
        if isinstance(value, str):
            long = len(_alphanumeric(self._secret())) >= 2 * RUN
            return REPEATED if long and self._repeats_key(value, 2 * RUN) else value
        if isinstance(value, list):
            return [self._without_key(one) for one in value]
        if isinstance(value, dict):
            return {self._without_key(key): self._without_key(one) for key, one in value.items()}
        return value


def _alphanumeric(text: str) -> str:
    return re.sub(r"[\W_]", "", text).casefold()


def _runs(text: str, length: int) -> set[str]:
    """Return all runs of so many letters and digits of a text; all of a shorter one."""
    plain = _alphanumeric(text)
    length = min(length, len(plain))
    return {plain[i : i + length] for i in range(len(plain) - length + 1)} if plain else set()


def _encodings(secret: str) -> Iterator[str]:
    """Yield a key in hexadecimal digits and in base64, whatever stands before it there."""
    yield secret.encode().hex()
    for before in range(3):
        yield base64.b64encode(b" " * before + secret.encode()).decode()[before + (before > 0) :].rstrip("=")[:-1]


def _cut_later(connected: socket.socket, seconds: float, late: threading.Event) -> threading.Timer:
    """Start a timer that ends a connection; the connection's own time-out begins anew with every byte."""

    def cut() -> None:
        late.set()
        with suppress(OSError):
            connected.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, cut)
    timer.daemon = True
    timer.start()
    return timer


def _split(url: str) -> SplitResult:
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme not in ("http", "https") or not parts.hostname or port == -1:
        raise BadValue("a server is openai:URL#MODEL, with a URL such as http://localhost:8000/v1")
    return parts


def _seconds(text: str | None) -> float | None:
    """Return the pause that a Retry-After header asks for: seconds, or a date."""
    if text is None:
        return None
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
