"""Access control of the viewer: this machine's browser only, with the printed token, never cross-site."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Scripts, styles, pictures and videos come from here alone; nothing inline runs, and nobody frames a page.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# The same, but pages of this machine may frame it.
FRAMED = POLICY.replace("frame-ancestors 'none'", "frame-ancestors http://localhost:* http://127.0.0.1:*")
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
TOKEN = "token"
REFUSED = "This viewer is opened by the address that `jostle view` printed; open that one again.\n"


class Guard:
    """Lets a request through, or answers 403 or 405 itself.

    A browser shows the token once, in the address, and keeps it as a cookie from then on.

    Args:
        app: what is behind.
        token: the secret in the printed address.
        port: port of the server; part of the cookie's name, as browsers share cookies between ports.
        framed: whether pages of this machine, such as a notebook, may show it within them.
    """

    def __init__(self, app: ASGIApp, *, token: str, port: int, framed: bool = False) -> None:
        self._headers = HEADERS | {"content-security-policy": FRAMED if framed else POLICY}
        self._visits = ("document", "iframe") if framed else ("document",)
        self._app, self._token, self._cookie = app, token, f"jostle-{port}"
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        if port == 80:
            self._hosts |= {"127.0.0.1", "localhost"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers[name] = value
                if "cache-control" not in headers:
                    headers["cache-control"] = "no-store"
            await send(message)

        headers = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]]
        if scope["method"] not in ("GET", "HEAD"):
            refusal = PlainTextResponse("only GET and HEAD\n", 405, {"allow": "GET, HEAD"})
            await refusal(scope, receive, guarded)
            return
        if not self._local(headers):
            await PlainTextResponse("this viewer answers its own pages only\n", 403)(scope, receive, guarded)
            return
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        tokens = [value for name, value in query if name == TOKEN]
        if tokens:
            await self._enter(scope, query, tokens[0])(scope, receive, guarded)
            return
        if not any(self._right(value) for value in _cookies(headers, self._cookie)):
            await PlainTextResponse(REFUSED, 403)(scope, receive, guarded)
            return
        await self._app(scope, receive, guarded)

    def _local(self, headers: Iterable[tuple[str, str]]) -> bool:
        """Whether the request addresses this server by name and does not come from another site."""
        known: dict[str, list[str]] = {}
        for name, value in headers:
            known.setdefault(name, []).append(value)
        hosts = known.get("host", [])
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return False
        if any(origin.lower() != f"http://{hosts[0].lower()}" for origin in known.get("origin", [])):
            return False
        from_where = known.get("sec-fetch-site", ["none"])
        visits = known.get("sec-fetch-mode") == ["navigate"] and known.get("sec-fetch-dest", [""])[0] in self._visits
        return visits or all(where in ("none", "same-origin") for where in from_where)

    def _enter(self, scope: Scope, query: list[tuple[str, str]], token: str) -> PlainTextResponse | RedirectResponse:
        if not self._right(token):
            return PlainTextResponse(REFUSED, 403)
        rest = urlencode([(name, value) for name, value in query if name != TOKEN])
        raw = scope.get("raw_path") or scope["path"].encode()
        # One slash: an address that begins with two would lead to another host.
        path = "/" + raw.decode("latin-1").split("?")[0].lstrip("/\\")
        answer = RedirectResponse(path + (f"?{rest}" if rest else ""), 303)
        answer.set_cookie(self._cookie, self._token, httponly=True, samesite="strict", path="/")
        return answer

    def _right(self, token: str) -> bool:
        return hmac.compare_digest(token.encode("utf-8", "replace"), self._token.encode())


def _cookies(headers: Iterable[tuple[str, str]], name: str) -> list[str]:
    values = []
    for header, value in headers:
        if header == "cookie":
            try:
                jar = SimpleCookie(value)
            except CookieError:
                continue
            if name in jar:
                values.append(jar[name].value)
    return values
