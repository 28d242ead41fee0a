"""One way to load: a reference to a model by its kind, and its name, import path or object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from jostle.core.plugins import import_object, is_import_path
from jostle.errors import BadValue
from jostle.models.loading.identity import Identity, identify_tensors

Kind = Literal["recogniser", "detector", "extractor", "objects", "language"]
WeightsLike = str | Path | Mapping[str, Any] | None


def load(kind: Kind, model: Any, *, weights: WeightsLike = None, device: str = "cpu", **changes: Any) -> Any:
    """Load a model of a kind.

    Args:
        model: a registered name, `package.module:attribute`, for video-language models also a folder or an address, or
            the object itself.
        weights: of a named model; a file or folder, `clean`, `robust`, `public`, `hf:ORG/NAME[/file]`, `random`, or
            tensors by name.
        device: `cpu` or `cuda`.
        changes: settings to replace, which depend on the kind.
    """
    return ModelRef(kind, model, weights, changes).get(device)


@dataclass(frozen=True)
class ModelRef:
    """Reference to a model, which loads it in any process; see `load`."""

    kind: Kind
    model: Any
    weights: WeightsLike = None
    changes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind == "extractor" and self.weights is not None and not self.is_named:
            from jostle.models.loading.extractors import refuse_weights

            refuse_weights(self.name)

    @property
    def is_named(self) -> bool:
        """Whether the model is registered, or has a name that tells how it is loaded; others are the caller's own."""
        if not isinstance(self.model, str) or self.kind != "language":
            return isinstance(self.model, str) and not is_import_path(self.model)
        from jostle.models.language.loading import is_question_model_name

        return is_question_model_name(self.model) or not is_import_path(self.model)

    @property
    def name(self) -> str:
        """Name that records know the model by."""
        if isinstance(self.model, str) and (self.is_named or self.kind == "extractor"):
            return self.model
        thing = self.get() if isinstance(self.model, str) else self.model
        own = getattr(getattr(thing, "kind", thing) if self.kind == "extractor" else thing, "name", None)
        if isinstance(own, str) and own:
            return own
        return self.model if isinstance(self.model, str) else getattr(thing, "__qualname__", type(thing).__qualname__)

    def get(self, device: str = "cpu") -> Any:
        """Load and return the model; one that is imported or an object is the caller's, and stays on its device."""
        if self.is_named:
            load_named, _ = _functions(self.kind)
            return load_named(self.model, weights=self.weights, **{"device": device, **self.changes})
        if self.kind != "extractor":
            return self._import() if isinstance(self.model, str) else self.model
        from jostle.models.loading.extractors import adapt_extractor, load_extractor

        if isinstance(self.model, str):
            return load_extractor(self.model, weights=self.weights, device=device, **self.changes)
        return adapt_extractor(self.model, self.name, device, self.changes)

    def identity(self) -> Identity:
        """Return the fingerprint of the weights, and what it was computed from."""
        if self.is_named:
            _, identify = _functions(self.kind)
            return identify(self.model, self.weights)
        if self.weights is not None:
            from jostle.io.video.source import file_fingerprint

            assert isinstance(self.weights, str | Path)
            return file_fingerprint(Path(self.weights)), "file"
        return identify_tensors(self.get())

    def _import(self) -> Any:
        if self.weights is not None:
            from jostle.models.loading.recognisers import load_trained

            assert isinstance(self.weights, str | Path)
            return load_trained(self.model, Path(self.weights))
        model = import_object(self.model, "--model")
        if isinstance(model, type):
            raise BadValue(f"--model {self.model}: is a class; name what it made, such as net = {model.__name__}()")
        return model


def _functions(kind: Kind) -> tuple[Callable[..., Any], Callable[[str, Any], Identity]]:
    """Return the functions that load and identify the named models of a kind."""
    if kind == "recogniser":
        from jostle.models.loading import recognisers

        return recognisers.load_recogniser, recognisers.identify_recogniser
    if kind == "detector":
        from jostle.models.loading import detectors

        return detectors.load_detector, detectors.identify_detector
    if kind == "extractor":
        from jostle.models.loading import extractors

        return extractors.load_extractor, extractors.identify_extractor
    if kind == "objects":
        from jostle.models.loading import objects

        return objects.load_object_detector, objects.identify_object_detector
    from jostle.models.language import loading

    return loading.load_question_model, loading.identify_question_model
