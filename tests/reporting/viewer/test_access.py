"""Access control of the viewer: token, host, origin and response headers (F81)."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from helpers.served import PORT, TOKEN
from jostle.reporting.viewer.access import POLICY

HERE = f"127.0.0.1:{PORT}"


def test_requests_without_the_token_are_refused(anonymous_client: TestClient) -> None:
    for path in ("/", "/index.json", "/runs/detection.json", "/static/app.js", "/media/detection/clean/a.mp4", "/no"):
        response = anonymous_client.get(path)
        assert (response.status_code, "detection" in response.text) == (403, False)


@pytest.mark.fault("F81")
@pytest.mark.parametrize("wrong", ["", "x", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "é", "%00"])
def test_F81_a_wrong_token_is_refused(anonymous_client: TestClient, wrong: str) -> None:
    response = anonymous_client.get("/", params={"token": wrong})
    assert response.status_code == 403
    assert "set-cookie" not in response.headers
    assert anonymous_client.get("/index.json", headers={"cookie": f"jostle-{PORT}={wrong!a}"}).status_code == 403


def test_token_becomes_a_cookie_and_leaves_the_url(anonymous_client: TestClient) -> None:
    response = anonymous_client.get("/runs/detection", params={"token": TOKEN, "t": "1.5"})
    assert (response.status_code, response.headers["location"]) == (303, "/runs/detection?t=1.5")
    cookie = response.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert anonymous_client.get("/index.json").status_code == 200


def test_token_redirect_stays_on_this_host(anonymous_client: TestClient) -> None:
    for path in ("//evil.example/", "/%5C%5Cevil.example/", "/\\evil.example"):
        response = anonymous_client.get(f"http://{HERE}{path}?token={TOKEN}")
        assert response.status_code == 303
        assert not response.headers["location"].startswith(("//", "/\\"))  # a browser takes both for a host


@pytest.mark.fault("F81")
@pytest.mark.parametrize(
    "headers",
    [
        *(
            {"host": host}
            for host in ("evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", f"{HERE}.evil.example", "")
        ),
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},  # another port of this machine
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"},
    ],
)
def test_F81_foreign_hosts_and_cross_site_requests_are_refused(client: TestClient, headers: dict[str, str]) -> None:
    assert client.get("/index.json", headers=headers).status_code == 403


def test_same_origin_requests_and_links_are_allowed(client: TestClient) -> None:
    for headers in (
        {"origin": f"http://{HERE}", "sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"},
        {"host": f"localhost:{PORT}"},
    ):
        assert client.get("/index.json", headers=headers).status_code == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_write_methods_are_not_allowed(client: TestClient, method: str) -> None:
    assert client.request(method, "/index.json").status_code == 405


@pytest.mark.parametrize("path", ["/", "/runs/detection", "/index.json", "/static/app.js", "/nothing", "/nothing.json"])
def test_every_response_has_security_headers(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    assert headers["content-security-policy"] == POLICY
    assert "unsafe" not in POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert not [name for name in headers if name.startswith("access-control")]
