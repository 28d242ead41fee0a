"""Parts of files: what is asked for and nothing else, for every form of a range."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

from jostle.reporting.viewer.ranges import BLOCK, Unsatisfiable, file_response, parse_range

SIZE = 3 * BLOCK + 17
NUMBERS = st.integers(0, 20) | st.integers(0, 10**17)


@given(first=NUMBERS | st.just(None), last=NUMBERS | st.just(None), size=st.integers(0, 20))
def test_a_range_is_a_part_of_the_file(first: int | None, last: int | None, size: int) -> None:
    text = f"bytes={'' if first is None else first}-{'' if last is None else last}"
    whole = range(size)
    if first is None and last is None:
        wanted: range | None = None
    elif first is None:
        wanted = whole[-last:] if last else range(0)
    elif last is not None and last < first:
        wanted = None
    else:
        wanted = whole[first : None if last is None else last + 1]
    if wanted is None:
        assert parse_range(text, size) is None
    elif not len(wanted):
        with pytest.raises(Unsatisfiable):
            parse_range(text, size)
    else:
        assert parse_range(text, size) == (wanted[0], wanted[-1] + 1)


@pytest.mark.fault("F83")
@given(st.text(max_size=30) | st.from_regex(r"bytes=[0-9,\- ]{0,40}", fullmatch=True), st.integers(0, 100))
def test_F83_no_header_breaks_it(text: str, size: int) -> None:
    try:
        part = parse_range(text, size)
    except Unsatisfiable:
        return
    assert part is None or 0 <= part[0] < part[1] <= size


@pytest.fixture
def film(tmp_path: Path) -> Path:
    path = tmp_path / "film.mp4"
    path.write_bytes(bytes(i * 31 % 251 for i in range(SIZE)))
    return path


@pytest.fixture
def client(film: Path) -> TestClient:
    async def answer(request: Request) -> Response:
        return await file_response(film, request.headers, kind="video/mp4", head=request.method == "HEAD")

    return TestClient(Starlette(routes=[Route("/film", answer, methods=["GET", "HEAD"])]))


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
