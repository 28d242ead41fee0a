"""Location of coded video: a local file, a member of a tar archive, or an address that a user typed."""

from __future__ import annotations

import os
from typing import BinaryIO

from jostle.core.types.video_location import is_address
from jostle.io.video.coded_file import CodedFile
from jostle.io.video.validation import PathLike, check_file


def locate(location: PathLike) -> CodedFile:
    """Return the coded video at a location, after checking that there is one.

    Raises:
        MediaError: if there is none, or it is not a regular file.
    """
    if isinstance(location, os.PathLike):
        location = location.__fspath__()
    if isinstance(location, str) and is_address(location):
        from jostle.io.video.remote_file import remote_file

        return remote_file(location)
    name = os.fsdecode(location)
    if is_member(name):
        from jostle.io.video.tar_member import tar_member

        return tar_member(name)
    path, identity = check_file(name)

    def open_local() -> BinaryIO:
        return open(path, "rb")

    return CodedFile(path, identity, open_local, local=True)


def is_member(location: str | os.PathLike[str]) -> bool:
    """Return whether a location is a file in a local tar archive, as `shard.tar#member.mp4`."""
    name = os.fsdecode(location)
    return ".tar#" in name.lower() and not is_address(name) and not os.path.lexists(name)
