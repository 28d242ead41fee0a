"""Inspection by an inspector's networks: of a stream of frames, and of one video in many corrupted states.

A stream keeps only what later frames need. In the states of a video a probability depends on a frame's descriptor, on
those of a few neighbours, on the median of the seconds around it, and on the embeddings within the network's reach.
Only frames for which one of the first three changed are embedded again, in batches whose rows are proved not to depend
on each other, so that a state has the same bits as if it were inspected alone.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from jostle.core.finite import check_finite
from jostle.core.state_dict import describe_mismatch
from jostle.core.types.clip import Frame
from jostle.errors import BadValue, CheckpointError
from jostle.mending.blank_frames import Mask, RecentFrames, find_blank, find_lost_in_video, median
from jostle.mending.descriptor import describe_frame, stream_descriptors
from jostle.mending.descriptor_layout import CELLS, CHANNELS, Descriptors
from jostle.mending.folded import CellRows, FoldedEmbedding, to_cell_rows
from jostle.mending.frame_comparison import compare_frames, scale_channels
from jostle.mending.network import (
    BLOCK,
    DILATIONS,
    DIM,
    MEDIAN_REACH,
    SIDES,
    InspectorNetwork,
    InspectorNetworks,
    damage_probabilities,
    export_network,
)
from jostle.models.checkpoints import tensors_fingerprint
from jostle.models.devices import one_thread
from jostle.models.finite import check_weights
from jostle.models.onnx_export import OnnxFile
from jostle.models.rows import RowBatches

OUTPUT = "the inspector, probability that a frame is damaged"  # in messages
AT_ONCE = 64  # default batch size of a stream
BATCH = (
    32  # frames per batch of a video, always as many: only equal shapes give equal bits; `RowBatches` may find another
)
MEDIAN_BATCH = 32

Probabilities = npt.NDArray[np.float32]
Indices = npt.NDArray[np.int64]


class Inspector:
    """Predictor of the damage probability of each frame of a stream, in bounded memory.

    Args:
        thresholds: the probability from which a frame counts as damaged, for each of `SIDES`.

    Attributes:
        name: name or path it was loaded from.
        device: device that it runs on.
        rules: whether plain rules add to what the network finds: here blank frames between two frames of one scene, and
            in `jostle.inspect` and mending those of `VideoRules`; not in causal mode. False leaves the decision to the
            network, as a study of the network needs it.
    """

    def __init__(
        self,
        networks: InspectorNetworks,
        thresholds: Mapping[str, float],
        *,
        name: str,
        device: str = "cpu",
        rules: bool = True,
    ) -> None:
        self.name, self.rules = name, rules
        self._networks = networks.to(device).eval()
        self.device = torch.device(device)
        self._thresholds = {side: float(thresholds[side]) for side in SIDES}
        self._weights = tensors_fingerprint(networks)

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the weights, thresholds and rule, for records."""
        content = f"{self._weights} {sorted(self._thresholds.items())}{' blank frames' if self.rules else ''}"
        return f"sha256:{hashlib.sha256(content.encode()).hexdigest()}"

    @property
    def network(self) -> InspectorNetwork:
        """The network for recorded video, which looks at both sides."""
        return self.side(SIDES[0])

    def side(self, side: str) -> InspectorNetwork:
        """Return the network of one of `SIDES`."""
        network = self._networks[side]
        assert isinstance(network, InspectorNetwork)
        return network

    def to(self, device: str) -> Inspector:
        """Return a copy on another device."""
        networks = copy.deepcopy(self._networks)
        return Inspector(networks, self._thresholds, name=self.name, device=device, rules=self.rules)

    def threshold(self, *, causal: bool = False) -> float:
        """Return the probability from which a frame counts as damaged."""
        return self._thresholds[SIDES[causal]]

    @staticmethod
    def latency(*, causal: bool = False, at_once: int = AT_ONCE) -> int:
        """Return the greatest number of later frames needed before a frame's probability is known."""
        return at_once - 1 + (0 if causal else MEDIAN_REACH + BLOCK + sum(DILATIONS))

    def inspect(
        self, frames: Iterable[Frame], *, causal: bool = False, at_once: int = AT_ONCE, jobs: int = 1
    ) -> Iterator[float]:
        """Yield one damage probability a frame, in order.

        Args:
            frames: (H, W, 3) uint8 RGB.
            causal: use past frames only.
            at_once: batch size; with `causal`, 1 answers each frame as it comes.
            jobs: threads that compute descriptors. With more than one, frames are read further ahead, by `at_once` and
                some more; not for live use.
        """
        network, rule = self._networks[SIDES[causal]], self.rules and not causal
        stream = _Stream(network, self.device, at_once, blank_rule=rule, defer=jobs > 1)
        for descriptors in (
            stream_descriptors(frames, jobs) if jobs > 1 else (describe_frame(frame)[None] for frame in frames)
        ):
            yield from stream.push(descriptors)
        yield from stream.flush()

    def export(self, path: Path, *, side: str = "causal") -> OnnxFile:
        """Export a network as an ONNX file: `causal`, or `both` for recorded video."""
        if side not in SIDES:
            raise BadValue(f"an inspector has the networks {' and '.join(SIDES)}, not {side!r}")
        network = self.to("cpu").side(side)
        metadata = {
            "jostle.inspector": self.name,
            "jostle.fingerprint": self.fingerprint,
            "jostle.network": side,
            "jostle.threshold": repr(self.threshold(causal=side == "causal")),
            "jostle.lags": json.dumps(network.lags),
            "jostle.reach": str(network.reach),
        }
        return export_network(network, path, metadata, f"inspector {self.name}, {side}")

    def __repr__(self) -> str:
        return f"Inspector({self.name!r}, {self.fingerprint[:15]}...)"


