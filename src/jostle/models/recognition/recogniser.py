"""Recognisers: networks with an `InputSpec`, called on raw clips, that return class scores."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from os import PathLike
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from jostle.core.cuda import iter_batches, launch_turn, network_stream, prefetch_one, to_device, to_host_async
from jostle.core.finite import check_finite
from jostle.core.plugins import import_object
from jostle.core.registry import Registry
from jostle.core.settings import convert_settings
from jostle.core.state_dict import describe_mismatch
from jostle.errors import BadValue, CheckpointError
from jostle.models.checkpoints import Uninitialised
from jostle.models.devices import inference_mode
from jostle.models.finite import check_weights
from jostle.models.input_spec import Frames, InputSpec
from jostle.models.rows import RowBatches
from jostle.models.weights.sources import WeightSource

# Clips go through a network in batches of one size, filled up where there are fewer: see FRAMES_AT_ONCE of extractors.
# Of a clip that is cut several times fewer fit.
CROPS_AT_ONCE = {"cpu": 1, "cuda": 16}
CROPS = {"centre": 1, "three": 3, "ten": 10}

Scores = npt.NDArray[np.float32]
Weights = Mapping[str, Tensor] | str | PathLike[str]
Changes = Mapping[str, Any]
Outputs = Literal["logits", "scores"]
ANY = "NAME"  # placeholder for the name of a library's network


class Recogniser:
    """Recogniser: (B, classes) float32 scores of (B, T, H, W, 3) uint8 clips.

    Args:
        network: given an `InputSpec`, it is called on a tensor (B, ...) of prepared crops in the spec's layout; without
            one, on the raw clips. It returns (B, classes), a tensor or an array.
        spec: its input spec; a `torch.nn.Module` must have one.
        outputs: `logits` become probabilities by softmax, unless the spec wants logits averaged; `scores` stay as they
            are. Either way scores of the crops of a clip are averaged. Left out, logits for a module and scores for
            any other callable.
        classes: class names, if known.
        name: name for messages.
        head: name of a module's classification layer, to extract its input as features.

    >>> mean_red = Recogniser(lambda clips: clips.mean((1, 2, 3))[:, :2])
    >>> mean_red(np.full((1, 4, 8, 8, 3), 7, np.uint8)).tolist()
    [[7.0, 7.0]]
    """

    def __init__(
        self,
        network: Callable[[Any], Any],
        spec: InputSpec | None = None,
        *,
        outputs: Outputs | None = None,
        classes: Sequence[str] = (),
        name: str = "",
        head: str = "",
    ) -> None:
        module = isinstance(network, nn.Module)
        self.name = name or (type(network).__name__ if module else getattr(network, "__name__", type(network).__name__))
        if module and spec is None:
            raise BadValue(
                f"{self.name}: a torch.nn.Module needs an InputSpec, which defines its input: as spec, or as its "
                "attribute `spec`; or give frames and size as input, --input frames=8 --input size=224"
            )
        if not callable(network):
            raise BadValue(f"{self.name}: a model is a torch.nn.Module or a callable, not {type(network).__name__}")
        if outputs not in (None, "logits", "scores"):
            raise BadValue(f"{self.name}: outputs are logits or scores, not {outputs!r}")
        self.network = network.eval() if isinstance(network, nn.Module) else network
        self._row_batches = RowBatches(network)
        self.spec = spec
        self.outputs: Outputs = outputs or ("logits" if module else "scores")
        self.classes = tuple(classes)
        self.head = head

    def __call__(self, clip_frames: Frames) -> Scores:
        """Return (B, classes) float32 from (B, T, H, W, 3) uint8; the same bits for a clip whatever the batch."""
        return self.together([clip_frames])[0]

    def together(self, parts: Sequence[Frames | Tensor]) -> list[Scores]:
        """Score the clips of each part as if alone, in shared batches; parts may be on the device."""
        every = [self._checked(part) for part in parts]
        with inference_mode():
            if self.spec is None:
                scores = np.concatenate([self._scores(self._rows(self.network(clips), len(clips))) for clips in every])
            else:
                size = self._proved_size(next((clips[:1] for clips in every if len(clips)), None), self.spec)
                begun = (self._begun(pieces, self.spec, size) for pieces in iter_batches(every, size))
                scores = np.concatenate([finish() for finish in prefetch_one(begun)])
        check_finite(scores, f"{self.name}, scores")
        return np.split(scores, np.cumsum([len(part) for part in every])[:-1])

    @property
    def foreign(self) -> bool:
        """Whether the network is a function, which need not know of threads; modules are launched in turns."""
        return not isinstance(self.network, nn.Module)

    @property
    def at_once(self) -> int:
        """Number of clips in a batch; 1 if batches may affect the scores."""
        if self.spec is None:
            return 1
        return max(CROPS_AT_ONCE["cuda" if self.device.type == "cuda" else "cpu"] // CROPS[self.spec.crops], 1)

    def _checked(self, clip_frames: Frames | Tensor) -> Frames | Tensor:
        if isinstance(clip_frames, Tensor):
            return clip_frames
        clips = np.ascontiguousarray(clip_frames)  # frames may come reversed
        if clips.ndim != 5 or clips.shape[-1] != 3 or clips.dtype != np.uint8 or 0 in clips.shape:
            raise BadValue(f"{self.name}: clips must be (B, T, H, W, 3) uint8, not {clips.shape} {clips.dtype}")
        return clips

    def _proved_size(self, clip: Frames | Tensor | None, spec: InputSpec) -> int:
        """Return the number of clips in a batch, in which no clip's scores depend on the others."""
        largest = self.at_once
        if largest == 1 or clip is None:
            return largest
        with launch_turn(self.device):
            crops = spec.prepare_clips(list(clip if isinstance(clip, Tensor) else to_device(clip, self.device)))
            with network_stream(crops):
                return self._row_batches.size("scores", self._score_rows, crops, largest)

    def _score_rows(self, crops: Tensor) -> Tensor:
        """Return (B, values) raw outputs for the crops of clips (B, crops, ...)."""
        return torch.as_tensor(self.network(crops.flatten(0, 1))).reshape(len(crops), -1)

    def _begun(self, pieces: Sequence[Frames | Tensor], spec: InputSpec, size: int) -> Callable[[], Scores]:
        """Start scoring at most one batch of clips; the returned function waits for the scores."""
        with launch_turn(self.device):
            there = [piece if isinstance(piece, Tensor) else to_device(piece, self.device) for piece in pieces]
            clips = [clip for piece in there for clip in piece]
            crops = spec.prepare_clips(clips)  # (B, crops, ...)
            if len(clips) < size:
                crops = torch.cat([crops, crops.new_zeros(size - len(clips), *crops.shape[1:])])
            with network_stream(crops):
                try:
                    raw = self.network(crops.flatten(0, 1))
                except (RuntimeError, ValueError) as error:
                    if isinstance(error, torch.OutOfMemoryError):
                        raise
                    if spec.layout != "CHW" and (spec.frames == 1 or "conv2d" in str(error)):
                        raise BadValue(
                            f"{self.name}: cannot take clips of shape {tuple(crops.flatten(0, 1).shape)}; for a "
                            f"network that takes single images give frames=1, layout='CHW' ({error})"
                        ) from error
                    if len(clips[0]) == spec.frames:
                        raise
                    raise BadValue(
                        f"{self.name}: cannot take a clip of {len(clips[0])} frames; give it {spec.frames} ({error})",
                        fault=getattr(error, "fault", ""),
                    ) from error
                rows = to_host_async(self._rows(raw, size * crops.shape[1]))
        return lambda: self._scores(rows(), size, len(clips)).numpy()

    def to_scores(self, raw: Any, clips: int) -> Scores:
        """Convert raw outputs of the network for all crops of some clips to (clips, classes) scores."""
        rows = self._rows(raw, clips * (1 if self.spec is None else CROPS[self.spec.crops]))
        scores = self._scores(rows, clips).numpy()
        check_finite(scores, f"{self.name}, scores")
        return scores

    def _rows(self, raw: Any, count: int) -> Tensor:
        """Return (rows, classes) float32, as the network gave them."""
        output = torch.as_tensor(raw)
        if output.ndim != 2 or output.shape[0] != count or output.shape[1] < 1:
            raise BadValue(
                f"{self.name}: scores must be ({count}, classes) for an input of {count}, not {tuple(output.shape)}"
            )
        if self.classes and output.shape[1] != len(self.classes):
            raise BadValue(f"{self.name}: {output.shape[1]} scores for {len(self.classes)} classes")
        return output.detach().float()

    def _scores(self, rows: Tensor, size: int | None = None, count: int | None = None) -> Tensor:
        """Return (B, classes) of the first `kept` clips of `size`, from one row a crop."""
        scores = rows.cpu()
        if self.outputs == "logits" and (self.spec is None or self.spec.joined == "scores"):
            scores = scores.softmax(1)
        return scores.reshape(size or len(rows), -1, scores.shape[1]).mean(1)[:count]

    @property
    def device(self) -> torch.device:
        """Device that holds the network."""
        if isinstance(self.network, nn.Module):
            for tensor in self.network.parameters():
                return tensor.device
        return torch.device("cpu")

    def to(self, device: str) -> Recogniser:
        """Move the network to a device, if it is a module."""
        if isinstance(self.network, nn.Module):
            self.network.to(device)
        return self

    def __repr__(self) -> str:
        return f"Recogniser({self.name}, {self.spec})"


