"""Models as they are given to `run`: a name, `package.module:attribute`, or the thing itself."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from jostle.core.plugins import found_at
from jostle.errors import BadValue
from jostle.models.loading.recogniser import load_recogniser, recogniser_weights

Identity = tuple[str | None, Literal["file", "folder", "tensors", "nothing"]]


class Model(Protocol):
    """Where a model comes from. It travels to other processes, and gives the model there.

    Attributes:
        name: what the model is known by.
    """

    @property
    def name(self) -> str: ...

    def get(self) -> Any:
        """The model."""

    def identity(self) -> Identity:
        """Fingerprint of its weights, and what that is the fingerprint of."""


@dataclass(frozen=True)
class NamedRecogniser:
    """A recogniser of the shelf, with weights from a file or a folder."""

    name: str
    weights: str | Path | None
    changes: Mapping[str, Any] = field(default_factory=dict)

    def get(self) -> Any:
        return load_recogniser(self.name, weights=self.weights, **self.changes)

    def identity(self) -> Identity:
        from jostle.io.files.fingerprint import file_fingerprint

        found = recogniser_weights(self.name, self.weights)
        if found is None or str(found) == "random":
            return (None if found is None else "random"), "nothing"
        return (folder_fingerprint(found), "folder") if found.is_dir() else (file_fingerprint(found), "file")


@dataclass(frozen=True)
class Imported:
    """A model that some module has; it is called as it calls itself, else by its place.

    Attributes:
        weights: that `jostle train` wrote for it, to be put in.
    """

    place: str
    weights: str | Path | None = None

    @property
    def name(self) -> str:
        own = getattr(self.get(), "name", None)
        return own if isinstance(own, str) and own else self.place

    def get(self) -> Any:
        if self.weights is not None:
            return self._trained(Path(self.weights))
        found = found_at(self.place, "--model")
        if isinstance(found, type):
            raise BadValue(f"--model {self.place}: is a class; name what it made, such as net = {found.__name__}()")
        return found

    def identity(self) -> Identity:
        from jostle.io.files.fingerprint import file_fingerprint

        if self.weights is not None:
            return file_fingerprint(Path(self.weights)), "file"
        return _of_tensors(self.get())

    def _trained(self, weights: Path) -> Any:
        from jostle.core.config import fit_changes
        from jostle.models.checkpoints import read_metadata, read_note, read_weights
        from jostle.models.input_spec import InputSpec
        from jostle.models.user_network import own_recogniser

        whose = read_metadata(weights).get("recogniser")
        if whose != self.place:
            raise BadValue(
                f"--model {self.place}: {weights} holds weights of {whose or 'something else'}; give those that "
                "`jostle train` wrote for it, or none if it has its weights already"
            )
        classes = tuple(map(str, read_note(weights, "classes", [])))
        changes = fit_changes(InputSpec, read_note(weights, "input", {}), where=self.place)
        count = int(read_metadata(weights).get("outputs", len(classes)))
        made = own_recogniser(self.place, count, changes, option="--model", weights=read_weights(weights))
        made.classes = classes
        return made


@dataclass(frozen=True)
class Given:
    """A model that the caller has made."""

    thing: Any

    @property
    def name(self) -> str:
        own = getattr(self.thing, "name", None)
        if isinstance(own, str) and own:
            return own
        return str(getattr(self.thing, "__qualname__", type(self.thing).__qualname__))

    def get(self) -> Any:
        return self.thing

    def identity(self) -> Identity:
        return _of_tensors(self.thing)


def _of_tensors(thing: Any) -> Identity:
    from jostle.models.fingerprint import tensors_fingerprint

    found = tensors_fingerprint(thing)
    return found, "nothing" if found is None else "tensors"


def folder_fingerprint(folder: Path) -> str:
    """Of the files of a folder, whatever the folder is called."""
    from jostle.io.files.fingerprint import file_fingerprint

    made = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        made.update(f"{path.relative_to(folder).as_posix()} {file_fingerprint(path)}\n".encode())
    return f"sha256:{made.hexdigest()}"
