"""Public weights in the cache: downloaded once, and verified from then on.

A file lies in the cache under the address it came from; beside it stands its checksum. Where none is published, the
first one seen is kept, and a file that differs from it is refused, whether it changed here or there.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from jostle.core.cache import cache_folder
from jostle.core.state_dict import join_names
from jostle.errors import BadValue, CheckpointError, Tampered
from jostle.io.files.atomic import write_text
from jostle.models.weights.download import Progress, WeightFile, checksum, download
from jostle.models.weights.hub import fetch_from_hub
from jostle.models.weights.shipped.sources import HUB, WeightSource


def fetch_weights(name: str, place: WeightSource, *, folder: bool = False, progress: Progress | None = None) -> Path:
    """Fetch the public weights of a network; return the file, or the folder where it needs one.

    Args:
        name: of the network, for messages.
        folder: whether it wants a folder, of the hub.

    Raises:
        BadValue: if they have to be got by hand.
        ResourceError: if they cannot be fetched; the message says what to do by hand.
        Tampered: if they are not those that were there before, or not those that were published.
        CheckpointError: if it is something else than weights of this network.
    """
    if not place.url:
        raise BadValue(f"{name}: its public weights have to be got by hand: {place.by_hand}; then give the file")
    if place.url.startswith(HUB):
        return fetch_from_hub(place.url, folder=folder)  # which compares checksums itself
    target = cached_file(place)
    if not target.is_file():
        check = partial(_check, name, place, _record(target))
        download(WeightFile(place.url, place.through, place.mebibytes, check), target, progress=progress)
    _check(name, place, _record(target), target)
    return target


def cached_file(place: WeightSource) -> Path:
    """Return the cache path of a downloaded file."""
    parts = urlsplit(place.url)
    return cache_folder() / "weights" / parts.netloc.replace(":", "-") / parts.path.lstrip("/")


def _record(target: Path) -> Path:
    return target.with_name(f"{target.name}.json")


def _check(name: str, place: WeightSource, record: Path, path: Path) -> None:
    """Refuse a wrong file; the checksum of the first right one is recorded."""
    digest = checksum(path)
    if not digest.startswith(place.sha256):
        _check_names(name, place, path)  # says what it is instead, if it is no weights at all
        raise Tampered(f"{path}: its sha256 is {digest}, and the published one {place.sha256}...; {_again(path)}")
    recorded = _seen(record)
    if recorded is None:
        _check_names(name, place, path)
        content = {"format": 1, "url": place.url, "bytes": path.stat().st_size, "sha256": digest}
        write_text(record, [json.dumps(content, indent=1), "\n"])
    elif recorded != digest:
        raise Tampered(
            f"{path}: its sha256 is {digest}, and the file first fetched from {place.url} had {recorded}; "
            f"{_again(path)}. "
            f"If its authors replaced it and you want the new one, delete {record} too"
        )


def _again(path: Path) -> str:
    return f"delete {path}, and it is fetched again" if not path.name.startswith(".") else "it was not kept"


def _seen(record: Path) -> str | None:
    try:
        return str(json.loads(record.read_bytes())["sha256"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        raise Tampered(
            f"{record}: is damaged; delete it, and the file beside it, which is then fetched again"
        ) from None


def _check_names(name: str, place: WeightSource, path: Path) -> None:
    from jostle.models.checkpoints import read_weights

    lacking = [one for one in place.has if one not in (held := read_weights(path))]
    if lacking:
        raise CheckpointError(
            f"{path}: what came from {place.url} are not the weights of {name}: it has no {join_names(lacking)}, but "
            f"{join_names(list(held))}",
            fault="F54",
        )
