"""Rendered videos on the disk: made once, whole or not at all, within a quota."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from jostle.errors import MediaError
from jostle.reporting.viewer import store as store_module
from jostle.reporting.viewer.rendering import RenderedVideo
from jostle.reporting.viewer.store import MediaStore, RenderState


@dataclass
class Fake:
    """A rendering of a few bytes that says when it is at work."""

    key: str = "a" * 32
    path: Path = Path("source.mp4")
    size: int = 10
    error: Exception | None = None
    original: bool = False
    gate: threading.Event = field(default_factory=threading.Event)
    begun: list[str] = field(default_factory=list)

    def render(self, out: Path, progress: Callable[[float], None], check: Any) -> RenderedVideo:
        self.begun.append(self.key)
        progress(0.5)
        while not self.gate.wait(0.01):
            check()
        if self.error is not None:
            raise self.error
        if not self.original:
            out.write_bytes(b"v" * self.size)
        return RenderedVideo(3, (25, 1), None, 0.12, (2, 2), (), None, self.original)


def settled(store: MediaStore, work: Fake, within_s: float = 10.0) -> RenderState:
    end = time.monotonic() + within_s
    while (state := store.ask(work)).name in ("waiting", "rendering"):
        assert time.monotonic() < end, "it is never done"
        time.sleep(0.01)
    return state


def test_many_ask_and_one_renders(store: MediaStore) -> None:
    work = Fake()
    with ThreadPoolExecutor(16) as pool:
        states = list(pool.map(lambda _: store.ask(work).name, range(64)))
    assert set(states) <= {"waiting", "rendering"}
    work.gate.set()
    assert settled(store, work).name == "ready"
    assert work.begun == [work.key]


def test_progress_is_told(store: MediaStore) -> None:
    work = Fake()
    end = time.monotonic() + 10
    while store.ask(work).share != 0.5:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert store.ready(work) is None
    work.gate.set()
    done = settled(store, work)
    assert done.to_dict() == {"state": "ready", "share": 1.0, "film": done.film, "message": ""}
    assert done.path is not None
    assert done.path.read_bytes() == b"v" * 10


def test_what_is_there_is_not_rendered_again(store: MediaStore, tmp_path: Path) -> None:
    work = Fake()
    work.gate.set()
    settled(store, work)
    other = MediaStore(tmp_path / "cache")
    assert other.ask(work).name == "ready"
    assert len(work.begun) == 1
    other.close()


def test_a_damaged_file_is_rendered_again(store: MediaStore, tmp_path: Path) -> None:
    work = Fake()
    work.gate.set()
    settled(store, work)
    (tmp_path / "cache" / f"{work.key}.mp4").write_bytes(b"v")
    assert settled(store, work).name == "ready"
    about = tmp_path / "cache" / f"{work.key}.json"
    for damaged in ("{", "[" * 100_000, "[]"):
        about.write_text(damaged)
        assert settled(store, work).name == "ready"
    about.unlink()
    os.mkfifo(about)
    assert settled(store, work).name == "ready"
    assert len(work.begun) == 6


def test_the_original_is_played_where_it_lies(store: MediaStore, tmp_path: Path) -> None:
    work = Fake(path=tmp_path / "source.mp4", original=True)
    work.gate.set()
    assert settled(store, work).path == work.path
    assert not list((tmp_path / "cache").glob("*.mp4"))


def test_a_failure_is_told_and_tried_again_later(store: MediaStore, monkeypatch: pytest.MonkeyPatch) -> None:
    work = Fake(error=MediaError("no frame decodes"))
    work.gate.set()
    failed = settled(store, work)
    assert (failed.name, failed.message) == ("failed", "no frame decodes")
    assert store.ask(work) is failed
    monkeypatch.setattr(store_module, "TRY_AGAIN_S", 0.0)
    work.error = None
    assert settled(store, work).name == "ready"


def test_the_longest_unused_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "RECENT_S", 0.0)
    store = MediaStore(tmp_path, quota=25)
    for number in range(4):
        work = Fake(key=f"{number}" * 32)
        work.gate.set()
        assert settled(store, work).name == "ready"
        os.utime(tmp_path / f"{work.key}.json", (number, number))
    last = Fake(key="9" * 32)
    last.gate.set()
    settled(store, last)
    assert sorted(path.name[0] for path in tmp_path.glob("*.mp4")) == ["2", "3", "9"]
    assert sorted(path.name[0] for path in tmp_path.glob("*.json")) == ["2", "3", "9"]
    store.close()


def test_what_is_looked_at_stays(tmp_path: Path) -> None:
    store = MediaStore(tmp_path, quota=0)
    for number in range(3):
        work = Fake(key=f"{number}" * 32)
        work.gate.set()
        settled(store, work)
    assert len(list(tmp_path.glob("*.mp4"))) == 3
    store.close()


def test_not_more_wait_than_can_be_waited_for(store: MediaStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "QUEUED", 3)
    gate = threading.Event()
    works = [Fake(key=f"{number}" * 32, gate=gate) for number in range(5)]
    names = [store.ask(work).name for work in works]
    assert names[3:] == ["failed", "failed"]
    gate.set()
    assert settled(store, works[0]).name == "ready"


def test_what_nobody_asks_after_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "UNWATCHED_S", 0.05)
    store = MediaStore(tmp_path)
    work = Fake()
    store.ask(work)
    end = time.monotonic() + 10
    while store._states:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert not list(tmp_path.glob("*"))
    monkeypatch.setattr(store_module, "UNWATCHED_S", 90.0)
    work.gate.set()
    assert settled(store, work).name == "ready"
    store.close()


def test_closing_gives_up_what_is_under_way(tmp_path: Path) -> None:
    store = MediaStore(tmp_path)
    work = Fake()
    store.ask(work)
    store.close()
    assert not list(tmp_path.glob("*"))
