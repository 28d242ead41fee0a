"""Loading of recognisers, detectors and object detectors: by name, `package.module:attribute`, or as an object."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from jostle.core.plugins import import_object, is_import_path
from jostle.core.types.truth import Truth
from jostle.errors import BadValue
from jostle.models.loading.names import need_torch
from jostle.models.weights.resolve import weights_path

if TYPE_CHECKING:
    from jostle.models.detection.detector import Detector
    from jostle.models.objects.object_detector import ObjectDetector
    from jostle.models.recognition.recogniser import Recogniser


def load_recogniser(
    name: str, *, weights: str | Path | Mapping[str, Any] | None = None, device: str = "cpu", **changes: Any
) -> Recogniser:
    """Load a recogniser by name: (B, T, H, W, 3) uint8 clips in, (B, classes) float32 scores out.

    Weights written by `jostle train` include the input spec of their network, and its class names.

    Args:
        name: one of `jostle names models`.
        weights: a checkpoint, a folder of transformers, an `.onnx` file, or tensors by name; for those that come with
            jostle `clean` or `robust`; `public` or `hf:ORG/NAME[/file]` to have them fetched. None gives an error that
            says where to get them.
        device: `cpu` or `cuda`.
        changes: fields of its `InputSpec` to replace, such as `frames=8` or `crops="ten"`; `views`, a named way of
            looking at a video, and settings of the network, where the reference lists them.

    Raises:
        CheckpointError: if the weights do not fit.
        MissingExtra: if the library that the network comes from is not installed.
    """
    need_torch("recognisers")
    from jostle.models.checkpoints import read_metadata, read_note, read_weights
    from jostle.models.recognition.recogniser import find_kind
    from jostle.models.recognition.recogniser import load_recogniser as load

    if isinstance(weights, Mapping):
        return load(name, weights=weights, device=device, **changes)
    path = recogniser_weights(name, weights)
    if path is None or str(path) == "random" or path.is_dir() or path.suffix.lower() == ".onnx":
        return load(name, weights=None if path is None else str(path), device=device, **changes)
    own: dict[str, Any] = read_note(path, "input", {}) if read_metadata(path).get("recogniser") == name else {}
    tensors = read_weights(path, ema=None)
    recogniser = load(name, weights=tensors, device=device, **(find_kind(name).fit(own) | changes))
    if not recogniser.classes:
        recogniser.classes = tuple(map(str, read_note(path, "classes", [])))
    return recogniser


def recogniser_weights(name: str, weights: str | Path | None) -> Path | None:
    """Resolve `weights` to the file or folder of a recogniser."""
    return None if weights is None else weights_path("models", name, weights)


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
        from jostle.io.video.source import file_fingerprint

        path = recogniser_weights(self.name, self.weights)
        if path is None or str(path) == "random":
            return (None if path is None else "random"), "nothing"
        return (folder_fingerprint(path), "folder") if path.is_dir() else (file_fingerprint(path), "file")


@dataclass(frozen=True)
class ImportedModel:
    """Model imported from a module, named by its own name or else by its import path."""

    place: str
    weights: str | Path | None = None  # that `jostle train` wrote for it, to be put in

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
        from jostle.io.video.source import file_fingerprint

        if self.weights is not None:
            return file_fingerprint(Path(self.weights)), "file"
        return _of_tensors(self.get())

    def _trained(self, weights: Path) -> Any:
        from jostle.core.settings import convert_settings
        from jostle.models.checkpoints import read_metadata, read_note, read_weights
        from jostle.models.input_spec import InputSpec
        from jostle.models.recognition.recogniser import load_user_recogniser

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
    from jostle.models.checkpoints import tensors_fingerprint

    fingerprint = tensors_fingerprint(thing)
    return fingerprint, "nothing" if fingerprint is None else "tensors"


def folder_fingerprint(folder: Path) -> str:
    """Return the fingerprint of the files of a folder, independent of the folder's name."""
    from jostle.io.video.source import file_fingerprint

    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(folder).as_posix()} {file_fingerprint(path)}\n".encode())
    return f"sha256:{digest.hexdigest()}"


