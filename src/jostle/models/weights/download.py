"""One file by https: resumed where it stopped, in place only when it is whole, from the host that was named."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import http.client
import json
import os
import re
import shutil
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from jostle.errors import JostleError, ResourceError, Tampered
from jostle.io.files.atomic import put_in_place, write_text

STALL_S = 30.0  # without a byte
PAUSE_S = 1.0  # before another try
TRIES = 3  # in a row that bring nothing
CHUNK = 2**18
MIB = 2**20
OFF = 0.01  # by how much a file may differ from its published size

Progress = Callable[[int, int], None]
_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+)")
_PASSING = (408, 425, 429, 500, 502, 503, 504)


@dataclass(frozen=True)
class Wanted:
    """A file of somebody's server.

    Attributes:
        url: where, by https.
        through: other hosts that it may be sent on to.
        mebibytes: its size, where it is known.
        check: looks at the file before it is given its name, and raises if it is not what was wanted.
    """

    url: str
    through: Collection[str] = ()
    mebibytes: float | None = None
    check: Callable[[Path], None] = lambda path: None


class _Unfinished(Exception):
    """The connection ended before the file did."""


def download(wanted: Wanted, target: Path, *, progress: Progress | None = None) -> None:
    """Fetch a file; what is there of it already is kept and gone on with, if the server still has the same.

    Two processes that want the same file fetch it once: the second waits.

    Args:
        target: where it goes. Unfinished, it lies beside it under a name that begins with a dot.
        progress: called with (mebibytes there, mebibytes in all).

    Raises:
        ResourceError: if it cannot be had; the message says what to fetch by hand, and where to put it.
        Tampered: if the host sends on to another one.
    """
    part = target.with_name(f".{target.name}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _alone_in(target.parent):
            if target.is_file():  # another process was here meanwhile
                return
            try:
                with part.open("ab+") as file:
                    _fetch(wanted, file, part, target, progress)
                    file.flush()
                    os.fsync(file.fileno())
            except JostleError:
                if not part.stat().st_size:
                    _forget(part)
                raise
            try:
                wanted.check(part)
            except JostleError:
                _forget(part)  # what is wrong does not get right by more of it
                raise
            put_in_place(part, target)
            _note(part).unlink(missing_ok=True)
    except OSError as error:
        raise ResourceError(f"{target}: cannot be written ({error.strerror}); see that there is room") from None


@contextlib.contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Wait until no other process fetches into a folder; the lock is on the folder, and ends with the process."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # some network file systems know no locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _fetch(wanted: Wanted, file: IO[bytes], part: Path, target: Path, progress: Progress | None) -> None:
    opener = urllib.request.build_opener(_Redirects(wanted))
    left, why, most = TRIES, "", file.seek(0, os.SEEK_END)
    while left:
        try:
            _go_on(opener, wanted, file, part, progress)
            return
        except urllib.error.HTTPError as error:
            why = f"the server answers {error.code} {error.reason}"
            error.close()
            if error.code not in _PASSING:
                break
        except urllib.error.URLError as error:
            why = f"the server cannot be reached: {error.reason}"
        except (_Unfinished, TimeoutError, ConnectionError, ssl.SSLError, http.client.HTTPException) as error:
            why = "nothing came for a while" if isinstance(error, TimeoutError) else str(error) or "it was cut off"
        had = file.seek(0, os.SEEK_END)
        left = TRIES if had > most else left - 1  # a server may send the same for ever
        most = max(most, had)
        if left:
            time.sleep(PAUSE_S)
    had = file.seek(0, os.SEEK_END)
    kept = f" The same again goes on after {had / MIB:.1f} MiB." if had else ""
    raise ResourceError(
        f"{wanted.url}: cannot be fetched: {why}.{kept} Or fetch it by hand, and put it at {target}, or give its path "
        "as the weights"
    )


def _go_on(
    opener: urllib.request.OpenerDirector, wanted: Wanted, file: IO[bytes], part: Path, progress: Progress | None
) -> None:
    """One answer of the server, added to what is there."""
    have, mark = file.seek(0, os.SEEK_END), _marked(part, wanted.url)
    headers = {"User-Agent": "jostle", "Accept-Encoding": "identity"}
    if have and mark:
        headers |= {"Range": f"bytes={have}-", "If-Range": mark}
    request = urllib.request.Request(wanted.url, headers=headers)
    try:
        answer = opener.open(request, timeout=STALL_S)
    except urllib.error.HTTPError as error:
        if error.code == 416:  # there is no such rest of it: what is here is of something else
            file.truncate(0)
            raise _Unfinished("what was here did not belong to it") from None
        raise
    with contextlib.closing(answer):
        found = _CONTENT_RANGE.fullmatch(answer.headers.get("Content-Range", ""))
        if answer.status == 206 and found is not None and int(found[1]) == have:
            total: int | None = int(found[2])
        else:
            file.truncate(0)
            have, total = 0, _length(answer)
            if answer.status == 206:
                raise _Unfinished("the server sent another piece than was asked for")
        _refuse_size(wanted, total)
        _make_room(part, (total or 0) - have)
        mark = answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""
        # A weak tag may stand for other bytes, and must not be resumed by.
        write_text(_note(part), [json.dumps({"url": wanted.url, "mark": "" if mark.startswith("W/") else mark}), "\n"])
        for piece in _pieces(answer):
            file.write(piece)
            have += len(piece)
            if progress is not None and total:
                progress(have // MIB, max(1, total // MIB))
    if total is not None and have != total:
        raise _Unfinished(f"it was cut off after {have} of {total} bytes")


def _pieces(answer: Any) -> Iterator[bytes]:
    while piece := answer.read1(CHUNK):
        yield piece


def _length(answer: Any) -> int | None:
    said = answer.headers.get("Content-Length", "")
    return int(said) if said.isdigit() else None


def _refuse_size(wanted: Wanted, total: int | None) -> None:
    if wanted.mebibytes is None or total is None:
        return
    if abs(total / MIB - wanted.mebibytes) > OFF * wanted.mebibytes:
        raise Tampered(
            f"{wanted.url}: the server offers {total / MIB:.3f} MiB, and the file has {wanted.mebibytes:.3f}; it is "
            "another one, and was not fetched"
        )


def _make_room(part: Path, wanted: int) -> None:
    free = shutil.disk_usage(part.parent).free
    if wanted > free:
        raise ResourceError(
            f"no room on the disk for {part.parent}: {wanted / MIB:.0f} MiB are wanted and {free / MIB:.0f} free; free "
            "some, or name another place in JOSTLE_CACHE"
        )


def _note(part: Path) -> Path:
    """What the server called the unfinished file."""
    return part.with_name(f"{part.name}.json")


def _marked(part: Path, url: str) -> str:
    """What the server calls this version of the file, so that it is gone on with only while it is the same."""
    try:
        found = json.loads(_note(part).read_bytes())
        return str(found["mark"]) if found["url"] == url else ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _note(part).unlink(missing_ok=True)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a host to itself and to those that were named, by https; nowhere else."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted, self._hosts = wanted, {urlsplit(wanted.url).netloc, *wanted.through}

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        to = urlsplit(newurl)
        if to.scheme != "https" or to.netloc not in self._hosts:
            fp.close()
            raise Tampered(
                f"{self._wanted.url}: refused, the server sends on to {to.scheme}://{to.netloc}; fetch the file by "
                "hand if you trust that"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def checksum(path: Path) -> str:
    """The sha256 of a file, in digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
