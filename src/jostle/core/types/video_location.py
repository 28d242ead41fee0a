"""Locations of videos: paths, and addresses that a user typed."""

from __future__ import annotations

import os
import re
from pathlib import Path, PosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")


def hide_credentials(address: str) -> str:
    """Return an address as it may be printed: without user, password and query, which may hold a key.

    >>> hide_credentials("rtsp://admin:secret@10.0.0.7:554/cam?token=abc")
    'rtsp://10.0.0.7:554/cam?...'
    """
    match = ADDRESS.match(address)
    if not match:
        return address
    try:
        parts = urlsplit(address)
        host = parts.netloc.rpartition("@")[2]
        # A password with an unescaped slash or question mark makes the user part look like a host and a path.
        if "@" in parts.path + parts.query + parts.fragment:
            return f"{match[1]}://..."
    except ValueError:
        return f"{match[1]}://..."
    return f"{match[1]}://{host}{parts.path}{'?...' if parts.query or parts.fragment else ''}"


class VideoAddress(PosixPath):
    """Address of a video, such as `https://host/a.mp4`, where a path is expected; there is no local file behind it.

    Printed, it is without user, password and query, which may hold a key; `os.fspath` gives all of it. As a path of
    the standard library would lose one of its slashes, only `location_of` makes one, of what a user typed: what a file
    names is a path, and never opened as an address.
    """

    address: str

    def __new__(cls, address: str) -> VideoAddress:
        self = super().__new__(cls, address)
        self.address = address
        return self

    def __reduce__(self) -> Any:
        return VideoAddress, (self.address,)

    def __fspath__(self) -> str:
        return self.address

    def __str__(self) -> str:
        return hide_credentials(self.address)

    def __repr__(self) -> str:
        return f"VideoAddress({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VideoAddress) and self.address == other.address

    def __hash__(self) -> int:
        return hash(self.address)

    @property
    def scheme(self) -> str:
        """What is before `://`, in small letters."""
        return self.address.partition("://")[0].lower()

    @property
    def name(self) -> str:
        """Last part of the address, without its query; of a member of an archive, the name of the member."""
        parts = urlsplit(self.address)
        member = parts.fragment.rpartition("/")[2]
        return member or unquote(parts.path.rstrip("/").rpartition("/")[2]) or parts.netloc.rpartition("@")[2]

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return os.path.splitext(self.name)[0]

    @property
    def suffix(self) -> str:
        """Suffix of the name, with its dot."""
        return os.path.splitext(self.name)[1]

    @property
    def parent(self) -> Any:
        """A folder that is not there: nothing local lies next to an address."""
        return Path(self.address).parent

    def is_dir(self, **options: bool) -> bool:
        """Return False: an address is of one video."""
        return False

    def is_file(self, **options: bool) -> bool:
        """Return False: it is no local file."""
        return False

    def exists(self, **options: bool) -> bool:
        """Return False: there is no such path."""
        return False

    def is_symlink(self) -> bool:
        """Return False: there is no such path."""
        return False

    def resolve(self, strict: bool = False) -> VideoAddress:
        """Return the address itself."""
        return self

    def absolute(self) -> VideoAddress:
        """Return the address itself."""
        return self

    def expanduser(self) -> VideoAddress:
        """Return the address itself."""
        return self


def is_address(location: object) -> bool:
    """Return whether a location is an address rather than a path.

    >>> is_address("https://host/a.mp4"), is_address("a.mp4"), is_address("C:/a.mp4")
    (True, False, False)
    """
    return isinstance(location, VideoAddress) or (isinstance(location, str) and bool(ADDRESS.match(location)))


def location_of(source: str | os.PathLike[str]) -> Path:
    """Return the path of a video that a user names, or its address.

    >>> location_of("videos/a.mp4").name, location_of("https://host/a.mp4?key=1").stem
    ('a.mp4', 'a')
    """
    if isinstance(source, VideoAddress):
        return source
    return VideoAddress(source) if isinstance(source, str) and is_address(source) else Path(source)
