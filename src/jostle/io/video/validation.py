"""Validation of input files before any decoder opens them: local, regular, and of a video format."""

from __future__ import annotations

import errno
import os
import re
import stat
from dataclasses import dataclass, field
from typing import BinaryIO

from jostle.core.types.video_location import hide_credentials
from jostle.errors import BadValue, MediaError

PathLike = str | bytes | os.PathLike[str] | os.PathLike[bytes]


def _default_max_pixels() -> int:
    text = os.environ.get("JOSTLE_MAX_PIXELS", "")
    if not text:
        return 64_000_000
    if not text.isdecimal() or int(text) == 0:
        raise BadValue(f"JOSTLE_MAX_PIXELS must be a positive whole number of pixels, got {text!r}")
    return int(text)


@dataclass(frozen=True)
class Limits:
    """Limits of what a file may claim before it is refused.

    Attributes:
        max_pixels: width times height of a frame; the environment variable JOSTLE_MAX_PIXELS changes the
            default.
        max_frames: coded frames in a file.
        max_open_s: seconds that opening a file, which decodes it once, may take.
    """

    max_pixels: int = field(default_factory=_default_max_pixels)
    max_frames: int = 2_000_000
    max_open_s: float = 3600.0


@dataclass(frozen=True)
class Identity:
    """Identity of one state of a file, without reading its content."""

    device: int
    inode: int
    size: int
    mtime_ns: int


def check_file(path: PathLike) -> tuple[str, Identity]:
    """Return the absolute path and identity of a local, regular, non-empty file.

    A symbolic link to a regular file is followed. Nothing is opened, so that a pipe or a device cannot block.
    """
    name = os.fsdecode(path)
    printable = printable_name(name)
    if "\0" in name:
        raise MediaError(f"{printable}: a path cannot hold a NUL character", fault="F23")
    absolute = os.path.abspath(name)
    try:
        status = os.stat(absolute)
    except FileNotFoundError:
        if os.path.islink(absolute):
            raise MediaError(f"{printable}: a symbolic link that points nowhere; fix the link", fault="F18") from None
        if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", name):
            raise MediaError(
                f"{printable}: only local files are read, not addresses; download it first", fault="F17"
            ) from None
        raise MediaError(f"{printable}: no such file; check the path", fault="F21") from None
    except OSError as error:
        reason = "a loop of symbolic links" if error.errno == errno.ELOOP else error.strerror or "it cannot be examined"
        raise MediaError(f"{printable}: {reason}; give a regular file", fault="F18") from None
    if not stat.S_ISREG(status.st_mode):
        raise MediaError(f"{printable}: is {_node_kind(status.st_mode)}; give a regular file", fault="F18")
    if not os.access(absolute, os.R_OK):
        raise MediaError(f"{printable}: no permission to read it; change its mode", fault="F18")
    if status.st_size == 0:
        raise MediaError(f"{printable}: empty file; download or copy it again", fault="F1")
    return absolute, Identity(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def printable_name(path: PathLike) -> str:
    """Return the base name of a path or address without control characters, unpaired surrogates and keys."""
    whole = hide_credentials(os.fsdecode(path))
    name = os.path.basename(whole) or whole
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "replace").decode() for c in name)


