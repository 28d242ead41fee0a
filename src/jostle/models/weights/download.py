"""Download of one file by https: resumable, atomic, and only from the named hosts."""

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
import stat
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from jostle.errors import DataError, JostleError, ResourceError, Tampered
from jostle.io.files.atomic import replace_and_sync, write_text
from jostle.io.files.text import read_json

STALL_S = 30.0  # without a byte
PAUSE_S = 1.0  # before another try
TRIES = 3  # in a row that bring nothing
CHUNK = 2**18
MIB = 2**20
OFF = 0.01  # by how much a file may differ from its published size
RECORD_BYTES = 2**16  # of a record beside a file

Progress = Callable[[int, int], None]
_LENGTH = re.compile(r"[0-9]{1,15}")  # int takes other digits too, and refuses thousands of them
_CONTENT_RANGE = re.compile(rf"bytes ({_LENGTH.pattern})-{_LENGTH.pattern}/({_LENGTH.pattern})")
_PASSING = (408, 425, 429, 500, 502, 503, 504)


@dataclass(frozen=True)
class WeightFile:
    """File on a public server."""

    url: str  # where, by https
    through: Collection[str] = ()  # other hosts that it may be sent on to
    mebibytes: float | None = None  # its size, where it is known
    # looks at the file before it is given its name, and raises if it is not what was wanted
    check: Callable[[Path], None] = lambda path: None


class _Unfinished(Exception):
    """Raised when the connection ends before the file is complete."""