def load_object_detector(name: str, *, weights: str | Path | None = None, device: str = "cpu") -> ObjectDetector:
    """Load an object detector by name: (N, H, W, 3) uint8 frames in, scored `Boxes` out.

    Args:
        name: one of `jostle names objectdetectors`.
        weights: a checkpoint, or a folder of transformers; for those that come with jostle `clean`. None gives an
            error that says where to get them.
        device: `cpu` or `cuda`.

    Raises:
        CheckpointError: if the weights do not fit.
        MissingExtra: if the library that the network comes from is not installed.
    """
    need_torch("object detectors")
    from jostle.models.checkpoints import read_weights
    from jostle.models.objects.object_detector import load_object_detector as load

    path = None if weights is None else weights_path("objectdetectors", name, weights)
    if path is None or path.is_dir():
        return load(name, weights=None if path is None else str(path), device=device)
    return load(name, weights=read_weights(path), device=device)


@dataclass(frozen=True)
class NamedObjectDetector:
    """Registered object detector, with weights from a file or a folder."""

    name: str
    weights: str | Path | None

    def get(self) -> Any:
        return load_object_detector(self.name, weights=self.weights)

    def identity(self) -> Identity:
        from jostle.io.video.source import file_fingerprint

        if self.weights is None:
            return None, "nothing"
        path = weights_path("objectdetectors", self.name, self.weights)
        return (folder_fingerprint(path), "folder") if path.is_dir() else (file_fingerprint(path), "file")


def load_detector(name: str, *, weights: str | Path | None = None, **config: Any) -> Detector[Any]:
    """Load a detector by name, ready for inference.

    Weights that `jostle train` wrote bring their settings and class names along.

    Args:
        name: a variant such as `actionformer_thumos_i3d`, or `actionformer`, `tridet`, `temporalmaxer`; or
            `package.module:attribute`, something of your own with a method `detect`.
        weights: our `.safetensors`, an original's `.pth.tar` or OpenTAD's `.pth`; read without trusting a pickle. For
            the `_puppets` variants also `clean` or `robust`, the weights that come with jostle; `public` or
            `hf:ORG/NAME[/file]` to have them fetched.
        config: settings to change, such as `input_dim`, `dim`, `classes`, `max_length`.

    Raises:
        CheckpointError: if the weights do not fit; the message lists the differences.
    """
    if is_import_path(name):
        own_detector: Detector[Any] = _own(name, weights, config)
        return own_detector
    need_torch("detectors")
    from jostle.models.checkpoints import read_metadata, read_note
    from jostle.models.detection.detector import load_detector as load

    if weights is not None:
        weights = weights_path("detectors", name, weights)
        if read_metadata(weights).get("detector") == name:
            own: dict[str, Any] = read_note(weights, "settings", {})
            names: list[str] = read_note(weights, "classes", [])
            config = own | ({"class_names": names} if names else {}) | config
    return load(name, weights=weights, **config)


def _own(place: str, weights: str | Path | None, config: dict[str, Any]) -> Any:
    if weights is not None or config:
        raise BadValue(f"{place}: weights and settings go with the name of a detector; yours has them already")
    model = import_object(place, "--detector")
    if not hasattr(model, "detect"):
        raise BadValue(f"--detector {place}: a {type(model).__name__} has no method detect(features, fps=..., ...)")
    if "torch" in sys.modules:  # otherwise it is no network
        from jostle.models.finite import check_weights

        check_weights(model, place)
    return model


def looks_at_frames(detector: object) -> bool:
    """Whether a detector processes the frames of a video itself; others take features."""
    return getattr(detector, "looks_at", "features") == "frames"


def name_classes(detector: Detector[Any], truth: Truth) -> None:
    """Set the class names of a detector with numbered classes from the ground truth."""
    import dataclasses

    config = getattr(detector, "config", None)
    if config is None:
        return
    if config.class_names:
        _check_class_names(config.class_names, truth)
        return
    if truth.label_ids is None:
        return
    by_number = dict(zip(truth.label_ids, truth.classes, strict=True))
    most = max([*by_number, detector.config.classes - 1]) + 1
    names = tuple(by_number.get(i, f"class {i}") for i in range(most))
    detector.config = dataclasses.replace(detector.config, class_names=names)


def _check_class_names(names: Sequence[str], truth: Truth) -> None:
    """Raise if the truth lacks most classes of a detector, whose predictions could then not be scored."""
    unknown = [name for name in names if name not in truth.classes]
    if len(unknown) > len(names) / 2:
        raise BadValue(
            f"the detector finds {len(names)} classes, and the ground truth lacks {len(unknown)} of them, as "
            f"{unknown[0]!r}: most predictions could not be scored; give the annotations of all classes, or a detector "
            f"of {', '.join(truth.classes[:3])}{', ...' if len(truth.classes) > 3 else ''}",
            fault="F129",
        )
