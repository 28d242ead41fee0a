"""HTTP range requests: every form of a range returns exactly the requested bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

from jostle.reporting.viewer.server import video_response

BLOCK = 2**16  # bytes that Starlette reads at once
SIZE = 3 * BLOCK + 17
NUMBERS = st.integers(0, SIZE + 5) | st.integers(0, 10**17)


@pytest.fixture
def film(tmp_path: Path) -> Path:
    path = tmp_path / "film.mp4"
    path.write_bytes(bytes(i * 31 % 251 for i in range(SIZE)))
    return path


@pytest.fixture
def client(film: Path) -> TestClient:
    def respond(request: Request) -> Response:
        return video_response(film, request)

    return TestClient(Starlette(routes=[Route("/film", respond, methods=["GET", "HEAD"])]))


@given(first=NUMBERS | st.just(None), last=NUMBERS | st.just(None))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
@example(first=0, last=0)
@example(first=5, last=None)
@example(first=None, last=9)
@example(first=None, last=0)
@example(first=BLOCK - 3, last=2 * BLOCK + 3)
@example(first=10, last=99999999999999999)
@example(first=None, last=10 * SIZE)
@example(first=SIZE, last=None)
@example(first=999999999999, last=None)
def test_a_range_is_a_part_of_the_file(client: TestClient, film: Path, first: int | None, last: int | None) -> None:
    response = client.get("/film", headers={"range": f"bytes={_written(first)}-{_written(last)}"})
    content = film.read_bytes()
    if first is last is None or (first is not None and last is not None and last < first):
        assert (response.status_code, response.content) == (200, content)  # no range
        return
    start = max(SIZE - last, 0) if first is None else first
    end = SIZE if first is None or last is None else min(last + 1, SIZE)
    if start >= SIZE:
        assert (response.status_code, response.content) == (416, b"")
        assert response.headers["content-range"] == f"bytes */{SIZE}"
    else:
        assert (response.status_code, response.content) == (206, content[start:end])
        assert response.headers["content-range"] == f"bytes {start}-{end - 1}/{SIZE}"
        assert response.headers["content-length"] == str(end - start)


def _written(number: int | None) -> str:
    return "" if number is None else str(number)


@pytest.mark.fault("F83")
@given(
    st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30)
    | st.from_regex(r"bytes=[0-9,\- ]{0,40}", fullmatch=True)
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
def test_F83_arbitrary_range_headers_are_handled(client: TestClient, film: Path, text: str) -> None:
    response = client.get("/film", headers={"range": text})
    assert response.status_code in (200, 206, 416)
    assert response.content in film.read_bytes()


@pytest.mark.parametrize(
    "range_header", [None, "bytes=0-1,5-9", "bytes=", "bytes=-", "bytes=a-b", "bytes=9-2", "chars=0-4"]
)
def test_missing_or_multiple_ranges_return_the_whole_file(
    client: TestClient, film: Path, range_header: str | None
) -> None:
    response = client.get("/film", headers={"range": range_header} if range_header else {})
    assert response.status_code == 200
    assert response.content == film.read_bytes()
    assert response.headers["accept-ranges"] == "bytes"


def test_head_and_conditional_requests(client: TestClient, film: Path) -> None:
    head = client.head("/film", headers={"range": "bytes=0-99"})
    assert (head.status_code, head.headers["content-length"], head.content) == (206, "100", b"")
    tag = head.headers["etag"]
    assert client.get("/film", headers={"if-none-match": f'"x", {tag}'}).status_code == 304
    assert client.get("/film", headers={"if-range": tag, "range": "bytes=0-9"}).status_code == 206
    assert client.get("/film", headers={"if-range": '"old"', "range": "bytes=0-9"}).status_code == 200
    film.write_bytes(b"another film")
    assert client.get("/film", headers={"if-none-match": tag}).content == b"another film"


def test_deleted_file_is_not_found(client: TestClient, film: Path) -> None:
    film.unlink()
    assert client.get("/film").status_code == 404
