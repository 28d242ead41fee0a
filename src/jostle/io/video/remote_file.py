"""Videos at addresses that a user typed: any scheme of fsspec, each fetched once into a temporary file without a name.

Every verb reads the whole of a video, most of them twice. So it is fetched in one go, and its frames are those of one
state: what is missing, silent, cut off or changed meanwhile is an error before the first frame.
"""

from __future__ import annotations

import io
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from jostle.core.random import key_for
from jostle.core.types.video_location import VideoAddress, hide_credentials
from jostle.errors import BadValue, JostleError, MediaError, MissingExtra, ResourceError, SourceChanged
from jostle.io.video.coded_file import CodedFile, FileSlice
from jostle.io.video.validation import Identity

TIMEOUT = "JOSTLE_TIMEOUT"  # environment variable: seconds after which a silent server counts as gone
_TIMEOUT_S = 60.0
_CHUNK = 4 * 2**20  # bytes read at once
# What the file systems of fsspec call the version of a file.
_VERSIONS = ("etag", "last-modified", "lastmodified", "content-md5", "digest", "md5hash", "crc32c", "generation",
             "version_id", "mtime", "created", "updated")  # fmt: skip


def remote_file(address: str) -> CodedFile:
    """Return the video at an address; `#member` after the address of a tar archive names one of its files.

    Raises:
        MediaError: if it cannot be reached, or its server does not say how long it is.
        MissingExtra: if fsspec is not installed.
    """
    whole, _, member = address.partition("#") if ".tar#" in address.lower() else (address, "", "")
    size, version = _state(whole)
    start = 0
    if member:
        start, size = _member(whole, member, size, version)
    identity = Identity(0, key_for(0, address) >> 1, size, version if not member else key_for(version, member) >> 1)

    def open_copy() -> BinaryIO:
        return io.BufferedReader(_fetched(address, whole, start, identity, version))

    return CodedFile(address, identity, open_copy)


def _member(archive: str, member: str, size: int, version: int) -> tuple[int, int]:
    from jostle.io.video.tar_member import find_member, read_index

    with _INDEX_LOCK:
        if (archive, version) not in _indices:
            with _errors_of(archive), _open(archive) as file:
                _indices.clear()
                _indices[archive, version] = read_index(file, str(VideoAddress(archive)))
        return find_member(_indices[archive, version], member, str(VideoAddress(archive)), size)


_indices: dict[tuple[str, int], dict[str, tuple[int, int]]] = {}
_INDEX_LOCK = threading.Lock()
_copies: dict[Identity, FileSlice] = {}  # the video fetched last
_COPY_LOCK = threading.Lock()


def _fetched(address: str, whole: str, start: int, identity: Identity, version: int) -> FileSlice:
    """Return a temporary file with the bytes of a video; that of the last video is used again."""
    with _COPY_LOCK:
        copy = _copies.get(identity)
        if copy is None:
            forget_copies()  # what is still read stays open until it is closed
            copy = _copies[identity] = _fetch(address, whole, start, identity.size, version)
        return copy.copy()


def forget_copies() -> None:
    """Close the temporary file of the last video."""
    while _copies:
        _copies.popitem()[1].close()


def _fetch(address: str, whole: str, start: int, size: int, version: int) -> FileSlice:
    name = hide_credentials(address)
    with _temporary_file(name) as copy, _errors_of(address), _open(whole) as source:
        source.seek(start)
        left = size
        while left:
            chunk = source.read(min(_CHUNK, left))
            if not chunk:
                raise MediaError(
                    f"{name}: ended after {size - left} of {size} bytes; the connection was cut off, so try again",
                    fault="F3",
                )
            _write(copy, chunk, name)
            left -= len(chunk)
        fetched = FileSlice(os.dup(copy.fileno()), 0, size)
    if _state(whole)[1] != version:
        fetched.close()
        raise SourceChanged(f"{name}: changed while it was fetched; try again when nothing writes to it", fault="F19")
    return fetched


def _temporary_file(name: str) -> Any:
    """Open a file without a name, which is gone when the last process that has it open ends."""
    try:
        return tempfile.TemporaryFile(prefix="jostle-", buffering=0)
    except OSError as error:
        raise _disk_error(error, name) from None


def _write(copy: Any, chunk: bytes, name: str) -> None:
    try:
        copy.write(chunk)
    except OSError as error:
        raise _disk_error(error, name) from None