Loader = Callable[[Weights, Changes], Recogniser]
Named = Callable[[str], "RecogniserKind"]


@dataclass(frozen=True)
class RecogniserKind:
    """Registry entry of a recogniser."""

    name: str
    load: Loader  # loads the recogniser with given weights, and with fields of its `InputSpec` changed
    source: str  # source of weights, as the end of an error message
    spec: InputSpec | None = None  # input spec; None where it comes with the weights
    takes: Literal["file", "folder"] = "file"  # whether weights are a file or a folder
    place: WeightSource | None = None  # source of public weights, if the network's library provides it
    # for a whole library, `timm/NAME`: returns the entry of one of its networks
    named: Callable[[str], RecogniserKind] | None = None
    # named test-time views: the fields of the spec that each changes
    views: Mapping[str, Changes] = field(default_factory=dict)
    # settings of the network besides those of the spec, with their defaults
    options: Mapping[str, Any] = field(default_factory=dict)

    def fit(self, changes: Changes) -> dict[str, Any]:
        """Convert changes from a file or a command line to the types of their fields.

        Raises:
            BadValue: if there is no such setting, or the value does not fit.
        """
        beside = {name: value for name, value in changes.items() if name in ("views", *self.options)}
        fields = {name: value for name, value in changes.items() if name not in beside}
        return convert_settings(InputSpec, fields, where=f"the input of {self.name}") | beside

    def input_spec(self, changes: Changes) -> InputSpec:
        """Return the spec with its `views` and changed fields, without settings of the network."""
        assert self.spec is not None  # kinds whose spec comes with the weights have neither views nor options
        fields = {name: value for name, value in changes.items() if name not in ("views", *self.options)}
        if (views := changes.get("views")) is None:
            return changed(self.name, self.spec, fields)
        if views not in self.views:
            known = ", ".join(self.views) or "none but its own"
            raise BadValue(f"{self.name}: there are no views {views!r}; choose one of {known}")
        return changed(self.name, replace(self.spec, **self.views[views]), fields)

    def settings(self, changes: Changes) -> dict[str, Any]:
        """Return the settings of the network."""
        options = dict(self.options)
        for name in options:
            options[name] = changes.get(name, options[name])
            if type(options[name]) is not type(self.options[name]):
                raise BadValue(f"{self.name}: {name} is {self.options[name]!r} or the like, not {options[name]!r}")
        return options


