"""Feature extractors: a network and its `InputSpec`, called on raw frames; a recogniser's last layer is one too."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, Protocol, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from jostle.core.cuda import (
    GraphReplays,
    iter_batches,
    launch_turn,
    network_stream,
    prefetch_one,
    to_device,
    to_host_async,
)
from jostle.core.registry import Registry
from jostle.errors import BadValue, CheckpointError
from jostle.models.devices import inference_mode
from jostle.models.extractors.flow import Flow, flow_between
from jostle.models.input_spec import Frames, InputSpec
from jostle.models.recognition.recogniser import Recogniser, changed, load_weights
from jostle.models.rows import RowBatches
from jostle.models.weights.sources import fetch_hint, source_of

# Work goes through a network in batches of one size, filled up where it is less: libraries choose their kernels by the
# shape, and only equal kernels give equal bits for a frame whatever stands beside it. `RowBatches` proves that they do,
# or finds another size.
FRAMES_AT_ONCE = {"cpu": 32, "cuda": 256}
WINDOWS_AT_ONCE = {"cpu": 32, "cuda": 256}

Features = npt.NDArray[np.float32]
Tensors = Mapping[str, Tensor]
Sees = Literal["frames", "flow", "both"]


class WindowNetwork(Protocol):
    """Protocol of networks that process a whole window: frames, optical flow, or both."""

    def features(self, *clips: Tensor) -> Tensor:
        """Return (B, C) from prepared crops: of frames, with axes as the `InputSpec` says, and flow (B, 2, T, H, W)."""


class FrameNetwork(Protocol):
    """Protocol of two-part networks: one part per frame, one that joins the frames of a window.

    With an attribute `replayable` that is true, both parts launch the same operations whatever the values of their
    inputs, and a GPU runs them as CUDA graphs.
    """

    def see(self, frames: Tensor) -> Tensor:
        """Return (N, D) from (N, 3, H, W)."""

    def join(self, encodings: Tensor) -> Tensor:
        """Return (B, C) from (B, T, D)."""


@dataclass(frozen=True)
class ExtractorKind:
    """Registry entry of an extractor: builder, input spec and source of its weights."""

    name: str
    build: Callable[[], nn.Module]
    spec: InputSpec
    dim: int  # length of a feature vector
    least_frames: int  # shortest clip that the network accepts
    source: str  # source of the public weights, as the end of an error message
    frame_dim: int | None = None  # length of a frame encoding; None for networks that process whole windows
    most_frames: int | None = None  # longest clip that it accepts; None for any
    picks: tuple[int, ...] | None = None  # frames of a clip that the network uses; None for all
    # renames public weights to the names of the network; None where they are the same
    translate: Callable[[Tensors, nn.Module], Tensors] | None = None
    sees: Sees = "frames"  # input of the network: frames, optical flow, or both
    # for a network in several parts, the public file of each, by the prefix of its tensors
    streams: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.spec.step != 1:
            raise BadValue(f"{self.name}: windows of an extractor are frames in a row, so step must be 1")
        self.check_length(self.spec.frames)

    def check_length(self, frames: int) -> None:
        """Raise if the network cannot process clips of this length."""
        if frames < self.least_frames or (self.most_frames is not None and frames > self.most_frames):
            raise BadValue(
                f"{self.name}: a clip must have {self.lengths}, not {frames}; {self.spec.frames} is the default"
            )

    @property
    def lengths(self) -> str:
        """Supported clip lengths, as text."""
        least, most = self.least_frames, self.most_frames
        if most is None:
            return f"at least {least} frames"
        return f"{least} frames" if least == most else f"{least} to {most} frames"


extractors: Registry[ExtractorKind] = Registry("extractor", "jostle.models.extractors")


def extractor(
    name: str,
    *,
    spec: InputSpec,
    dim: int,
    least_frames: int = 1,
    source: str,
    frame_dim: int | None = None,
    most_frames: int | None = None,
    translate: Callable[[Tensors, nn.Module], Tensors] | None = None,
    sees: Sees = "frames",
    streams: Mapping[str, str] | None = None,
) -> Callable[[Callable[[], nn.Module]], Callable[[], nn.Module]]:
    """Register a function that builds the network of an extractor; see `ExtractorKind`."""
    optional: dict[str, Any] = {"frame_dim": frame_dim, "most_frames": most_frames, "translate": translate}

    def register(build: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
        kind = ExtractorKind(name, build, spec, dim, least_frames, source, sees=sees, streams=streams or {}, **optional)
        extractors.add(name, kind)
        return build

    return register


class Extractor:
    """A network in evaluation mode that turns clips into features.

    Attributes:
        kind: its registry entry.
        network: the network itself.
    """

    def __init__(self, kind: ExtractorKind, network: nn.Module) -> None:
        self.kind = kind
        self.network = network.eval()
        self._replays, self._row_batches = GraphReplays(network), RowBatches(network)

    @property
    def spec(self) -> InputSpec:
        """Input spec of the network."""
        return self.kind.spec

    @property
    def dim(self) -> int:
        """Length of a feature vector."""
        return self.kind.dim

    @property
    def frame_dim(self) -> int | None:
        """Length of a frame encoding; None for a network that processes whole windows."""
        return self.kind.frame_dim

    @property
    def sees_flow(self) -> bool:
        """Whether the network processes optical flow."""
        return self.kind.sees != "frames"

    def flow(self, first: Frames, second: Frames) -> Flow:
        """Return (N, H', W', 2) uint8 optical flow from first to second frames (N, H, W, 3), resized."""
        return flow_for(self.spec, first, second, threads=torch.get_num_threads())

    @property
    def flow_maker(self) -> Callable[[Frames, Frames], Flow]:
        """Picklable single-threaded flow function, for processes that hold the frames."""
        return partial(flow_for, self.spec)

    def __call__(self, clip_frames: Frames, flow: Flow | None = None) -> Features:
        """Return (B, C) float32 from (B, T, H, W, 3) uint8; a feature is the mean over the crops.

        Args:
            flow: (B, T, H', W', 2) from each frame to the one after it, for a network that sees it. Without it, it is
                computed from the clips, and where a clip ends the last one is repeated.
        """
        clips = np.asarray(clip_frames)
        if clips.ndim != 5 or clips.shape[-1] != 3 or clips.dtype != np.uint8:
            raise BadValue(f"{self.kind.name}: clips must be (B, T, H, W, 3) uint8, not {clips.shape} {clips.dtype}")
        self.kind.check_length(clips.shape[1])
        if self.frame_dim is not None:
            count, length = clips.shape[:2]
            return self.join(self.see(clips.reshape(-1, *clips.shape[2:])).reshape(count, length, self.frame_dim))
        if self.kind.picks is not None:
            clips = clips[:, self.kind.picks]
        flows: Iterable[Flow | None] = itertools.repeat(None)
        if self.sees_flow:
            flows = self._own_flow(clips) if flow is None else np.asarray(flow)
        network = cast(WindowNetwork, self.network)
        features = np.empty((len(clips), self.dim), np.float32)

        def begun(clip: Frames, moved: Flow | None) -> Callable[[], Tensor]:
            with launch_turn(self.device):
                crops = []
                if self.kind.sees != "flow":
                    crops.append(self.spec.prepare(to_device(np.ascontiguousarray(clip), self.device)))
                if moved is not None:
                    crops.append(self.spec.prepare_flow(to_device(moved, self.device)))
                with network_stream(*crops):
                    return to_host_async(network.features(*crops).mean(0).float())

        # One clip at a time: its crops fill a batch, and memory does not grow with the number of clips.
        with inference_mode():
            started = (begun(clip, moved) for clip, moved in zip(clips, flows, strict=False))
            for i, finish in enumerate(prefetch_one(started)):
                features[i] = finish().numpy()
        return features

    def _own_flow(self, clips: Frames) -> Flow:
        flows = [self.flow(clip[:-1], clip[1:]) for clip in clips]
        return np.stack([np.concatenate([flow, flow[-1:]]) for flow in flows])

    @property
    def at_once(self) -> tuple[int, int]:
        """Numbers of frames and of windows in a batch."""
        kind = "cuda" if self.device.type == "cuda" else "cpu"
        return FRAMES_AT_ONCE[kind], WINDOWS_AT_ONCE[kind]

    def see(self, frames: Frames) -> Features:
        """Return (N, frame_dim) float32 from (N, H, W, 3) uint8: each frame by itself, the same bits in any batch."""
        return self.see_together([frames])[0]

    def see_together(self, parts: Sequence[Frames | Tensor]) -> list[Features]:
        """Encode the frames of each part as if alone, in shared batches; parts may be on the device."""
        network = cast(FrameNetwork, self._in_two_parts())
        every, size = [part if isinstance(part, Tensor) else np.asarray(part) for part in parts], self.at_once[0]
        return self._in_batches("see", every, size, self.frame_dim or 0, self.spec.prepare_frames, network.see)

    def join(self, encodings: Features) -> Features:
        """Return (B, C) float32 from (B, T, frame_dim): each window by itself, the same bits whatever the batch."""
        return self.join_together([encodings])[0]

    def join_together(self, parts: Sequence[Features]) -> list[Features]:
        """Return the features of the windows of each part, as if each were alone; they share batches."""
        network = cast(FrameNetwork, self._in_two_parts())
        every = [np.asarray(part, np.float32) for part in parts]
        return self._in_batches("join", every, self.at_once[1], self.dim, lambda encodings: encodings, network.join)

    def _in_batches(
        self,
        name: str,
        parts: Sequence[npt.NDArray[Any] | Tensor],
        largest: int,
        dim: int,
        prepare: Callable[[Tensor], Tensor],
        compute: Callable[[Tensor], Tensor],
    ) -> list[Features]:
        def on_device(piece: npt.NDArray[Any] | Tensor) -> Tensor:
            return piece if isinstance(piece, Tensor) else to_device(piece, self.device)

        def proved_size(piece: npt.NDArray[Any] | Tensor) -> int:
            with launch_turn(self.device):
                row = prepare(on_device(piece[:1]))
                with network_stream(row):
                    return self._row_batches.size(name, compute, row, largest)

        def begun(pieces: Sequence[npt.NDArray[Any] | Tensor]) -> Callable[[], Tensor]:
            here = sum(map(len, pieces))
            with launch_turn(self.device):
                batch = [on_device(piece) for piece in pieces]
                if here < size:
                    batch.append(batch[0].new_zeros(size - here, *batch[0].shape[1:]))
                ready = prepare(torch.cat(batch))  # in memory of its own, as kernels depend on where a batch begins
                with network_stream(ready):
                    outputs = self._replays(compute, ready) if replayable else compute(ready)
                    return to_host_async(outputs[:here].float())

        compiled = {"see", "join"} & vars(self.network).keys()
        replayable = getattr(self.network, "replayable", False) and not compiled
        ends = np.cumsum([len(part) for part in parts])
        outputs, first = np.empty((int(ends[-1]), dim), np.float32), 0
        with inference_mode():
            size = next((proved_size(part) for part in parts if len(part)), largest)
            # Not `map`, which a StopIteration of the network would end as if all had been computed.
            for finish in prefetch_one(begun(pieces) for pieces in iter_batches(parts, size)):
                rows = finish()
                outputs[first : first + len(rows)] = rows
                first += len(rows)
        return np.split(outputs, ends[:-1])

    def _in_two_parts(self) -> nn.Module:
        if self.frame_dim is None:
            raise BadValue(f"{self.kind.name} sees a window whole; call it on clips of {self.spec.frames} frames")
        return self.network

    @property
    def device(self) -> torch.device:
        """Device that holds the network."""
        for tensor in self.network.parameters():
            return tensor.device
        return torch.device("cpu")


def flow_for(spec: InputSpec, first: Frames, second: Frames, *, threads: int = 1) -> Flow:
    """Compute optical flow between frames, resized as the spec says."""
    return flow_between(first, second, spec.resized_to(*first.shape[1:3]), threads=threads)


def build_extractor(name: str, weights: Tensors | str | None, device: str = "cpu", **changes: Any) -> Extractor:
    """Build a registered extractor around its network.

    Args:
        weights: tensors by name; `random` for weights that mean nothing but are the same every time.
        changes: fields of its `InputSpec` to replace, such as `stride=8`.

    Raises:
        BadValue: if no weights are given; the message says where the public ones are.
        CheckpointError: F54 if they belong to another network.
    """
    kind = extractors[name]
    if changes:
        kind = replace(kind, spec=changed(name, kind.spec, changes))
    if weights is None:
        more = fetch_hint(source_of("extractors", name))
        raise BadValue(f"{name}: features of an untrained network mean nothing; give its weights: {kind.source}{more}")
    if not isinstance(weights, str):
        return Extractor(kind, build_with_weights(kind, weights).to(device))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = kind.build()
    return Extractor(kind, network.to(device))


def build_with_weights(kind: ExtractorKind, weights: Tensors) -> nn.Module:
    """Build the network with these weights, without copying them or initialising others."""
    with torch.device("meta"):
        network = kind.build()
    try:
        tensors = weights if kind.translate is None else kind.translate(weights, network)
    except RuntimeError as error:
        raise CheckpointError(f"{kind.name}: the weights belong to another network: {error}", fault="F54") from None
    load_weights(kind.name, network, tensors, assign=True)
    return network.float()


def as_extractor(recogniser: Recogniser) -> Extractor:
    """Return an extractor with the recogniser's network and input spec; a window spans one clip.

    Raises:
        BadValue: if it is no module, or does not say which layer is the last.
    """
    network, spec, name = recogniser.network, recogniser.spec, recogniser.name
    if not isinstance(network, nn.Module) or spec is None or not recogniser.head:
        raise BadValue(
            f"{name} cannot make features: it has to be a torch.nn.Module with an InputSpec, and to name the layer "
            "that makes scores of features: Recogniser(network, spec, head=...)"
        )
    inner = Penultimate(network, recogniser.head, name)
    span = spec.frames * spec.step
    kind = ExtractorKind(
        name,
        build=partial(Penultimate, network, recogniser.head, name),
        spec=replace(spec, frames=span, step=1, spread="step", clips=None, starts="ends"),
        dim=inner.dim,
        least_frames=span,
        source="",
        most_frames=span,
        picks=None if spec.step == 1 else spec.picks,
    )
    return Extractor(kind, inner)


class Penultimate(nn.Module):
    """Network whose features are the input of one of its layers.

    Args:
        network: what gives scores.
        head: name of the layer, linear or a convolution of single places.

    Attributes:
        dim: length of a feature.
    """

    def __init__(self, network: nn.Module, head: str, name: str) -> None:
        super().__init__()
        try:
            layer = network.get_submodule(head)
        except AttributeError:
            raise BadValue(f"{name}: its network has no layer {head!r}; name the one that makes the scores") from None
        if isinstance(layer, nn.Linear):
            self.dim = layer.in_features
        elif isinstance(layer, nn.Conv3d) and layer.kernel_size == (1, 1, 1) and layer.groups == 1:
            self.dim = layer.in_channels
        else:
            raise BadValue(f"{name}: {head!r} is a {type(layer).__name__}, not a linear layer or 1x1x1 convolution")
        self.network, self.name, self.head = network, name, head
        self._seen: Tensor | None = None
        layer.register_forward_pre_hook(self._look)

    def _look(self, layer: nn.Module, inputs: tuple[Any, ...]) -> None:
        self._seen = inputs[0]

    def features(self, clips: Tensor) -> Tensor:
        """Return (B, dim) features of prepared clips, averaged over positions for convolutional layers."""
        self._seen = None
        self.network(clips)
        features, self._seen = self._seen, None
        if features is None or len(features) != len(clips) or features.ndim < 2 or features.shape[1] != self.dim:
            description = "nothing" if features is None else f"{tuple(features.shape)}"
            raise BadValue(f"{self.name}: {self.head} was given {description}, not ({len(clips)}, {self.dim}) features")
        return features.flatten(2).mean(2) if features.ndim > 2 else features
