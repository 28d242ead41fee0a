"""Recognisers: a network and its `InputSpec`, called on raw clips, that says which class a clip shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from os import PathLike
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from jostle.core.config import fit_changes
from jostle.core.cuda import in_batches, networks, on_device, on_its_way, one_ahead, turn
from jostle.core.registry import Registry
from jostle.core.state_dict import differences
from jostle.errors import BadValue, CheckpointError, DataError
from jostle.models.input_spec import Frames, InputSpec
from jostle.models.precision import inferring
from jostle.models.weights.shipped.sources import Place, offer, place_of

# Clips go through a network in batches of one size, filled up where there are fewer: see FRAMES_AT_ONCE of extractors.
# Of a clip that is cut several times fewer fit.
CROPS_AT_ONCE = {"cpu": 1, "cuda": 16}
CROPS = {"centre": 1, "three": 3, "ten": 10}

Scores = npt.NDArray[np.float32]
Weights = Mapping[str, Tensor] | str | PathLike[str]
Changes = Mapping[str, Any]
Outputs = Literal["logits", "scores"]
ANY = "NAME"  # stands for the name of a network of a library


class Recogniser:
    """Scores of classes from clips, (B, classes) float32 from (B, T, H, W, 3) uint8.

    Args:
        network: given an `InputSpec`, it is called on a tensor (B, ...) of prepared crops in the spec's layout; without
            one, on the clips as they are. It gives (B, classes), a tensor or an array.
        spec: what it wants to see; a `torch.nn.Module` must have one.
        outputs: `logits` become probabilities by softmax, unless the spec wants logits averaged; `scores` stay as they
            are. Either way scores of the crops of a clip are averaged. Left out, logits for a module and scores for
            any other callable.
        classes: their names, where they are known.
        name: for messages.
        head: name of the layer of a module that makes scores of features, where the features are wanted too.

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
            raise BadValue(f"{self.name}: a torch.nn.Module needs an InputSpec, which says how frames become its input")
        if not callable(network):
            raise BadValue(f"{self.name}: a model is a torch.nn.Module or a callable, not {type(network).__name__}")
        if outputs not in (None, "logits", "scores"):
            raise BadValue(f"{self.name}: outputs are logits or scores, not {outputs!r}")
        self.network = network.eval() if isinstance(network, nn.Module) else network
        self.spec = spec
        self.outputs: Outputs = outputs or ("logits" if module else "scores")
        self.classes = tuple(classes)
        self.head = head

    def __call__(self, clip_frames: Frames) -> Scores:
        """(B, classes) float32 from (B, T, H, W, 3) uint8; the same bits for a clip in any company."""
        return self.together([clip_frames])[0]

    def together(self, parts: Sequence[Frames | Tensor]) -> list[Scores]:
        """Scores of the clips of each part, as if each were alone; they share batches. Some may be on its device."""
        every = [self._checked(part) for part in parts]
        with inferring():
            if self.spec is None:
                return [self._scores(self._rows(self.network(clips), len(clips))).numpy() for clips in every]
            begun = (self._begun(pieces, self.spec) for pieces in in_batches(every, self.at_once))
            made = np.concatenate([finish() for finish in one_ahead(begun)])
        return np.split(made, np.cumsum([len(part) for part in every])[:-1])

    @property
    def at_once(self) -> int:
        """Clips that go through the network together; one where it is not known what company does to a clip."""
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

    def _begun(self, pieces: Sequence[Frames | Tensor], spec: InputSpec) -> Callable[[], Scores]:
        """Scores of no more clips than go through the network together, to be waited for."""
        size = self.at_once
        with turn(self.device):
            there = [piece if isinstance(piece, Tensor) else on_device(piece, self.device) for piece in pieces]
            clips = [clip for piece in there for clip in piece]
            crops = spec.prepare_clips(clips)  # (B, crops, ...)
            if len(clips) < size:
                crops = torch.cat([crops, crops.new_zeros(size - len(clips), *crops.shape[1:])])
            with networks(crops):
                try:
                    raw = self.network(crops.flatten(0, 1))
                except (RuntimeError, ValueError) as error:
                    if len(clips[0]) == spec.frames or isinstance(error, torch.OutOfMemoryError):
                        raise
                    raise BadValue(
                        f"{self.name}: cannot take a clip of {len(clips[0])} frames; give it {spec.frames} ({error})"
                    ) from error
                rows = on_its_way(self._rows(raw, size * crops.shape[1]))
        return lambda: self._scores(rows(), size, len(clips)).numpy()

    def _rows(self, raw: Any, count: int) -> Tensor:
        """(rows, classes) float32, as the network gave them."""
        given = torch.as_tensor(raw)
        if given.ndim != 2 or given.shape[0] != count or given.shape[1] < 1:
            raise BadValue(
                f"{self.name}: scores must be ({count}, classes) for an input of {count}, not {tuple(given.shape)}"
            )
        if self.classes and given.shape[1] != len(self.classes):
            raise BadValue(f"{self.name}: {given.shape[1]} scores for {len(self.classes)} classes")
        return given.detach().float()

    def _scores(self, rows: Tensor, size: int | None = None, kept: int | None = None) -> Tensor:
        """(B, classes) of the first `kept` clips of `size`, from one row a crop."""
        scores = rows.cpu()
        if self.outputs == "logits" and (self.spec is None or self.spec.joined == "scores"):
            scores = scores.softmax(1)
        scores = scores.reshape(size or len(rows), -1, scores.shape[1]).mean(1)[:kept]
        if not scores.isfinite().all():
            raise DataError(f"{self.name}: the model gave scores that are not finite numbers", fault="F78")
        return scores

    @property
    def device(self) -> torch.device:
        """Where the network is."""
        if isinstance(self.network, nn.Module):
            for tensor in self.network.parameters():
                return tensor.device
        return torch.device("cpu")

    def to(self, device: str) -> Recogniser:
        """Move the network, where it is a module."""
        if isinstance(self.network, nn.Module):
            self.network.to(device)
        return self

    def __repr__(self) -> str:
        return f"Recogniser({self.name}, {self.spec})"


