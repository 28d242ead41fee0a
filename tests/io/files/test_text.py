"""Reading text and JSON: accepted contents, and positions in error messages."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.refusals import refused
from jostle.core.formatting import describe
from jostle.errors import DataError
from jostle.io.files.text import _CONSTANT, _path, _steps, find_repeated_key, find_word, locate, read_json, read_text


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "ann.json"


def refusal(file: Path, content: str | bytes, fault: str) -> str:
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    with refused(fault, DataError) as caught:
        read_json(file)
    message = str(caught.value)
    assert message.startswith(f"{file}: ")
    return message.removeprefix(f"{file}: ")


def test_plain_and_gzipped_files_read_alike(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"a": [1, 2.5, null]}')
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(b'{"a": [1, 2.5, null]}'))
    assert read_json(tmp_path / "a.json") == read_json(str(tmp_path / "a.json.gz")) == {"a": [1, 2.5, None]}


@pytest.mark.fault("F27")
def test_F27_truncated_json_says_line_column_and_nearest_key(file: Path) -> None:
    text = '{"database": {\n  "v_1": {"annotations": [{"label": "Run",\n    "segment": [1.0, '
    assert refusal(file, text, "F27") == (
        "broken JSON at line 3, column 22, nearest key 'segment', in database.v_1.annotations[0].segment[1]: "
        "Expecting value; the file looks cut off, fetch it again"
    )
    assert "nearest key 'v_1', in database.v_1: Expecting ':' delimiter" in refusal(file, '{"database": {"v_1"', "F27")
    assert "Unterminated string" in refusal(file, '{"database": {"v_', "F27")


@pytest.mark.fault("F27")
def test_F27_trailing_garbage_and_wrong_commas(file: Path) -> None:
    assert refusal(file, '{"a": 1}\n}', "F27") == (
        "broken JSON at line 2, column 1, nearest key 'a': Extra data; correct it there, or fetch the file again"
    )
    assert "line 1, column 9, nearest key 'a'" in refusal(file, '{"a": 1 "b": 2}', "F27")
    assert refusal(file, " \n", "F27") == "the file is empty; fetch it again"


@pytest.mark.fault("F27")
def test_F27_broken_gzip(file: Path) -> None:
    compressed = gzip.compress(json.dumps({str(i): i for i in range(1000)}).encode())
    for broken in (compressed[: len(compressed) // 2], compressed[:20] + b"\xff" * 40 + compressed[60:]):
        assert refusal(file, broken, "F27").startswith("broken gzip data (")


@pytest.mark.fault("F28")
@pytest.mark.parametrize(
    ("text", "what"), [("[1, 2]", "a list of 2"), ("3", "3"), ("null", "null"), ('"a"', "the text 'a'")]
)
def test_F28_the_top_must_be_an_object(file: Path, text: str, what: str) -> None:
    assert refusal(file, text, "F28") == f"holds {what} at the top; an object {{...}} is needed"


@pytest.mark.fault("F30")
@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_F30_constants_are_refused_with_their_position(file: Path, word: str) -> None:
    text = '{"database": {"NaN": {"annotations": [{"segment": [0, 1]},\n {"segment": [2, ' + word + "]}]}}}"
    assert refusal(file, text, "F30") == (
        f"{word} is not a finite number, at line 2, column 18, nearest key 'segment', "
        "in database.NaN.annotations[1].segment[1]; correct or remove the entry"
    )


@pytest.mark.fault("F33")
def test_F33_repeated_keys_are_refused(file: Path) -> None:
    text = '{"database": {\n "v_1": {"subset": "a"},\n "v_2": {"subset": "b"},\n "v\\u005f1": {}}}'
    assert refusal(file, text, "F33") == (
        "the key 'v_1' appears twice in database, in line 2 and line 4; keep one of them"
    )
    assert "the key 'a' appears twice in the top object" in refusal(file, '{"a": 1, "a": 1}', "F33")


@pytest.mark.fault("F38")
def test_F38_depth_digits_and_size_have_clear_limits(file: Path) -> None:
    nested = '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}"
    assert "brackets are nested too deeply to be annotations" in refusal(file, nested, "F38")
    assert "brackets are nested" in refusal(file, '{"a":' * 100_000 + "1" + "}" * 100_000, "F38")
    assert refusal(file, '{"a": [1,\n -' + "9" * 5000 + "]}", "F38") == (
        "a number of more than 300 digits at line 2, column 2, nearest key 'a', in a[1]; no time or count is that long"
    )
    assert json.loads("9" * 300) == read_json(write_content(file, '{"a": -' + "9" * 300 + "}"))["a"] * -1
    with pytest.raises(DataError, match="larger than the limit of 10 bytes; split the file or raise the limit"):
        read_text(write_content(file, "x" * 11), max_bytes=10)
    assert read_text(write_content(file, "x" * 10), max_bytes=10) == "x" * 10
    bomb = gzip.compress(b" " * (8 << 20))
    with pytest.raises(DataError, match="larger than the limit of 1000 bytes"):
        read_text(write_content(file, bomb), max_bytes=1000)


def write_content(file: Path, content: str | bytes) -> Path:
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def test_unreadable_paths_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none.json: cannot be read \(No such file or directory\); check the path"):
        read_text(tmp_path / "none.json")
    with pytest.raises(DataError, match="not a regular file; give a text file"):
        read_text(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="not a regular file"):
        read_text(tmp_path / "pipe")
    with pytest.raises(DataError, match="cannot be read"):
        read_text("a\0b")


@pytest.mark.parametrize(
    ("content", "looks_like"),
    [
        (pickle.dumps({"a": 1}), "a Python pickle"),
        (b"PK\x03\x04\xff", "a zip archive"),
        (b"abc\0\0\x01", "a binary file"),
        (b"\x01\0\xff\0\xfe", "a binary file|UTF-16"),
        (b"{" + zlib.compress(b"x" * 99), "8-bit encoding|a binary file"),
    ],
)
def test_other_formats_are_named(file: Path, content: bytes, looks_like: str) -> None:
    file.write_bytes(content)
    with pytest.raises(DataError, match=f"it looks like .*({looks_like})"):
        read_text(file)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), JSON, max_size=4), st.integers(0, 200), st.booleans())
def test_valid_json_is_read_and_truncated_json_is_refused(
    tmp_path_factory: pytest.TempPathFactory, value: dict[str, Any], cut: int, ascii_only: bool
) -> None:
    file = tmp_path_factory.getbasetemp() / "property.json"
    text = json.dumps(value, ensure_ascii=ascii_only, indent=1)
    data = text.encode("utf-8")
    assert read_json(write_content(file, data)) == value
    with pytest.raises(DataError):
        read_json(write_content(file, data[: min(cut, len(data) - 1)]))


@given(JSON, st.data())
def test_locating_is_exact_although_flat_parts_are_skipped(value: Any, data: st.DataObject) -> None:
    text = json.dumps(value, indent=data.draw(st.sampled_from([None, 1])))
    text = text[: data.draw(st.integers(0, len(text)))]
    position = data.draw(st.integers(0, len(text)))
    step = next(step for step in _steps(text) if step.start >= position)
    location = locate(text, position)
    assert (location.path, location.key) == (_path(step.containers), step.last_key)


def test_locating_in_broken_text_does_not_crash() -> None:
    assert locate("", 0).path == ""
    assert locate("]}]", 3).key is None
    assert locate('{"a b": {"c": [0, {"d": ', 23).path == "['a b'].c[1].d"
    assert locate("[" * 50, 50).path == "[0][0][0] ... [0][0][0]"
    assert locate(r'{"\x": 1', 8).key == r"\x"
    assert locate('{"k": [{"a": 1}, [1, 2], {}, 3', 30).key == "a"
    assert find_word('{"NaN": "NaN"}', _CONSTANT) == 14
    with pytest.raises(ValueError, match="no key is repeated"):
        find_repeated_key('{"a": {"a": 1}}')


def test_values_are_described_for_messages() -> None:
    assert describe({}) == "an empty object"
    assert describe({"a": 1}) == "an object with keys 'a'"
    assert describe("x" * 50) == f"the text '{'x' * 40}...'"
    assert describe(True) == "true"
