"""Members of tar archives as videos, as in shards of WebDataset: `shard.tar#member.mp4` is read where it lies."""

from __future__ import annotations

import difflib
import io
import os
import tarfile
from functools import lru_cache
from typing import BinaryIO

from jostle.core.random import key_for
from jostle.errors import MediaError
from jostle.io.video.coded_file import CodedFile, FileSlice
from jostle.io.video.validation import Identity, check_file, printable_name

_MAX_MEMBERS = 200_000


def tar_member(name: str) -> CodedFile:
    """Return the member of an archive that `archive.tar#member` names.

    Raises:
        MediaError: if there is no such archive or member, or the archive is compressed or cut off.
    """
    cut = name.lower().index(".tar#") + len(".tar")
    path, identity = check_file(name[:cut])
    start, size = find_member(_index(path, identity), name[cut + 1 :], path, identity.size)
    version = key_for(identity.mtime_ns, "member", str(identity.size), str(start)) >> 1

    def open_member() -> BinaryIO:
        return io.BufferedReader(FileSlice(os.open(path, os.O_RDONLY | os.O_CLOEXEC), start, size))

    state = Identity(identity.device, identity.inode, size, version)
    return CodedFile(f"{path}#{name[cut + 1 :]}", state, open_member)


def find_member(index: dict[str, tuple[int, int]], member: str, archive: str, size: int) -> tuple[int, int]:
    """Return first byte and size of a member; its name may begin with `./` or not."""
    printable = printable_name(archive)
    place = index.get(os.path.normpath(member))
    if place is None:
        close = difflib.get_close_matches(member, index, n=3, cutoff=0.6)
        hint = f"did you mean {' or '.join(close)}?" if close else f"it has {', '.join([*index][:3]) or 'none'}"
        raise MediaError(f"{printable}: holds no file {printable_name(member)}; {hint}", fault="F21")
    if not place[1]:
        raise MediaError(f"{printable}#{printable_name(member)}: empty file; pack it again", fault="F1")
    if sum(place) > size:
        raise MediaError(
            f"{printable}: ends within {printable_name(member)}; the archive is cut off, so copy it again", fault="F3"
        )
    return place


@lru_cache(maxsize=8)
def _index(path: str, identity: Identity) -> dict[str, tuple[int, int]]:
    with open(path, "rb") as file:
        return read_index(file, path)


def read_index(file: BinaryIO, archive: str) -> dict[str, tuple[int, int]]:
    """Return first byte and size of every regular file in an open archive, by name."""
    index: dict[str, tuple[int, int]] = {}
    try:
        with tarfile.open(fileobj=file, mode="r:") as members:
            for count, member in enumerate(members):
                if member.isreg() and not member.issparse():
                    index[os.path.normpath(member.name)] = (member.offset_data, member.size)
                if count >= _MAX_MEMBERS:
                    raise MediaError(f"{printable_name(archive)}: holds more than {_MAX_MEMBERS} files; split it")
    except (tarfile.TarError, EOFError, ValueError) as error:
        if not index:
            raise MediaError(
                f"{printable_name(archive)}: no plain tar archive ({error}); members of a compressed one cannot be "
                "read where they lie, so unpack it",
                fault="F2",
            ) from None
    except OSError as error:
        raise MediaError(
            f"{printable_name(archive)}: cannot be read ({error.strerror or error})", fault="F18"
        ) from None
    return index