recognisers: Registry[RecogniserKind] = Registry("model", "jostle.models.recognition", "jostle.models.extractors")


def recogniser(
    name: str,
    *,
    source: str,
    spec: InputSpec | None = None,
    takes: Literal["file", "folder"] = "file",
    views: Mapping[str, Changes] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[[Loader], Loader]:
    """Register a function that loads a recogniser; see `RecogniserKind`."""

    def register(load: Loader) -> Loader:
        kind = RecogniserKind(name, load, source, spec, takes=takes, views=views or {}, options=options or {})
        recognisers.add(name, kind)
        return load

    return register


def add_recogniser(name: str, summary: str, load: Callable[..., Recogniser], **about: Any) -> None:
    """Register one of several recognisers that share a function, which takes the name first.

    Args:
        summary: what it is, in a sentence.
        about: see `recogniser`.
    """
    loader = partial(load, name)
    loader.__doc__ = summary
    recogniser(name, **about)(loader)


def library(name: str, *, source: str) -> Callable[[Named], Named]:
    """Register a whole library as `name/NAME`; the function returns the entry of a network by name."""

    def register(named: Named) -> Named:
        pattern = f"{name}/{ANY}"

        def load(weights: Weights, changes: Changes) -> Recogniser:
            raise BadValue(f"{pattern}: name a network, as {name}/resnet50")

        load.__doc__ = named.__doc__
        recognisers.add(pattern, RecogniserKind(pattern, load, source, named=named))
        return named

    return register


def find_kind(name: str) -> RecogniserKind:
    """Return a registry entry by name, including networks of registered libraries.

    Raises:
        UnknownName: if there is none.
    """
    inside, _, inner = name.partition("/")
    whole = f"{inside}/{ANY}"
    if inner and inner != ANY and whole in recognisers:
        named = recognisers[whole].named
        assert named is not None
        return named(inner)
    return recognisers[name]


def changed(name: str, spec: InputSpec, changes: Changes) -> InputSpec:
    """Return the spec with fields replaced; raise an error that lists the fields if one is unknown."""
    known = [own.name for own in fields(spec)]
    unknown = sorted(set(changes) - set(known))
    if unknown:
        raise BadValue(f"{name}: its input has no setting {', '.join(unknown)}; there are {', '.join(known)}")
    if "size" in changes and "resize" not in changes:
        changes = {**changes, "resize": spec.resize_for(changes["size"])}  # keep the visible part of a frame
    return replace(spec, **changes)


def load_weights(name: str, network: nn.Module, weights: Mapping[str, Tensor], *, assign: bool = False) -> None:
    """Load weights into a network.

    Args:
        assign: take the tensors themselves, instead of copying their values.

    Raises:
        CheckpointError: F54 if they belong to another one; the message lists the differences. F120 if one is not
            finite.
    """
    try:
        network.load_state_dict(weights, assign=assign)
    except RuntimeError as error:
        expected = {key: tuple(value.shape) for key, value in network.state_dict().items()}
        apart = describe_mismatch(expected, weights).replace("\n", "; ") or str(error)
        raise CheckpointError(f"{name}: the weights belong to another network: {apart}", fault="F54") from None
    check_weights(network, name)


def with_weights(
    name: str, build: Callable[[int], nn.Module], spec: InputSpec, weights: Weights, *, head: str, classes: int = 400
) -> Recogniser:
    """Build a recogniser from a function that builds its network, and tensors by name.

    Args:
        build: given the number of classes.
        weights: tensors by name, or `random`.
        head: name of the classifier's bias: it has as many numbers as there are classes.
        classes: how many, for random weights.
    """
    if not isinstance(weights, Mapping):
        if weights != "random":
            raise BadValue(f"{name}: weights are tensors by name or 'random', not {weights!r}; read the file first")
        weights = {}
    elif head not in weights:
        raise CheckpointError(f"{name}: the weights belong to another network: they have no {head}", fault="F54")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        if weights:
            with Uninitialised():
                network = build(len(weights[head]))
            load_weights(name, network, weights)
        else:
            network = build(classes)
    return Recogniser(network, spec, name=name, head=head.removesuffix(".bias"))


def load_user_recogniser(
    place: str, classes: int, changes: Changes, *, option: str, weights: Mapping[str, Tensor] | None = None
) -> Recogniser:
    """Load the recogniser of an import path.

    What is there is a `Recogniser` or a `torch.nn.Module`, or a function that makes one; it is given the number of
    classes, if it takes an argument. A module has what it wants to see as `spec`, or the changes say all of it.

    Args:
        classes: number of classes.
        changes: fields of its `InputSpec`.
        option: that the place was given to, for messages.
        weights: to put into it.

    Raises:
        BadValue: if it is no such thing.
        CheckpointError: F54 if the weights belong to another network.
    """
    imported = import_object(place, option)
    model = (
        imported
        if isinstance(imported, nn.Module | Recogniser)
        else _build_network(imported, classes, f"{option} {place}")
    )
    if isinstance(model, Recogniser):
        network, spec, head = model.network, model.spec, model.head
    else:
        network, spec, head = model, getattr(model, "spec", None), ""
    if not isinstance(network, nn.Module):
        raise BadValue(f"{option} {place}: a {type(model).__name__} is no torch.nn.Module, nor a Recogniser with one")
    if weights is not None:
        load_weights(place, network, weights)
    spec = changed(place, spec, changes) if isinstance(spec, InputSpec) else spec_from_changes(place, changes)
    return Recogniser(network, spec, outputs="logits", name=place, head=head)


def as_recogniser(model: Any, name: str, spec: InputSpec | None, changes: Changes) -> Recogniser:
    """Return the recogniser of a model object, with fields of its input spec changed.

    A module without a spec takes the changes as one.

    Args:
        model: a `Recogniser`, a `torch.nn.Module`, perhaps with its `spec`, or another callable.
        name: for messages.
        spec: its input spec, unless it has one.

    Raises:
        BadValue: if it has no spec and needs one, or has one already.
    """
    if isinstance(model, Recogniser):
        if spec is not None:
            raise BadValue(f"{name}: is a Recogniser, which has an InputSpec already; leave spec out")
        own_recogniser = model
    else:
        own = spec or getattr(model, "spec", None)
        own = own if isinstance(own, InputSpec) else None
        if own is None and changes and isinstance(model, nn.Module):
            own, changes = spec_from_changes(name, changes, "as input, or --input"), {}
        own_recogniser = Recogniser(model, own, name=name)
    if not changes:
        return own_recogniser
    if own_recogniser.spec is None:
        raise BadValue(f"{name}: has no InputSpec whose fields could be changed; give one as spec")
    about: dict[str, Any] = {key: getattr(own_recogniser, key) for key in ("outputs", "classes", "name")}
    return Recogniser(own_recogniser.network, changed(name, own_recogniser.spec, changes), **about)


def _build_network(factory: Any, classes: int, path: str) -> Any:
    if not callable(factory):
        raise BadValue(f"{path}: is a {type(factory).__name__}, neither a network nor a function that makes one")
    model = factory(classes) if _takes_classes(factory) else factory()
    if not isinstance(model, nn.Module | Recogniser):
        raise BadValue(f"{path}: made a {type(model).__name__}, not a torch.nn.Module or a Recogniser")
    return model


def _takes_classes(maker: Callable[..., Any]) -> bool:
    try:
        inspect.signature(maker).bind(1)
    except TypeError:
        return False
    return True


def spec_from_changes(place: str, changes: Changes, where: str = "in [input]") -> InputSpec:
    """Return the input spec of a module without one, from its fields; `where` they are given, for the message."""
    lacking = [name for name in ("frames", "size") if name not in changes]
    if lacking:
        raise BadValue(
            f"{place}: has no InputSpec as its `spec`, so say what it wants to see: {' and '.join(lacking)} {where}"
        )
    return InputSpec(**{"resize": changes["size"], **changes})
