"""Weights from the Hugging Face hub, `hf:ORG/NAME`, through its library with its cache and tokens."""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jostle.core.cache import cache_folder
from jostle.core.state_dict import join_names
from jostle.errors import BadValue, JostleError, MissingExtra, ResourceError
from jostle.io.files.atomic import write_bytes
from jostle.models.weights.shipped.sources import HUB

DEFAULT_FILE = "model.safetensors"
PICKLED = "pytorch_model.bin"
# Settings and tensors; what else a repository holds is not fetched.
WANTED = ("*.json", "*.safetensors")
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
        for path in folder.glob("*.json"):
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
