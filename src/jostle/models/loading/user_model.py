"""Models as given to `run`: a name, `package.module:attribute`, or an object."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from jostle.core.plugins import import_object
from jostle.errors import BadValue
from jostle.models.loading.recogniser import load_recogniser, recogniser_weights

Identity = tuple[str | None, Literal["file", "folder", "tensors", "nothing"]]


class ModelSource(Protocol):
    """Picklable source of a model, which loads it in any process.

    Attributes:
        name: what the model is known by.
    """

    @property
    def name(self) -> str: ...

    def get(self) -> Any:
        """Load and return the model."""

    def identity(self) -> Identity:
        """Return the fingerprint of the weights, and what it was computed from."""


@dataclass(frozen=True)
class NamedRecogniser:
    """Registered recogniser, with weights from a file or a folder."""

    name: str
    weights: str | Path | None
    changes: Mapping[str, Any] = field(default_factory=dict)

    def get(self) -> Any:
        return load_recogniser(self.name, weights=self.weights, **self.changes)

    def identity(self) -> Identity:
        from jostle.io.files.fingerprint import file_fingerprint

        path = recogniser_weights(self.name, self.weights)
        if path is None or str(path) == "random":
            return (None if path is None else "random"), "nothing"
        return (folder_fingerprint(path), "folder") if path.is_dir() else (file_fingerprint(path), "file")


@dataclass(frozen=True)
class ImportedModel:
    """Model imported from a module, named by its own name or else by its import path.

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
        model = import_object(self.place, "--model")
        if isinstance(model, type):
            raise BadValue(f"--model {self.place}: is a class; name what it made, such as net = {model.__name__}()")
        return model

    def identity(self) -> Identity:
        from jostle.io.files.fingerprint import file_fingerprint

        if self.weights is not None:
            return file_fingerprint(Path(self.weights)), "file"
        return _of_tensors(self.get())

    def _trained(self, weights: Path) -> Any:
        from jostle.core.config import convert_settings
        from jostle.models.checkpoints import read_metadata, read_note, read_weights
        from jostle.models.input_spec import InputSpec
        from jostle.models.user_network import load_user_recogniser

        whose = read_metadata(weights).get("recogniser")
        if whose != self.place:
            raise BadValue(
                f"--model {self.place}: {weights} holds weights of {whose or 'something else'}; give those that "
                "`jostle train` wrote for it, or none if it has its weights already"
            )
        classes = tuple(map(str, read_note(weights, "classes", [])))
        changes = convert_settings(InputSpec, read_note(weights, "input", {}), where=self.place)
        count = int(read_metadata(weights).get("outputs", len(classes)))
        model = load_user_recogniser(self.place, count, changes, option="--model", weights=read_weights(weights))
        model.classes = classes
        return model


@dataclass(frozen=True)
class ModelObject:
    """Model object that the caller created."""

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

    fingerprint = tensors_fingerprint(thing)
    return fingerprint, "nothing" if fingerprint is None else "tensors"


def folder_fingerprint(folder: Path) -> str:
    """Return the fingerprint of the files of a folder, independent of the folder's name."""
    from jostle.io.files.fingerprint import file_fingerprint

    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(folder).as_posix()} {file_fingerprint(path)}\n".encode())
    return f"sha256:{digest.hexdigest()}"
