"""Resolution of weights: a path, bundled weights, or a keyword that fetches public ones.

Those of the Hugging Face hub, `hf:ORG/NAME`, come through its library, with its cache and tokens. Others are downloaded
once, and verified from then on: a file lies in the cache under the address it came from; beside it stands its checksum.
Where none is published, the first one seen is kept, and a file that differs from it is refused, whether it changed here
or there.
"""

from __future__ import annotations

import importlib
import json
import os
import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jostle.core.environment import cache_folder
from jostle.core.formatting import join_names
from jostle.errors import BadValue, CheckpointError, DataError, JostleError, MissingExtra, ResourceError, Tampered
from jostle.io.files.atomic import write_bytes, write_text
from jostle.io.files.text import read_json
from jostle.models.weights.download import RECORD_BYTES, Progress, WeightFile, checksum, download
from jostle.models.weights.packaged import trained_weights
from jostle.models.weights.sources import HUB, PUBLIC, WeightSource, source_of

DEFAULT_FILE = "model.safetensors"
PICKLED = "pytorch_model.bin"
# Settings, tokenizers and tensors; what else a repository holds is not fetched.
TEXTS = ("*.json", "*.jinja", "merges.txt", "vocab.txt", "tokenizer.model", "spiece.model")
WANTED = (*TEXTS, "*.safetensors")
_PATTERN = re.compile(r"hf:(?P<repo>[\w.-]+/[\w.-]+)(@(?P<revision>[\w.-]+))?(/(?P<file>.+))?")


@dataclass(frozen=True)
class HubLocation:
    """Repository of the hub, or a file in it.

    >>> HubLocation.parse("hf:timm/resnet18.a1_in1k@main/model.safetensors")
    HubLocation(repo='timm/resnet18.a1_in1k', revision='main', file='model.safetensors')
    """

    repo: str
    revision: str | None = None
    file: str | None = None

    @classmethod
    def parse(cls, text: str) -> HubLocation:
        """Parse a location written as `hf:ORG/NAME[@REVISION][/file]`."""
        match = _PATTERN.fullmatch(text)
        if match is None or ".." in text:
            raise BadValue(
                f"weights of the hub are hf:ORG/NAME, hf:ORG/NAME/file or hf:ORG/NAME@REVISION, not {text!r}"
            )
        return cls(**match.groupdict())

    @property
    def address(self) -> str:
        """Web address of the repository or file."""
        where = f"https://huggingface.co/{self.repo}"
        revision = self.revision or "main"
        return f"{where}/resolve/{revision}/{self.file}" if self.file else f"{where}/tree/{revision}"


def fetch_from_hub(text: str, *, folder: bool = False) -> Path:
    """Fetch `hf:ORG/NAME/file`, or for `hf:ORG/NAME` its only tensor file, or the folder.

    Args:
        folder: whether the network wants a folder, with settings and tensors.

    Raises:
        MissingExtra: without huggingface_hub.
        BadValue: if there is no such file, or it is ambiguous.
        ResourceError: if it cannot be reached; the message says what to fetch by hand.
    """
    place = HubLocation.parse(text)
    try:
        hub = importlib.import_module("huggingface_hub")
    except ImportError:
        raise MissingExtra(f"weights by {HUB}", "hf") from None
    try:
        if place.file is not None:
            return Path(hub.hf_hub_download(place.repo, place.file, revision=place.revision))
        if folder:
            snapshot = Path(hub.snapshot_download(place.repo, revision=place.revision, allow_patterns=list(WANTED)))
            return snapshot if any(snapshot.glob("*.safetensors")) else _convert_pickled(hub, place, snapshot)
        return Path(hub.hf_hub_download(place.repo, _find_tensor_file(hub, place), revision=place.revision))
    except JostleError:
        raise
    except Exception as error:  # the library's and its transport's own, which have no common base but this
        raise _translate_error(hub, place, error) from None


def _convert_pickled(hub: Any, place: HubLocation, folder: Path) -> Path:
    """Copy a folder without safetensors; its pickle is read safely and written as safetensors."""
    from jostle.models.checkpoints import read_weights, write_weights

    copy = cache_folder() / "weights" / "huggingface.co" / place.repo / folder.name  # called by the commit
    target = copy / DEFAULT_FILE
    if not target.is_file():
        pickled = hub.hf_hub_download(place.repo, PICKLED, revision=place.revision)
        copy.mkdir(parents=True, exist_ok=True)
        for path in (path for pattern in TEXTS for path in folder.glob(pattern)):
            write_bytes(copy / path.name, [path.read_bytes()])
        write_weights(read_weights(pickled), target, metadata={"format": "pt"})
    return copy


