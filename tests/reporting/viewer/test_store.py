"""Store of rendered videos: rendered once, written atomically, kept within a quota."""

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
class FakeJob:
    """Fake render job: writes a few bytes and waits for its gate."""

    key: str = "a" * 32
    path: Path = Path("source.mp4")
    size: int = 10
    error: Exception | None = None
    original: bool = False
    gate: threading.Event = field(default_factory=threading.Event)
    begun: list[str] = field(default_factory=list)

    @classmethod
    def open(cls, **facts: Any) -> FakeJob:
        """Return a job that waits for nothing."""
        job = cls(**facts)
        job.gate.set()
        return job

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


def wait_until_settled(store: MediaStore, job: FakeJob, within_s: float = 10.0) -> RenderState:
    end = time.monotonic() + within_s
    while (state := store.ask(job)).name in ("waiting", "rendering"):
        assert time.monotonic() < end, "it is never done"
        time.sleep(0.01)
    return state


def test_concurrent_requests_render_once(store: MediaStore) -> None:
    job = FakeJob()
    with ThreadPoolExecutor(16) as pool:
        states = list(pool.map(lambda _: store.ask(job).name, range(64)))
    assert set(states) <= {"waiting", "rendering"}
    job.gate.set()
    assert wait_until_settled(store, job).name == "ready"
    assert job.begun == [job.key]


def test_progress_is_reported(store: MediaStore) -> None:
    job = FakeJob()
    end = time.monotonic() + 10
    while store.ask(job).share != 0.5:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert store.ready(job) is None
    job.gate.set()
    state = wait_until_settled(store, job)
    assert state.to_dict() == {"state": "ready", "share": 1.0, "film": state.film, "message": ""}
    assert state.path.read_bytes() == b"v" * 10


def test_existing_file_is_not_rendered_again(store: MediaStore, tmp_path: Path) -> None:
    job = FakeJob.open()
    wait_until_settled(store, job)
    second_store = MediaStore(tmp_path / "cache")
    assert second_store.ask(job).name == "ready"
    assert len(job.begun) == 1
    second_store.close()


def test_a_damaged_file_is_rendered_again(store: MediaStore, tmp_path: Path) -> None:
    job = FakeJob.open()
    wait_until_settled(store, job)
    (tmp_path / "cache" / f"{job.key}.mp4").write_bytes(b"v")
    assert wait_until_settled(store, job).name == "ready"
    metadata = tmp_path / "cache" / f"{job.key}.json"
    for damaged in ("{", "[" * 100_000, "[]"):
        metadata.write_text(damaged)
        assert wait_until_settled(store, job).name == "ready"
    metadata.unlink()
    os.mkfifo(metadata)
    assert wait_until_settled(store, job).name == "ready"
    assert len(job.begun) == 6


def test_original_is_played_in_place(store: MediaStore, tmp_path: Path) -> None:
    job = FakeJob.open(path=tmp_path / "source.mp4", original=True)
    assert wait_until_settled(store, job).path == job.path
    assert not list((tmp_path / "cache").glob("*.mp4"))


def test_failure_is_reported_and_retried_later(store: MediaStore, monkeypatch: pytest.MonkeyPatch) -> None:
    job = FakeJob.open(error=MediaError("no frame decodes"))
    failed = wait_until_settled(store, job)
    assert (failed.name, failed.message) == ("failed", "no frame decodes")
    assert store.ask(job) is failed
    monkeypatch.setattr(store_module, "TRY_AGAIN_S", 0.0)
    job.error = None
    assert wait_until_settled(store, job).name == "ready"


def test_least_recently_used_files_are_evicted_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "RECENT_S", 0.0)
    store = MediaStore(tmp_path, quota=25)
    for number in range(4):
        job = FakeJob.open(key=f"{number}" * 32)
        assert wait_until_settled(store, job).name == "ready"
        os.utime(tmp_path / f"{job.key}.json", (number, number))
    last = FakeJob.open(key="9" * 32)
    wait_until_settled(store, last)
    assert sorted(path.name[0] for path in tmp_path.glob("*.mp4")) == ["2", "3", "9"]
    assert sorted(path.name[0] for path in tmp_path.glob("*.json")) == ["2", "3", "9"]
    store.close()


def test_recently_used_files_are_not_evicted(tmp_path: Path) -> None:
    store = MediaStore(tmp_path, quota=0)
    for number in range(3):
        job = FakeJob.open(key=f"{number}" * 32)
        wait_until_settled(store, job)
    assert len(list(tmp_path.glob("*.mp4"))) == 3
    store.close()


def test_queue_is_bounded(store: MediaStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "QUEUED", 3)
    gate = threading.Event()
    jobs = [FakeJob(key=f"{number}" * 32, gate=gate) for number in range(5)]
    names = [store.ask(job).name for job in jobs]
    assert names[3:] == ["failed", "failed"]
    gate.set()
    assert wait_until_settled(store, jobs[0]).name == "ready"


def test_unwatched_jobs_are_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "UNWATCHED_S", 0.05)
    store = MediaStore(tmp_path)
    job = FakeJob()
    store.ask(job)
    end = time.monotonic() + 10
    while store._states:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert not list(tmp_path.glob("*"))
    monkeypatch.setattr(store_module, "UNWATCHED_S", 90.0)
    job.gate.set()
    assert wait_until_settled(store, job).name == "ready"
    store.close()


def test_closing_cancels_running_jobs(tmp_path: Path) -> None:
    store = MediaStore(tmp_path)
    job = FakeJob()
    store.ask(job)
    store.close()
    assert not list(tmp_path.glob("*"))