Loader = Callable[[Weights, Changes], Recogniser]
Named = Callable[[str], "RecogniserKind"]


@dataclass(frozen=True)
class RecogniserKind:
    """An entry of the shelf.

    Attributes:
        load: gives the recogniser with the weights given, and with fields of its `InputSpec` changed.
        spec: what it wants to see; None where that comes with the weights.
        source: where weights are, in words that end an error message.
        takes: whether weights are a file or a folder.
        place: where public weights are, where the library that the network comes from says so.
        named: of a whole library, `timm/NAME`: gives the entry of one of its networks.
        views: ways of looking at a video, by name: the fields of the spec that each changes.
        options: settings of the network, beside those of the spec, and what each is if nobody says so.
    """

    name: str
    load: Loader
    source: str
    spec: InputSpec | None = None
    takes: Literal["file", "folder"] = "file"
    place: Place | None = None
    named: Callable[[str], RecogniserKind] | None = None
    views: Mapping[str, Changes] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    def fit(self, changes: Changes) -> dict[str, Any]:
        """Changes as they come from a file or a command line, each as its field wants it.

        Raises:
            BadValue: if there is no such setting, or the value does not fit.
        """
        beside = {name: value for name, value in changes.items() if name in ("views", *self.options)}
        fields = {name: value for name, value in changes.items() if name not in beside}
        return fit_changes(InputSpec, fields, where=f"what {self.name} is shown") | beside

    def shown(self, changes: Changes) -> InputSpec:
        """Its spec, looked at as `views` says, with fields replaced; settings of the network are left out.

        Raises:
            BadValue: if there are no such views or fields.
        """
        assert self.spec is not None  # those whose weights bring it have neither views nor settings
        told = {name: value for name, value in changes.items() if name not in ("views", *self.options)}
        if (wanted := changes.get("views")) is None:
            return changed(self.name, self.spec, told)
        if wanted not in self.views:
            known = ", ".join(self.views) or "none but its own"
            raise BadValue(f"{self.name}: there are no views {wanted!r}; it knows {known}")
        return changed(self.name, replace(self.spec, **self.views[wanted]), told)

    def settings(self, changes: Changes) -> dict[str, Any]:
        """Settings of its network.

        Raises:
            BadValue: if one is of another kind than it usually is.
        """
        made = dict(self.options)
        for name in made:
            made[name] = changes.get(name, made[name])
            if type(made[name]) is not type(self.options[name]):
                raise BadValue(f"{self.name}: {name} is {self.options[name]!r} or the like, not {made[name]!r}")
        return made


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
    """Put a function that loads a recogniser on the shelf; see `RecogniserKind`."""

    def put(load: Loader) -> Loader:
        kind = RecogniserKind(name, load, source, spec, takes=takes, views=views or {}, options=options or {})
        recognisers.add(name, kind)
        return load

    return put