def download(source: WeightFile, target: Path, *, progress: Progress | None = None) -> None:
    """Download a file; resume a partial download if the server still has the same version.

    Two processes that want the same file fetch it once: the second waits.

    Args:
        target: where it goes. Unfinished, it lies beside it under a name that begins with a dot.
        progress: called with (mebibytes there, mebibytes in all).

    Raises:
        ResourceError: if it cannot be had; the message says what to fetch by hand, and where to put it.
        Tampered: if the host sends on to another one, or sends another size than the published one.
    """
    part = target.with_name(f".{target.name}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _lock_folder(target.parent):
            if target.is_file():  # another process was here meanwhile
                return
            try:
                with _open_part(part) as file:
                    _fetch(source, file, part, target, progress)
                    file.flush()
                    os.fsync(file.fileno())
            except JostleError:
                if not part.stat().st_size:
                    _forget(part)
                raise
            try:
                source.check(part)
            except JostleError:
                _forget(part)  # what is wrong does not get right by more of it
                raise
            replace_and_sync(part, target)
            _note(part).unlink(missing_ok=True)
    except OSError as error:
        raise ResourceError(f"{target}: cannot be written ({error.strerror}); see that there is room") from None


def _open_part(part: Path) -> IO[bytes]:
    """Open a partial file for appending; a link, or anything else that is no file of its own, is replaced."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    with contextlib.suppress(FileNotFoundError):
        status = os.lstat(part)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            part.unlink()
            flags |= os.O_EXCL
    return os.fdopen(os.open(part, flags, 0o666), "ab+")


@contextlib.contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Wait until no other process downloads into a folder; the lock ends with the process."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # some network file systems know no locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _fetch(source: WeightFile, file: IO[bytes], part: Path, target: Path, progress: Progress | None) -> None:
    opener = urllib.request.build_opener(_Redirects(source))
    left, why, most = TRIES, "", file.seek(0, os.SEEK_END)
    while left:
        try:
            _resume(opener, source, file, part, progress)
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
    hint = f" The same again goes on after {had / MIB:.1f} MiB." if had else ""
    raise ResourceError(
        f"{source.url}: cannot be fetched: {why}.{hint} Or fetch it by hand, and put it at {target}, or give its path "
        "as the weights"
    )


def _resume(
    opener: urllib.request.OpenerDirector, source: WeightFile, file: IO[bytes], part: Path, progress: Progress | None
) -> None:
    """Append one response of the server to the partial file."""
    have, mark = file.seek(0, os.SEEK_END), _record_version(part, source.url)
    headers = {"User-Agent": "jostle", "Accept-Encoding": "identity"}
    if have and mark:
        headers |= {"Range": f"bytes={have}-", "If-Range": mark}
    request = urllib.request.Request(source.url, headers=headers)
    try:
        answer = opener.open(request, timeout=STALL_S)
    except urllib.error.HTTPError as error:
        if error.code == 416:  # there is no such rest of it: what is here is of something else
            file.truncate(0)
            raise _Unfinished("what was here did not belong to it") from None
        raise
    with contextlib.closing(answer):
        match = _CONTENT_RANGE.fullmatch(answer.headers.get("Content-Range", ""))
        if answer.status == 206 and match is not None and int(match[1]) == have:
            total: int | None = int(match[2])
        else:
            file.truncate(0)
            have, total = 0, _length(source, answer)
            if answer.status == 206:
                raise _Unfinished("the server sent another range than requested")
        _refuse_size(source, total)
        _make_room(part, (total or 0) - have)
        mark = answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""
        # A weak tag may stand for other bytes, and must not be resumed by.
        write_text(_note(part), [json.dumps({"url": source.url, "mark": "" if mark.startswith("W/") else mark}), "\n"])
        limit = total if total is not None else _largest(source)
        for piece in _pieces(answer):
            have += len(piece)
            if limit is not None and have > limit:
                file.truncate(0)
                raise Tampered(
                    f"{source.url}: the server sends more than the {limit} bytes that it announced or that were "
                    "published; it is another file, and was not kept",
                    fault="F135",
                )
            file.write(piece)
            if progress is not None and total:
                progress(have // MIB, max(1, total // MIB))
    if total is not None and have != total:
        raise _Unfinished(f"it was cut off after {have} of {total} bytes")
    _refuse_size(source, have)  # where no length was announced


def _pieces(answer: Any) -> Iterator[bytes]:
    while piece := answer.read1(CHUNK):
        yield piece


def _length(source: WeightFile, answer: Any) -> int | None:
    header = answer.headers.get("Content-Length")
    if header is None:
        return None
    if not _LENGTH.fullmatch(header):
        raise ResourceError(
            f"{source.url}: the server announces a length that is no number of bytes ({header[:40]!r}); fetch the file "
            "by hand, and give its path as the weights",
            fault="F136",
        )
    return int(header)


def _largest(source: WeightFile) -> int | None:
    """Return the number of bytes that a file of the published size may have."""
    return None if source.mebibytes is None else int((1 + OFF) * source.mebibytes * MIB)


def _refuse_size(source: WeightFile, total: int | None) -> None:
    if source.mebibytes is None or total is None:
        return
    if abs(total / MIB - source.mebibytes) > OFF * source.mebibytes:
        raise Tampered(
            f"{source.url}: the server offers {total / MIB:.3f} MiB, and the file has {source.mebibytes:.3f}; it is "
            "another one, and was not fetched"
        )


def _make_room(part: Path, needed: int) -> None:
    free = shutil.disk_usage(part.parent).free
    if needed > free:
        raise ResourceError(
            f"no space left on the disk for {part.parent}: {needed / MIB:.0f} MiB needed, {free / MIB:.0f} free; free "
            "some, or name another place in JOSTLE_CACHE"
        )


def _note(part: Path) -> Path:
    """Return the path that records the version of a partial file."""
    return part.with_name(f"{part.name}.json")


def _record_version(part: Path, url: str) -> str:
    """Return the recorded version of the file on the server, for resuming."""
    try:
        record = read_json(_note(part), max_bytes=RECORD_BYTES)
    except DataError:
        return ""
    mark = record.get("mark")
    # It becomes a header, which what somebody wrote into the record might break.
    fits = isinstance(mark, str) and mark.isascii() and mark.isprintable()
    return str(mark) if fits and record.get("url") == url else ""


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _note(part).unlink(missing_ok=True)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Redirect handler that allows only https, to the same or a named host."""

    def __init__(self, source: WeightFile) -> None:
        self._wanted, self._hosts = source, {urlsplit(source.url).netloc, *source.through}

    def http_error_302(self, req: Any, fp: Any, code: int, msg: str, headers: Any) -> Any:
        try:
            return super().http_error_302(req, fp, code, msg, headers)
        except ValueError as error:
            fp.close()
            raise Tampered(
                f"{self._wanted.url}: refused, the server sends on to an address that is none ({error}); fetch the "
                "file by hand",
                fault="F136",
            ) from None

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302

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
    """Return the sha256 of a file, as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
