"""Cache of rendered videos on disk: each rendered once and atomically, evicted by last use."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from jostle.core.results import plain
from jostle.errors import DataError, JostleError
from jostle.io.files.atomic import write_text
from jostle.io.files.text import read_json
from jostle.reporting.viewer.rendering import FORMAT, Cancelled, Progress, RenderedVideo

QUOTA = 2 * 2**30  # bytes of rendered video
AT_ONCE = 2  # videos rendered at a time
QUEUED = 64  # that may wait for their turn
RECENT_S = 120.0  # a video requested more recently is not evicted
TRY_AGAIN_S = 5.0  # a failed rendering is retried on requests after this time
UNWATCHED_S = 90.0  # a rendering without requests for so long is cancelled; hidden pages poll once a minute
ABANDONED_S = 3600.0  # a half-written file so old is of a process that was killed


class Work(Protocol):
    """Something that can be rendered."""

    @property
    def key(self) -> str: ...
    @property
    def path(self) -> Path: ...
    def render(self, out: Path, progress: Progress, check: Any) -> RenderedVideo: ...


@dataclass
class RenderState:
    """Rendering progress of one video."""

    name: Literal["waiting", "rendering", "ready", "failed"]
    share: float = 0.0  # of the work that is done
    film: dict[str, Any] | None = None  # what a player has to know, when it is ready
    path: Path | None = None  # the file to play
    message: str = ""  # why it failed
    since: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the state as plain values for JSON, without local paths."""
        return {"state": self.name, "share": self.share, "film": self.film, "message": self.message}


class MediaStore:
    """Renders on demand and keeps what was rendered, up to a quota in bytes."""

    def __init__(self, folder: Path, *, quota: int = QUOTA) -> None:
        self._folder, self._quota = folder, quota
        self._pool = ThreadPoolExecutor(AT_ONCE, "render")
        self._lock = threading.Lock()
        self._states: dict[str, RenderState] = {}
        self._used: dict[str, float] = {}
        self._closing = threading.Event()

    def ask(self, work: Work) -> RenderState:
        """Return the state of a video, and start rendering it unless that is done or under way.

        Raises:
            DataError: if its source is gone.
        """
        key = work.key
        with self._lock:
            now = time.monotonic()
            self._used[key] = now
            known = self._states.get(key)
            if known is not None and not (known.name == "failed" and now - known.since > TRY_AGAIN_S):
                return known
            there = self._there(key, work)
            if there is not None:
                return there
            if sum(state.name in ("waiting", "rendering") for state in self._states.values()) >= QUEUED:
                return RenderState("failed", message="too many videos wait to be rendered; try again in a moment")
            state = self._states[key] = RenderState("waiting")
        self._pool.submit(self._render, key, work, state)
        return state

    def ready(self, work: Work) -> RenderState | None:
        """The state of a video that can be played now, or None; renders nothing."""
        key = work.key
        with self._lock:
            self._used[key] = time.monotonic()
            return self._there(key, work)

    def close(self) -> None:
        """Give up what is under way; half-written files are removed."""
        self._closing.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _there(self, key: str, work: Work) -> RenderState | None:
        about, video = self._files(key)
        try:
            film = read_json(about)
            whole = film["format"] == FORMAT and (film["original"] or video.stat().st_size == film["bytes"])
        except (DataError, OSError, KeyError):
            return None
        if not whole:
            return None
        with contextlib.suppress(OSError):
            os.utime(about)
        return RenderState("ready", 1.0, film, work.path if film["original"] else video)

    def _files(self, key: str) -> tuple[Path, Path]:
        return self._folder / f"{key}.json", self._folder / f"{key}.mp4"

    def _render(self, key: str, work: Work, state: RenderState) -> None:
        about, video = self._files(key)

        def check() -> None:
            now = time.monotonic()
            if self._closing.is_set() or now - self._used.get(key, now) > UNWATCHED_S:
                raise Cancelled

        def report_share(share: float) -> None:
            state.share = share

        try:
            check()
            state.name = "rendering"
            self._folder.mkdir(parents=True, exist_ok=True)
            self._make_room()
            film = {"format": FORMAT, **plain(work.render(video, report_share, check))}
            film["bytes"] = 0 if film["original"] else video.stat().st_size
            write_text(about, [json.dumps(film)])
        except Cancelled:
            self._forget(key)
        except Exception as error:  # a page says what went wrong; the viewer goes on
            text = str(error) if isinstance(error, JostleError) else f"{type(error).__name__}: {error}"
            state.message, state.since = text, time.monotonic()
            state.name = "failed"
        else:
            self._forget(key)

    def _forget(self, key: str) -> None:
        with self._lock:
            self._states.pop(key, None)

    def _make_room(self) -> None:
        """Delete the least recently used videos until the rest fits, except those just requested."""
        with self._lock, contextlib.suppress(OSError):
            now = time.monotonic()
            entries = []
            for about in self._folder.glob("*.json"):
                with contextlib.suppress(OSError):
                    video = about.with_suffix(".mp4")
                    bytes_of = video.stat().st_size if video.exists() else 0
                    entries.append((about.stat().st_mtime, bytes_of, about, video))
            total = sum(bytes_of for _, bytes_of, _, _ in entries)
            for _, bytes_of, about, video in sorted(entries, key=lambda one: one[0]):
                if total <= self._quota:
                    break
                if now - self._used.get(about.stem, -RECENT_S) >= RECENT_S:
                    for path in (about, video):  # the note first: without it the video does not count as there
                        path.unlink(missing_ok=True)
                    total -= bytes_of
            for left in self._folder.glob(".*.part-*"):
                with contextlib.suppress(OSError):
                    if time.time() - left.stat().st_mtime > ABANDONED_S:
                        left.unlink()
            self._used = {key: at for key, at in self._used.items() if now - at < RECENT_S}