def library(name: str, *, source: str) -> Callable[[Named], Named]:
    """Put a whole library on the shelf, as `name/NAME`: the function gives the entry of one of its networks by name."""

    def put(named: Named) -> Named:
        said = f"{name}/{ANY}"

        def load(weights: Weights, changes: Changes) -> Recogniser:
            raise BadValue(f"{said}: say which, as {name}/resnet50")

        load.__doc__ = named.__doc__
        recognisers.add(said, RecogniserKind(said, load, source, named=named))
        return named

    return put


def kind_of(name: str) -> RecogniserKind:
    """The entry of the shelf by name, also of a network of a whole library.

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


def load_recogniser(name: str, *, weights: Weights | None = None, device: str = "cpu", **changes: Any) -> Recogniser:
    """A recogniser by name, with the weights given.

    Args:
        weights: tensors by name, or the path of a folder or a file, as the reference says for each; `random`, where a
            network can be had without, for weights that mean nothing but are the same every time.
        changes: fields of its `InputSpec` to replace, such as `frames=8` or `crops="ten"`; `views`, a named way of
            looking at a video, and settings of the network, where the reference lists them.

    Raises:
        BadValue: if no weights are given; the message says where the public ones are.
        CheckpointError: F54 if they belong to another network.
        MissingExtra: if the library that the network comes from is not installed.
    """
    kind = kind_of(name)
    if weights is None:
        more = offer(kind.place or place_of("models", name))
        raise BadValue(f"{name}: scores of an untrained network mean nothing; give its weights: {kind.source}{more}")
    return kind.load(weights, changes).to(device)


def changed(name: str, spec: InputSpec, changes: Changes) -> InputSpec:
    """The spec with fields replaced, or an error that lists what can be."""
    known = [own.name for own in fields(spec)]
    unknown = sorted(set(changes) - set(known))
    if unknown:
        raise BadValue(f"{name}: its input has no setting {', '.join(unknown)}; there are {', '.join(known)}")
    if "size" in changes and "resize" not in changes:
        changes = {**changes, "resize": spec.resize_for(changes["size"])}  # as much of a frame is seen as before
    return replace(spec, **changes)


def fill(name: str, network: nn.Module, weights: Mapping[str, Tensor], *, assign: bool = False) -> None:
    """Put weights into a network.

    Args:
        assign: take the tensors themselves, instead of copying their values.

    Raises:
        CheckpointError: F54 if they belong to another one; how they differ is said in a few words.
    """
    try:
        network.load_state_dict(weights, assign=assign)
    except RuntimeError as error:
        wanted = {key: tuple(value.shape) for key, value in network.state_dict().items()}
        apart = differences(wanted, weights).replace("\n", "; ") or str(error)
        raise CheckpointError(f"{name}: the weights belong to another network: {apart}", fault="F54") from None


def with_weights(
    name: str, build: Callable[[int], nn.Module], spec: InputSpec, weights: Weights, *, head: str, classes: int = 400
) -> Recogniser:
    """A recogniser from a function that builds its network, and tensors by name.

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
        network = build(len(weights[head]) if weights else classes)
    if weights:
        fill(name, network, weights)
    return Recogniser(network, spec, name=name, head=head.removesuffix(".bias"))
