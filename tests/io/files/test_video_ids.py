"""Video ids and file names: ids match in every Unicode form, and every id has a safe name."""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jostle.core.formatting import join_names
from jostle.errors import BadValue, DataError
from jostle.io.files.video_ids import (
    MAX_NAME_BYTES,
    collisions,
    file_name_for,
    id_of,
    normalize_id,
    path_for,
    quote_name,
    refuse_collisions,
)

ANY_ID = st.text(st.characters(), max_size=300) | st.text("-._~ /\\a\u00e9e\u0301\udce9", max_size=8)
RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com[0-9\u00b9\u00b2\u00b3]|lpt[0-9\u00b9\u00b2\u00b3])(\.|\Z)")


def assert_safe(name: str) -> None:
    raw = name.encode("utf-8")  # fails for surrogates
    assert 0 < len(raw) <= MAX_NAME_BYTES
    assert not re.search(r"[\x00-\x20\x7f/\\:*?\"'<>|%#$&;`(){}\[\]!^]", name)
    assert ".." not in name
    assert name[0] not in "-.~=+@"
    assert name[-1] not in ". "
    assert not RESERVED.match(name)
    assert name.isprintable()
    assert unicodedata.is_normalized("NFC", name)


@given(ANY_ID, st.sampled_from(["", ".mp4", ".json.gz"]))
@example("", "")
@example("..", "")
@example("CON", ".mp4")
@example("\u0301", ".mp4")
def test_any_id_gets_a_safe_name(video_id: str, suffix: str) -> None:
    name = file_name_for(video_id, suffix)
    assert_safe(name)
    assert name.endswith(suffix)
    assert name == file_name_for(normalize_id(video_id), suffix)


@given(st.lists(ANY_ID, max_size=20))
def test_two_ids_never_share_a_name(ids: list[str]) -> None:
    distinct = {normalize_id(i) for i in ids}
    assert len({file_name_for(i, ".mp4") for i in ids}) == len(distinct)


@given(ANY_ID)
def test_a_generated_name_is_not_the_name_of_another_id(video_id: str) -> None:
    name = file_name_for(video_id, "")
    if normalize_id(name) != normalize_id(video_id):
        assert file_name_for(name, "") != name


@given(ANY_ID)
def test_normal_form_is_final(video_id: str) -> None:
    assert normalize_id(normalize_id(video_id)) == normalize_id(video_id)


@pytest.mark.parametrize("harmless", ["video_test_0000004", "v_-abc", "_a", "a.b", "Caf\u00e9", "走る", "🏊", "a~b"])
def test_a_harmless_id_is_its_own_name(harmless: str) -> None:
    assert file_name_for(harmless, ".mp4") == harmless + ".mp4"


@pytest.mark.parametrize(("length", "unchanged"), [(MAX_NAME_BYTES - 4, True), (MAX_NAME_BYTES - 3, False)])
def test_the_limit_counts_the_suffix(length: int, unchanged: bool) -> None:
    name = file_name_for("x" * length, ".mp4")
    assert (name == "x" * length + ".mp4") is unchanged
    assert len(name) == MAX_NAME_BYTES


def test_a_long_id_is_cut_between_characters() -> None:
    name = file_name_for("\u00e9" * 400, ".mp4")
    assert re.fullmatch(r"\u00e9+~[0-9a-f]{16}\.mp4", name)
    assert MAX_NAME_BYTES - 1 <= len(name.encode()) <= MAX_NAME_BYTES


@pytest.mark.parametrize("suffix", ["mp4", "/x", ".mp4.", ". ", ".\u00e9", "." + "x" * 40])
def test_a_suffix_must_be_plain(suffix: str) -> None:
    with pytest.raises(BadValue, match=r"a file suffix must be plain, such as '\.mp4', got"):
        file_name_for("a", suffix)


def test_ids_come_from_the_bytes_of_file_names() -> None:
    assert id_of(os.fsdecode(b"x/caf\xc3\xa9.mp4")) == "caf\u00e9"
    assert id_of(Path(os.fsdecode(b"x/caf\xe9.mp4"))) == "caf\udce9"
    assert id_of("a.b.mp4") == "a.b"


def test_path_for_puts_utf8_on_disk(tmp_path: Path) -> None:
    path_for(tmp_path, file_name_for("cafe\u0301", ".txt")).write_text("x")
    assert os.listdir(os.fsencode(tmp_path)) == [b"caf\xc3\xa9.txt"]


def test_collisions_ignore_case_and_form_and_keep_the_spelling() -> None:
    names = ["a.mp4", "b.mp4", "A.MP4", "cafe\u0301", "CAF\u00c9", "b.mp4", "c"]
    assert collisions(names) == [("a.mp4", "A.MP4"), ("b.mp4", "b.mp4"), ("cafe\u0301", "CAF\u00c9")]
    assert collisions(["a", "b"]) == []


def test_refuse_collisions_is_silent_without_any() -> None:
    refuse_collisions(["a", "b"], "out")
    with pytest.raises(DataError, match="out: 5 group"):
        refuse_collisions([x for c in "abcde" for x in (c, c.upper())], "out")


def test_names_are_quoted_in_messages() -> None:
    assert quote_name("a\nb") == r"'a\nb'"
    assert quote_name("caf\udce9") == r"'caf\udce9'"
    assert join_names([]) == ""
    assert join_names(["a", "b", "c"]) == "a, b, c"
