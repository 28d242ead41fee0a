"""Crashes and hangs of a child process."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from jostle.errors import MediaError, UnknownName
from jostle.io.video.guard import run_guarded
from jostle.io.video.probe import probe


def test_an_answer_comes_through(videos: dict[str, Path]) -> None:
    assert run_guarded(probe, videos["mpeg4_avi"], timeout_s=60).codec == "mpeg4"


def test_our_errors_come_through_with_their_fault(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").touch()
    with pytest.raises(MediaError, match=r"a\.mp4: empty file") as caught:
        run_guarded(probe, tmp_path / "a.mp4", timeout_s=60)
    assert caught.value.fault == "F1"


def test_errors_that_cannot_travel_are_retold() -> None:
    # UnknownName takes three arguments and keeps one, so it cannot be rebuilt from a pickle.
    from jostle.io.video.guard import _make_picklable

    told = _make_picklable(UnknownName("codec", "x", ["y"]))
    assert isinstance(told, MediaError)
    assert "no codec is called 'x'" in str(told)


def test_a_crash_is_told_apart_from_a_hang() -> None:
    with pytest.raises(MediaError, match=rf"abort: decoder crashed \(signal {signal.SIGABRT.value}\)") as caught:
        run_guarded(os.abort, timeout_s=60)
    assert caught.value.fault == "F7"
    begun = time.monotonic()
    with pytest.raises(MediaError, match=r"sleep: no answer in 0\.5 s") as caught:
        run_guarded(time.sleep, 600, timeout_s=0.5)
    assert caught.value.fault == "F8"
    assert time.monotonic() - begun < 30


def test_any_other_error_names_its_kind() -> None:
    with pytest.raises(MediaError, match="ValueError: invalid literal"):
        run_guarded(int, "x", timeout_s=60)