def _node_kind(mode: int) -> str:
    kinds = {
        stat.S_IFDIR: "a folder",
        stat.S_IFIFO: "a named pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    return kinds.get(stat.S_IFMT(mode), "not a regular file")


# (offset, magic, description); video containers are not listed.
_NOT_VIDEO: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\xff\xd8\xff", "a JPEG image"),
    (0, b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (0, b"BM", "a BMP image"),
    (0, b"II*\0", "a TIFF image"),
    (0, b"MM\0*", "a TIFF image"),
    (8, b"WEBP", "a WebP image"),
    (4, b"ftypheic", "a HEIC image"),
    (4, b"ftypavif", "an AVIF image"),
    (0, b"%PDF", "a PDF document"),
    (0, b"PK\x03\x04", "a zip archive"),
    (0, b"\x1f\x8b", "a gzip archive"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (0, b"Rar!", "a RAR archive"),
    (257, b"ustar", "a tar archive"),
    (8, b"WAVE", "WAV audio"),
    (0, b"ID3", "MP3 audio"),
    (0, b"fLaC", "FLAC audio"),
    (0, b"\x7fELF", "a program"),
    (0, b"\x93NUMPY", "a NumPy array"),
    (0, b"\x89HDF", "an HDF5 file"),
    (0, b"version https://git-lfs", "a Git LFS pointer (run git lfs pull)"),
)
_PLAYLISTS: tuple[tuple[bytes, str], ...] = (
    (b"#EXTM3U", "an HLS playlist"),
    (b"ffconcat", "an FFmpeg concat list"),
    (b"v=0", "an SDP session"),
    (b"[playlist]", "a PLS playlist"),
    (b"<MPD", "a DASH manifest"),
)


def check_kind(file: BinaryIO, name: str) -> None:
    """Refuse an open file whose first bytes show that it is not a video, or refers to other files; closes it."""
    with file:
        head = file.read(4096)
        printable = printable_name(name)
        text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
        for magic, kind in _PLAYLISTS:
            if text.startswith(magic) or (text.startswith(b"<?xml") and magic in text):
                raise MediaError(f"{printable}: is {kind}; give the video file itself", fault="F17")
        for offset, magic, kind in _NOT_VIDEO:
            if head[offset : offset + len(magic)] == magic:
                raise MediaError(f"{printable}: not a video but {kind}; give a video file", fault="F2")
        if text[:15].lower().startswith((b"<!doctype html", b"<html")):
            raise MediaError(f"{printable}: not a video but an HTML page; download it again", fault="F2")
        if _is_text(head):
            raise MediaError(f"{printable}: not a video but text; give a video file", fault="F2")
        if head[4:8] == b"ftyp" and not _has_movie_box(file):
            raise MediaError(
                f"{printable}: the index (moov) of this mp4 is missing, as after a broken download; download it again",
                fault="F3",
            )


def _is_text(head: bytes) -> bool:
    start = head[:512]
    # YUV4MPEG2 video begins with a line of text.
    if start.startswith(b"YUV4MPEG2") or any(byte < 32 and byte not in b"\t\n\f\r" for byte in start):
        return False
    # The 512 bytes may end inside a character.
    return len(start.decode("utf-8", "ignore").encode()) >= len(start) - 3


def _has_movie_box(file: BinaryIO) -> bool:
    """Return whether the top-level boxes of an ISO base media file include the index."""
    position, size = 0, file.seek(0, os.SEEK_END)
    for _ in range(100_000):  # a damaged file can hold millions of empty boxes
        file.seek(position)
        header = file.read(16)
        if len(header) < 8:
            return False
        length, kind = int.from_bytes(header[:4], "big"), header[4:8]
        if kind in (b"moov", b"moof"):
            return True
        if length == 1 and len(header) == 16:
            length = int.from_bytes(header[8:16], "big")
        if length < 8 or position + length >= size:
            return False
        position += length
    return False


def ends_within_packet(file: BinaryIO) -> bool:
    """Return whether an open file is a transport stream that breaks off in a packet of 188, 192 or 204 bytes."""
    with file:
        head = file.read(4 * 204 + 4)
        length = file.seek(0, os.SEEK_END)
    for size, first in ((188, 0), (192, 4), (204, 0)):
        if len(head) > first + 3 * size and all(head[first + i * size] == 0x47 for i in range(4)):
            return length % size != 0
    return False


def missing_tail(file: BinaryIO) -> bool:
    """Return whether an open Matroska or AVI file is shorter than its header says.

    mp4 needs no such check, because its index counts the frames.
    """
    with file:
        head = file.read(4096)
        size = file.seek(0, os.SEEK_END)
    if head.startswith(b"RIFF"):
        return int.from_bytes(head[4:8], "little") + 8 > size
    if head.startswith(b"\x1aE\xdf\xa3"):
        start = head.find(b"\x18\x53\x80\x67")
        if start < 0 or start + 12 > len(head):
            return False
        first = head[start + 4]
        width = 9 - first.bit_length()
        if not 1 <= width <= 8:
            return False
        coded = int.from_bytes(head[start + 4 : start + 4 + width], "big") & ((1 << 7 * width) - 1)
        unknown = (1 << 7 * width) - 1
        return coded != unknown and start + 4 + width + coded > size
    return False
