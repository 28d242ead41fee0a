"""Who may ask: F81."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from jostle.reporting.viewer.access import POLICY

PORT, TOKEN = 8123, "secret-of-the-test"
HERE = f"127.0.0.1:{PORT}"


def test_without_the_token_nothing_is_told(stranger: TestClient) -> None:
    for path in ("/", "/index.json", "/runs/detection.json", "/static/app.js", "/media/detection/clean/a.mp4", "/no"):
        answer = stranger.get(path)
        assert (answer.status_code, "detection" in answer.text) == (403, False)


@pytest.mark.fault("F81")
@pytest.mark.parametrize("wrong", ["", "x", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "é", "%00"])
def test_F81_a_wrong_token_is_refused(stranger: TestClient, wrong: str) -> None:
    answer = stranger.get("/", params={"token": wrong})
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers
    assert stranger.get("/index.json", headers={"cookie": f"jostle-{PORT}={wrong!a}"}).status_code == 403


def test_the_token_becomes_a_cookie_and_leaves_the_address(stranger: TestClient) -> None:
    answer = stranger.get("/runs/detection", params={"token": TOKEN, "t": "1.5"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/runs/detection?t=1.5")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert stranger.get("/index.json").status_code == 200


def test_the_token_leads_to_no_other_host(stranger: TestClient) -> None:
    for path in ("//evil.example/", "/%5C%5Cevil.example/", "/\\evil.example"):
        answer = stranger.get(f"http://{HERE}{path}?token={TOKEN}")
        assert answer.status_code == 303
        assert not answer.headers["location"].startswith(("//", "/\\"))  # a browser takes both for a host


@pytest.mark.fault("F81")
@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", f"127.0.0.1.evil.example:{PORT}", ""]
)
def test_F81_a_foreign_host_is_refused(client: TestClient, host: str) -> None:
    assert client.get("/index.json", headers={"host": host}).status_code == 403


@pytest.mark.fault("F81")
@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},  # another port of this machine
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"},
    ],
)
def test_F81_a_page_of_somebody_else_is_refused(client: TestClient, headers: dict[str, str]) -> None:
    assert client.get("/index.json", headers=headers).status_code == 403


def test_own_pages_and_links_are_let_through(client: TestClient) -> None:
    for headers in (
        {"origin": f"http://{HERE}", "sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none"},
        {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"},
        {"host": f"localhost:{PORT}"},
    ):
        assert client.get("/index.json", headers=headers).status_code == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_can_be_changed(client: TestClient, method: str) -> None:
    assert client.request(method, "/index.json").status_code == 405


@pytest.mark.parametrize("path", ["/", "/runs/detection", "/index.json", "/static/app.js", "/nothing", "/nothing.json"])
def test_every_answer_is_under_the_policy(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    assert headers["content-security-policy"] == POLICY
    assert "unsafe" not in POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert not [name for name in headers if name.startswith("access-control")]