class _Stream:
    """State of one video on its way through a network; keeps only what later frames need.

    Args:
        defer: whether to fetch a batch's probabilities after the next batch is launched, so that a GPU and the threads
            that feed it do not wait for each other.
    """

    def __init__(
        self, network: nn.Module, device: torch.device, at_once: int, *, blank_rule: bool, defer: bool
    ) -> None:
        assert isinstance(network, InspectorNetwork)
        self._network, self._device, self._at_once, self._defer = network, device, at_once, defer
        self._ahead = 0 if network.causal else MEDIAN_REACH + BLOCK
        self._behind = (2 if network.causal else 1) * MEDIAN_REACH + BLOCK
        self._descriptors = torch.zeros(0, CHANNELS, CELLS, CELLS, dtype=torch.uint8, device=device)  # from `_first` on
        self._new: list[Descriptors] = []  # not on the device yet
        self._first, self._count, self._embedded, self._done = 0, 0, 0, 0
        self._frames = torch.zeros(0, DIM, device=device)  # embeddings of the last frames before `_embedded`
        self._medians = torch.zeros(0, CELLS, CELLS, CHANNELS, device=device)  # medians of blocks, from `_block` on
        self._block = 0
        self._recent = RecentFrames() if blank_rule else None
        self._pending: deque[_PendingProbabilities] = deque()

    def push(self, descriptors: Descriptors) -> list[float]:
        """Add frames and return the probabilities that have become known."""
        self._new.append(descriptors)
        self._count += len(descriptors)
        while self._count - self._ahead >= self._embedded + self._at_once:
            self._advance(self._embedded + self._at_once, ended=False)
        return self._fetch(wait=not self._defer)

    def flush(self) -> list[float]:
        """Return the probabilities of the last frames."""
        while self._embedded < self._count:
            self._advance(min(self._embedded + self._at_once, self._count), ended=True)
        return self._fetch(wait=True)

    @torch.inference_mode()
    def _advance(self, hi: int, *, ended: bool) -> None:
        network = self._network
        if self._new:
            descriptors = np.concatenate(self._new)
            self._descriptors = torch.cat([self._descriptors, self._to_device(torch.from_numpy(descriptors))])
            self._new = []
            if self._recent is not None:
                self._recent.add(descriptors)
        with one_thread():
            self._frames = torch.cat([self._frames, network.embed(self._compare(self._embedded, hi))])
            self._embedded = hi
            ready = hi - self._done
            after = 0 if network.causal or (ended and hi == self._count) else network.reach
            if ready <= after:
                return
            logits = network.frame_logits(self._frames[None], before=len(self._frames) - ready, after=after)
            lost = [] if self._recent is None else self._recent.lost(self._done, hi - after)
            self._pending.append(_PendingProbabilities(damage_probabilities(logits)[0], lost))
        self._done = hi - after
        self._discard()

    def _fetch(self, *, wait: bool) -> list[float]:
        """Return finished probabilities in order; without `wait`, all but the last batch."""
        probabilities: list[float] = []
        while len(self._pending) > (0 if wait else 1):
            probabilities += self._pending.popleft().probabilities()
        return probabilities

    def _compare(self, lo: int, hi: int) -> Tensor:
        """Compare frames with others as `InspectorNetwork.forward` does."""
        network, times = self._network, torch.arange(lo, hi)
        new = torch.arange(self._block + len(self._medians), -(-hi // BLOCK)) * BLOCK
        if len(new):
            around = self._descriptors_at(network.median_frames(new, self._count))
            medians = around.median(1).values if around.is_cuda else torch.from_numpy(median(around.numpy()))
            self._medians = torch.cat([self._medians, scale_channels(medians)])
        block_medians = self._medians[self._to_device(times // BLOCK - self._block)]
        where = torch.cat([times[:, None], network.neighbours(times, self._count)], 1)
        own, *others = scale_channels(self._descriptors_at(where)).unbind(1)
        return compare_frames(own, others, block_medians)

    def _descriptors_at(self, where: Tensor) -> Tensor:
        return self._descriptors[self._to_device(where - self._first)]

    def _to_device(self, values: Tensor) -> Tensor:
        """Copy to the device; from pinned memory for a GPU, so that the copy does not wait for its queue."""
        on_gpu = self._device.type == "cuda"
        return (values.pin_memory() if on_gpu else values).to(self._device, non_blocking=on_gpu)

    def _discard(self) -> None:
        reach = (2 if self._network.causal else 1) * self._network.reach
        self._frames = self._frames[max(len(self._frames) - (self._embedded - self._done) - reach, 0) :]
        block = self._embedded // BLOCK
        self._medians, self._block = self._medians[block - self._block :], block
        drop = max(block * BLOCK - self._behind, 0) - self._first
        if drop > 0:
            self._descriptors = self._descriptors[drop:]
            self._first += drop


class _PendingProbabilities:
    """Probabilities in transfer from a device, with the frames that the blank rule overrides."""

    def __init__(self, probabilities: Tensor, lost: Sequence[int]) -> None:
        self._lost, self._copied = lost, None
        self._probabilities = probabilities.to("cpu", non_blocking=True)
        if probabilities.is_cuda:
            self._copied = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._copied.record()

    def probabilities(self) -> list[float]:
        if self._copied is not None:
            self._copied.synchronize()
        check_finite(self._probabilities.numpy(), OUTPUT)
        values: list[float] = self._probabilities.tolist()
        for number in self._lost:
            values[number] = 1.0
        return values


class InspectedVideo:
    """Damage probabilities of the frames of a video, in any state of it.

    A video that is blank from end to end counts as damaged throughout; a stream cannot know that in time.

    Args:
        descriptors: of the clean video, to which states are compared.

    Attributes:
        probabilities: (T,) that each frame of the clean video is damaged.
    """

    def __init__(self, inspector: Inspector, descriptors: Descriptors) -> None:
        self._network, self._device = inspector.network, inspector.device
        self._layers, self._row_batches = FoldedEmbedding(self._network), RowBatches(self._network)
        self._blank = find_blank(descriptors) if inspector.rules else None
        count = len(descriptors)
        blocks = torch.arange(0, count, BLOCK)
        self._median_frames: Indices = self._network.median_frames(blocks, count).numpy()
        self._neighbours: Indices = self._network.neighbours(torch.arange(count), count).numpy()
        self._rows = to_cell_rows(descriptors)
        self._medians = self._compute_medians(self._rows, np.arange(len(blocks)))
        self._frames = self._embed(self._rows, self._medians, np.arange(count))
        self.probabilities = self._with_lost(self._classify(self._frames), self._rows, self._blank)

    def probabilities_for(self, came_from: Indices, new_descriptors: Descriptors) -> Probabilities:
        """Return (T,) the damage probabilities of another state of the video.

        Args:
            came_from: for each frame the index of the clean frame that it equals, or below 0 for a new one.
            new_descriptors: descriptors of the new ones, in order.
        """
        rows, new = self._rows[came_from], came_from < 0
        rows[new] = to_cell_rows(new_descriptors)
        changed = (rows != self._rows).any((1, 2))
        if not changed.any():
            return self.probabilities
        near = np.flatnonzero(changed[self._median_frames].any(1))
        medians = np.array(self._medians)
        medians[near] = self._compute_medians(rows, near)
        median_changed = np.repeat((medians != self._medians).any((1, 2)), BLOCK)[: len(rows)]
        stale = np.flatnonzero(changed | changed[self._neighbours].any(1) | median_changed)
        frames = self._frames.clone()
        frames[torch.from_numpy(stale).to(self._device)] = self._embed(rows, medians, stale)
        blank = None if self._blank is None else self._blank[came_from]
        if blank is not None:
            blank[new] = find_blank(new_descriptors)
        return self._with_lost(self._classify(frames), rows, blank)

    def _with_lost(self, probabilities: Probabilities, rows: CellRows, blank: Mask | None) -> Probabilities:
        if blank is not None and blank.any():
            probabilities[find_lost_in_video(blank, lambda a, b: rows[a:b].transpose(0, 2, 1))] = 1.0
        return probabilities

    def _compute_medians(self, rows: CellRows, blocks: Indices) -> CellRows:
        parts = [
            median(rows[self._median_frames[blocks[lo : lo + MEDIAN_BATCH]]])
            for lo in range(0, len(blocks), MEDIAN_BATCH)
        ]
        return np.concatenate(parts) if parts else rows[:0]

    @torch.inference_mode()
    def _embed(self, rows: CellRows, medians: CellRows, which: Indices) -> Tensor:
        """Embed frames as `InspectorNetwork.embed` does, from unscaled bytes; returns (N, DIM)."""
        parts = []
        with one_thread(), torch.autocast(self._device.type, enabled=False):
            row = torch.empty(1, 2 + self._neighbours.shape[1], *rows.shape[1:], dtype=torch.uint8, device=self._device)
            size = self._row_batches.size("embed", self._layers, row, BATCH)
            for lo in range(0, len(which), size):
                part = which[lo : lo + size]
                filled = np.concatenate([part, np.repeat(part[-1:], size - len(part))])
                beside = np.concatenate([filled[:, None], self._neighbours[filled]], 1)
                inputs = np.concatenate([rows[beside], medians[filled // BLOCK][:, None]], 1)
                parts.append(self._layers(torch.from_numpy(inputs).to(self._device))[: len(part)])
        return torch.cat(parts) if parts else torch.zeros(0, DIM, device=self._device)

    @torch.inference_mode()
    def _classify(self, frames: Tensor) -> Probabilities:
        with one_thread(), torch.autocast(self._device.type, enabled=False):
            probabilities = damage_probabilities(self._network.frame_logits(frames[None])[0]).cpu().numpy()
        check_finite(probabilities, OUTPUT)
        return probabilities


def build_inspector(
    weights: Mapping[str, Tensor], thresholds: Mapping[str, float], *, name: str, device: str
) -> Inspector:
    """Build an inspector from the tensors of a weights file."""
    networks = InspectorNetworks()
    shapes = {key: tuple(value.shape) for key, value in networks.state_dict().items()}
    wrong = describe_mismatch(shapes, weights)
    if wrong:
        raise CheckpointError(f"{name}: not the weights of an inspector: {wrong}")
    valid = [value for value in thresholds.values() if isinstance(value, float) and 0 < value < 1]
    if set(thresholds) != set(SIDES) or len(valid) != len(SIDES):
        raise CheckpointError(
            f"{name}: the weights of an inspector need two thresholds, {' and '.join(SIDES)}; train it again"
        )
    networks.load_state_dict(dict(weights))
    check_weights(networks, name)
    return Inspector(networks, thresholds, name=name, device=device)
