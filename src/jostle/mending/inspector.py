"""Network that predicts for each frame of a video whether it is damaged, from descriptors of it and its neighbours.

Each frame is compared with frames near it and with the median of the seconds around it, cell by cell; small linear
layers embed the result, and convolutions over time turn the embeddings into one probability a frame. It looks at both
sides, or only at the past for live use. A rule without training complements it for blank frames.
"""

from __future__ import annotations

import copy
import hashlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jostle.core.finite import check_finite
from jostle.core.state_dict import describe_mismatch
from jostle.core.types.clip import Frame
from jostle.errors import CheckpointError
from jostle.mending.blank_frames import RecentFrames, median
from jostle.mending.descriptor import describe_frame, stream_descriptors
from jostle.mending.descriptor_layout import CELLS, CHANNELS, Descriptors
from jostle.mending.frame_comparison import compare_frames, merge_2x2, scale_channels
from jostle.models.checkpoints import tensors_fingerprint
from jostle.models.devices import one_thread
from jostle.models.finite import check_weights

LAGS = {False: (-12, -4, -1, 1, 4, 12), True: (-24, -12, -6, -4, -2, -1)}  # neighbours, by `causal`
BLOCK = 8  # frames that share a median
MEDIAN_REACH = 64  # frames to each side of a median; twice as many in causal mode
MEDIAN_STEP = 4  # stride of the frames of a median
DILATIONS = (1, 2, 4, 8, 16)  # of the convolutions over time
WIDTH, DIM = 48, 64
OUTPUT = "the inspector, probability that a frame is damaged"  # in messages
SIDES = ("both", "causal")  # the two networks of an inspector
AT_ONCE = 64  # default batch size

Probabilities = npt.NDArray[np.float32]


class InspectorNetwork(nn.Module):
    """Network from the descriptors of a video to one logit a frame.

    Args:
        causal: use past frames only.
    """

    def __init__(self, *, causal: bool = False) -> None:
        super().__init__()
        self.causal = causal
        self.lags = LAGS[causal]
        channels = CHANNELS * (2 + len(self.lags))
        # Single cells, then 2 x 2 cells, then 2 x 2 of those: plain products, which every machine computes fast.
        self.cell = nn.Linear(channels, WIDTH)
        self.four = nn.Linear(4 * WIDTH, DIM)
        self.sixteen = nn.Linear(4 * DIM, DIM)
        self.frame = nn.Linear(2 * DIM, DIM)
        self.norm = nn.LayerNorm(DIM)
        self.times = nn.ModuleList(nn.Conv1d(DIM, DIM, 3, dilation=dilation) for dilation in DILATIONS)
        self.mixed = nn.ModuleList(nn.Conv1d(DIM, DIM, 1) for _ in DILATIONS)
        self.answer = nn.Conv1d(DIM, 1, 1)

    @property
    def reach(self) -> int:
        """Frames to each side (or twice as many in the past) that the convolutions over time cover."""
        return sum(DILATIONS)

    def forward(self, descriptors: Tensor) -> Tensor:
        """Map (B, T, CHANNELS, CELLS, CELLS) bytes to (B, T) logits; each item is treated as a whole video."""
        count = descriptors.shape[1]
        own = scale_channels(descriptors)
        medians = scale_channels(
            descriptors[:, self.median_frames(torch.arange(0, count, BLOCK), count)].median(2).values
        )
        medians = medians.repeat_interleave(BLOCK, 1)[:, :count]
        others = [own[:, beside] for beside in self.neighbours(torch.arange(count), count).unbind(1)]
        inputs = compare_frames(own, others, medians)
        frames = self.embed(inputs.flatten(0, 1))
        return self.frame_logits(frames.view(*inputs.shape[:2], DIM))

    def neighbours(self, times: Tensor, total: int) -> Tensor:
        """Return (T, lags) the frames that each frame is compared with.

        Beyond an end of the video it is the frame itself, so that the difference is zero.

        Args:
            total: frames of the video, or as many as are known.
        """
        others = times[:, None] + torch.tensor(self.lags)
        return torch.where((others >= 0) & (others < total), others, times[:, None])

    def median_frames(self, blocks: Tensor, total: int) -> Tensor:
        """Return (blocks, steps) the frames of the median for blocks that begin at these frames."""
        steps = 2 * MEDIAN_REACH // MEDIAN_STEP
        if not self.causal:
            return reflect(blocks[:, None] + torch.arange(-MEDIAN_REACH, MEDIAN_REACH + 1, MEDIAN_STEP), total)
        begin = (blocks - 2 * MEDIAN_REACH).clamp(min=0)[:, None]
        return begin + (blocks[:, None] - begin) * torch.arange(steps + 1) // steps

    def embed(self, inputs: Tensor) -> Tensor:
        """Embed single frames from their comparisons with others; returns (N, DIM)."""
        cells = F.relu(self.cell(inputs))
        parts = F.relu(self.sixteen(merge_2x2(F.relu(self.four(merge_2x2(cells)))))).flatten(1, 2)
        frames: Tensor = self.norm(self.frame(torch.cat([parts.mean(1), parts.amax(1)], 1)))
        return F.relu(frames)

    def frame_logits(self, frames: Tensor, *, before: int = 0, after: int = 0) -> Tensor:
        """Map (B, before + T + after, DIM) embeddings to (B, T) logits, with zeros beyond both ends."""
        x = frames.transpose(1, 2)
        for dilation, time, mixed in zip(DILATIONS, self.times, self.mixed, strict=True):
            ends = (2 * dilation, 0) if self.causal else (dilation, dilation)
            x = x + mixed(F.relu(time(F.pad(x, ends))))
        logits: Tensor = self.answer(x)[:, 0]
        return logits[:, before : logits.shape[1] - after]


class InspectorNetworks(nn.ModuleDict):
    """Both networks of an inspector: one for recorded video and a causal one for live use."""

    def __init__(self) -> None:
        super().__init__({side: InspectorNetwork(causal=side == "causal") for side in SIDES})


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


def damage_probabilities(logits: Tensor) -> Tensor:
    """Return the sigmoid of logits; NaN for an infinite one, which the sigmoid would hide."""
    return logits.sigmoid() + 0 * logits


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


def reflect(times: Tensor, total: int) -> Tensor:
    """Mirror frame indices at the ends of a video until they lie in it.

    >>> reflect(torch.arange(-3, 6), 4).tolist()
    [3, 2, 1, 0, 1, 2, 3, 2, 1]
    """
    if total == 1:
        return torch.zeros_like(times)
    folded = times.abs() % (2 * total - 2)
    return torch.minimum(folded, 2 * total - 2 - folded)
