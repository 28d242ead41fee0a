"""Run journals: truncation loses whole events only."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.evaluation.run_folder.journal import CellWritten, VideoFailed, VideoKept, VideoList, journal_of, read_events

EVENTS = [
    VideoFailed("a\nb", "DataError", "no video", ""),
    VideoList("k", ("ä", "\u2028")),
    CellWritten("clean", "sha256:0", "k"),
]
MORE = VideoKept("v", "/v.mp4", "0", (1, 2), ((0, 3),))


@given(st.data())
def test_a_truncated_journal_keeps_whole_events(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    with journal_of(path) as journal:
        for event in EVENTS:
            journal.add(event)
    content = path.read_bytes()
    cut = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:cut])
    remaining = EVENTS[: content[:cut].count(b"\n")]
    assert read_events(path) == remaining
    with journal_of(path) as journal:
        assert journal.read() == remaining
        journal.add(MORE)
    assert read_events(path) == [*remaining, MORE]


def test_a_missing_journal_has_no_events(tmp_path: Path) -> None:
    assert read_events(tmp_path / "journal.jsonl") == []