def _find_tensor_file(hub: Any, place: HubLocation) -> str:
    """Return the name of the only tensor file in a repository."""
    if isinstance(hub.try_to_load_from_cache(place.repo, DEFAULT_FILE, revision=place.revision), str):
        return DEFAULT_FILE  # there without asking
    names: list[str] = hub.list_repo_files(place.repo, revision=place.revision)
    files = [name for name in names if name.endswith(".safetensors")]
    if DEFAULT_FILE in files:
        return DEFAULT_FILE
    if len(files) != 1:
        held = (
            f"{len(files)} files of tensors ({join_names(files)})" if files else f"no safetensors ({join_names(names)})"
        )
        raise BadValue(f"hf:{place.repo}: holds {held}; say which file, hf:{place.repo}/FILE")
    return files[0]


def _translate_error(hub: Any, place: HubLocation, error: Exception) -> JostleError:
    errors = hub.errors
    first = str(error).strip().split("\n")[0][:200]
    if isinstance(error, errors.GatedRepoError):
        return BadValue(
            f"hf:{place.repo}: its owners ask for consent: give it at {place.address}, then `hf auth login`"
        )
    if isinstance(error, errors.RepositoryNotFoundError):
        return BadValue(f"hf:{place.repo}: there is no such repository, or it is private: `hf auth login` ({first})")
    if isinstance(error, errors.RevisionNotFoundError | errors.HFValidationError):
        return BadValue(f"hf:{place.repo}: {first}")
    if isinstance(error, errors.EntryNotFoundError) and not isinstance(error, errors.LocalEntryNotFoundError):
        return BadValue(f"hf:{place.repo}: has no file {place.file!r}; see {HubLocation(place.repo).address}")
    if isinstance(error, OSError) and error.errno is not None and not isinstance(error, ConnectionError):
        return ResourceError(
            f"hf:{place.repo}: cannot be kept ({error.strerror}); see that there is room for its cache"
        )
    return ResourceError(
        f"hf:{place.repo}: the hub cannot be reached, and its cache lacks it ({type(error).__name__}: {first}); "
        f"fetch {place.address} by hand, and give the path of what you got as the weights"
    )


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
    if not os.path.lexists(record):
        return None
    try:
        return str(read_json(record, max_bytes=RECORD_BYTES)["sha256"])
    except (DataError, KeyError):
        raise Tampered(
            f"{record}: is damaged; delete it, and the file beside it, which is then fetched again", fault="F137"
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


FOREIGN = ("http://", "https://", "ftp://")


def weights_path(registry: str, name: str, weights: str | Path, *, progress: Progress | None = None) -> Path:
    """Resolve `weights` to a file or folder for a network, downloading it if requested.

    Args:
        registry: `models`, `extractors`, `detectors` or `objectdetectors`.
        name: of the network.
        weights: a path; `clean` or `robust`, for those that come with jostle; `public`, or `hf:ORG/NAME[/file]`.
        progress: called with (mebibytes there, mebibytes in all).

    Raises:
        BadValue: if it is not known where public weights are.
        UnknownName: if no weights come with jostle for this model.
    """
    text = str(weights)
    if text == PUBLIC:
        place = public_source(registry, name)
        if place is None:
            raise BadValue(f"{name}: it is not known where public weights of it are; give the path of a file")
        if place.parts:
            files = [weights_path(registry, part, text, progress=progress) for part in place.parts]
            return files[-1].parent
        return fetch_weights(name, place, folder=_wants_folder(registry, name), progress=progress)
    if text.startswith(HUB):
        return fetch_from_hub(text, folder=_wants_folder(registry, name))
    if text.startswith(FOREIGN):
        raise BadValue(
            f"{text}: weights are fetched by {PUBLIC} or hf:ORG/NAME; fetch this yourself, and give the file"
        )
    return trained_weights(name, weights)


def public_source(registry: str, name: str) -> WeightSource | None:
    """Return the source of a network's public weights; a library's network provides its own."""
    if registry == "models" and "/" in name:
        from jostle.models.recognition.recogniser import find_kind

        return find_kind(name).place
    return source_of(registry, name)


def _wants_folder(registry: str, name: str) -> bool:
    if registry == "models":
        from jostle.models.recognition.recogniser import find_kind

        return find_kind(name).takes == "folder"
    if registry == "objectdetectors":
        from jostle.models.objects.object_detector import object_detectors

        return object_detectors[name].takes == "folder"
    return False
