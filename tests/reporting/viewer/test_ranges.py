"""Parts of files: what is asked for and nothing else, for every form of a range."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

from jostle.reporting.viewer.server import video_response

BLOCK = 2**16  # that Starlette reads at once
SIZE = 3 * BLOCK + 17
NUMBERS = st.integers(0, SIZE + 5) | st.integers(0, 10**17)


@pytest.fixture
def film(tmp_path: Path) -> Path:
    path = tmp_path / "film.mp4"
    path.write_bytes(bytes(i * 31 % 251 for i in range(SIZE)))
    return path


@pytest.fixture
def client(film: Path) -> TestClient:
    def answer(request: Request) -> Response:
        return video_response(film, request)

    return TestClient(Starlette(routes=[Route("/film", answer, methods=["GET", "HEAD"])]))


@given(first=NUMBERS | st.just(None), last=NUMBERS | st.just(None))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
def test_a_range_is_a_part_of_the_file(client: TestClient, film: Path, first: int | None, last: int | None) -> None:
    asked = f"bytes={'' if first is None else first}-{'' if last is None else last}"
    whole = film.read_bytes()
    if first is None:
        wanted = whole if last is None else whole[-last:] if last else b""
    else:
        wanted = whole if last is not None and last < first else whole[first : None if last is None else last + 1]
    answer = client.get("/film", headers={"range": asked})
    ignored = first is last is None or (first is not None and last is not None and last < first)
    assert answer.status_code == (200 if ignored else 206 if wanted else 416)
    assert answer.content == wanted


@pytest.mark.fault("F83")
@given(
    st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30)
    | st.from_regex(r"bytes=[0-9,\- ]{0,40}", fullmatch=True)
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
def test_F83_no_header_breaks_it(client: TestClient, film: Path, text: str) -> None:
    answer = client.get("/film", headers={"range": text})
    assert answer.status_code in (200, 206, 416)
    assert answer.content in film.read_bytes()


@pytest.mark.parametrize(
    ("asked", "first", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=5-", 5, SIZE),
        ("bytes=-9", SIZE - 9, SIZE),
        (f"bytes={BLOCK - 3}-{2 * BLOCK + 3}", BLOCK - 3, 2 * BLOCK + 4),
        ("bytes=10-99999999999999999", 10, SIZE),
        (f"bytes=-{10 * SIZE}", 0, SIZE),
    ],
)
def test_a_part(client: TestClient, film: Path, asked: str, first: int, end: int) -> None:
    answer = client.get("/film", headers={"range": asked})
    assert answer.status_code == 206
    assert answer.headers["content-range"] == f"bytes {first}-{end - 1}/{SIZE}"
    assert answer.headers["content-length"] == str(end - first)
    assert answer.content == film.read_bytes()[first:end]


@pytest.mark.parametrize("asked", [None, "bytes=0-1,5-9", "bytes=", "bytes=-", "bytes=a-b", "bytes=9-2", "chars=0-4"])
def test_all_of_it_where_no_single_range_is_asked_for(client: TestClient, film: Path, asked: str | None) -> None:
    answer = client.get("/film", headers={"range": asked} if asked else {})
    assert answer.status_code == 200
    assert answer.content == film.read_bytes()
    assert answer.headers["accept-ranges"] == "bytes"


@pytest.mark.parametrize("asked", [f"bytes={SIZE}-", "bytes=999999999999-", "bytes=-0"])
def test_beyond_the_end(client: TestClient, asked: str) -> None:
    answer = client.get("/film", headers={"range": asked})
    assert (answer.status_code, answer.content) == (416, b"")
    assert answer.headers["content-range"] == f"bytes */{SIZE}"


def test_head_and_conditions(client: TestClient, film: Path) -> None:
    head = client.head("/film", headers={"range": "bytes=0-99"})
    assert (head.status_code, head.headers["content-length"], head.content) == (206, "100", b"")
    tag = head.headers["etag"]
    assert client.get("/film", headers={"if-none-match": f'"x", {tag}'}).status_code == 304
    assert client.get("/film", headers={"if-range": tag, "range": "bytes=0-9"}).status_code == 206
    assert client.get("/film", headers={"if-range": '"old"', "range": "bytes=0-9"}).status_code == 200
    film.write_bytes(b"another film")
    assert client.get("/film", headers={"if-none-match": tag}).content == b"another film"


def test_a_file_that_is_gone(client: TestClient, film: Path) -> None:
    film.unlink()
    assert client.get("/film").status_code == 404