def _disk_error(error: OSError, name: str) -> ResourceError:
    folder = tempfile.gettempdir()
    return ResourceError(
        f"{name}: cannot be copied into {folder} ({error.strerror}); free some space, or set TMPDIR to another folder"
    )


def _open(address: str) -> Any:
    system, path = _file_system(address)
    return system.open(path, "rb", block_size=_CHUNK)


def _state(address: str) -> tuple[int, int]:
    """Return the size of what lies at an address, and a hash of all that its server says of the version."""
    with _errors_of(address):
        system, path = _file_system(address)
        info = system.info(path)
    size = info.get("size")
    name = hide_credentials(address)
    if info.get("type") == "directory":
        raise MediaError(f"{name}: is a folder; give the address of a video", fault="F18")
    if size is None:
        raise MediaError(f"{name}: its server does not say how long it is; download it first", fault="F17")
    if size == 0:
        raise MediaError(f"{name}: empty file; upload it again", fault="F1")
    versions = {key.lower(): str(value) for key, value in info.items() if key.lower() in _VERSIONS}
    return int(size), key_for(0, str(size), *(f"{key} {versions[key]}" for key in sorted(versions))) >> 1


def _file_system(address: str) -> tuple[Any, str]:
    try:
        import fsspec
    except ImportError:
        raise MissingExtra(f"reading {hide_credentials(address)}", "remote") from None
    scheme = address.partition("://")[0].lower()
    if scheme not in fsspec.available_protocols():
        raise MediaError(
            f"{hide_credentials(address)}: {scheme}:// is not among the addresses that videos are read from, such as "
            "https:// and s3://; a plugin may open it (jostle.extend.video_source)",
            fault="F17",
        )
    settings: dict[str, Any] = {}
    if scheme in ("http", "https"):
        from aiohttp import ClientTimeout

        wait = ClientTimeout(total=None, sock_connect=_timeout_s(), sock_read=_timeout_s())
        settings = {"client_kwargs": {"timeout": wait, "trust_env": True}}  # proxies of the environment, and .netrc
    system, path = fsspec.core.url_to_fs(address, **settings)
    return system, path


def _timeout_s() -> float:
    text = os.environ.get(TIMEOUT, "")
    try:
        seconds = float(text or _TIMEOUT_S)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise BadValue(f"{TIMEOUT} must be a positive number of seconds, got {text!r}")
    return seconds


@contextmanager
def _errors_of(address: str) -> Iterator[None]:
    """Turn what file systems and servers raise into errors that name the address, without its credentials."""
    name = hide_credentials(address)
    try:
        yield
    except (JostleError, MemoryError):
        raise
    except Exception as error:  # every file system has its own
        raise _named_error(name, error) from error


def _named_error(name: str, error: Exception) -> JostleError:
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    missing = next((one for one in causes if isinstance(one, ImportError)), None)
    if missing is not None:
        return MediaError(f"{name}: needs a package of its scheme ({missing}); install that", fault="F17")
    if any(isinstance(one, TimeoutError) or "Timeout" in type(one).__name__ for one in causes):
        return MediaError(
            f"{name}: silent for {_timeout_s():g} s; try again, or raise {TIMEOUT} if the server is slow", fault="F21"
        )
    stated = (getattr(one, "status", None) for one in causes)
    status = next((one for one in stated if isinstance(one, int)), None)
    if status is not None and status not in (404, 410):
        return MediaError(f"{name}: refused by its server with status {status}; check address and rights", fault="F18")
    if any("Payload" in type(one).__name__ for one in causes):
        return MediaError(f"{name}: the connection was cut off; try again", fault="F3")
    if any("Connect" in type(one).__name__ or "Disconnected" in type(one).__name__ for one in causes):
        return MediaError(f"{name}: cannot be reached; check the address and the network", fault="F21")
    if isinstance(error, ValueError) and "seek" in str(error):
        return MediaError(
            f"{name}: its server answers no requests for a part, which files in archives need; download it first",
            fault="F17",
        )
    if isinstance(error, FileNotFoundError):
        return MediaError(f"{name}: no such file; check the address", fault="F21")
    if isinstance(error, PermissionError):
        return MediaError(f"{name}: no permission to read it; check your credentials", fault="F18")
    # Its words may hold the address with a key.
    return MediaError(f"{name}: cannot be fetched ({type(error).__name__}); -vv shows why", fault="F21")
