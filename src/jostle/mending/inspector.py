"""A network that says of each frame of a video whether it was struck, from glances at it and at its neighbours.

Each frame is set beside frames near it and beside the median of the seconds around it, cell by cell; small convolutions
make a few numbers of that, and convolutions over time turn these into one probability a frame. It looks to both sides,
or to the past alone for live use. Beside it stands a plain rule for frames that show nothing, which needs no training.
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

from jostle.core.state_dict import differences
from jostle.core.types.clip import Frame
from jostle.errors import CheckpointError
from jostle.mending.blank_frames import Lately, median
from jostle.mending.descriptor import CELLS, CHANNELS, COLOUR, DETAIL, LIGHT, Glances, glance, glances_ahead
from jostle.models.fingerprint import tensors_fingerprint
from jostle.models.precision import one_thread

LAGS = {False: (-12, -4, -1, 1, 4, 12), True: (-24, -12, -6, -4, -2, -1)}  # frames that a frame is compared with
BLOCK = 8  # frames that share a median
AROUND = 64  # frames to each side that a median is of; twice as many to one side
STEP = 4  # frames between two that it is of
DILATIONS = (1, 2, 4, 8, 16)  # of the convolutions over time
DIFFERENCES = 4.0  # how much larger they are made
WIDTH, DIM = 48, 64
SIDES = ("both", "causal")  # the two networks of an inspector
AT_ONCE = 64  # frames that are looked at together

Probabilities = npt.NDArray[np.float32]


class InspectorNetwork(nn.Module):
    """From glances of a video to a logit a frame.

    Args:
        causal: look to the past alone.
    """

    def __init__(self, *, causal: bool = False) -> None:
        super().__init__()
        self.causal = causal
        self.lags = LAGS[causal]
        seen = CHANNELS * (2 + len(self.lags))
        # A cell by itself, then four cells, then four of those: plain products, which every machine is fast at.
        self.cell = nn.Linear(seen, WIDTH)
        self.four = nn.Linear(4 * WIDTH, DIM)
        self.sixteen = nn.Linear(4 * DIM, DIM)
        self.frame = nn.Linear(2 * DIM, DIM)
        self.norm = nn.LayerNorm(DIM)
        self.times = nn.ModuleList(nn.Conv1d(DIM, DIM, 3, dilation=dilation) for dilation in DILATIONS)
        self.mixed = nn.ModuleList(nn.Conv1d(DIM, DIM, 1) for _ in DILATIONS)
        self.answer = nn.Conv1d(DIM, 1, 1)

    @property
    def reach(self) -> int:
        """Frames to each side (or twice as many to one) that the convolutions over time join."""
        return sum(DILATIONS)

    def forward(self, glances: Tensor) -> Tensor:
        """(B, T) logits of (B, T, CHANNELS, CELLS, CELLS) bytes: whole videos, or pieces taken for whole ones."""
        count = glances.shape[1]
        own = scaled(glances)
        usual = scaled(glances[:, self.around(torch.arange(0, count, BLOCK), count)].median(2).values)
        usual = usual.repeat_interleave(BLOCK, 1)[:, :count]
        others = [own[:, beside] for beside in self.beside(torch.arange(count), count).unbind(1)]
        seen = compared(own, others, usual)
        frames = self.embedded(seen.flatten(0, 1))
        return self.joined(frames.view(*seen.shape[:2], DIM))

    def beside(self, times: Tensor, total: int) -> Tensor:
        """(T, lags) frames that frames are compared with; for one beyond an end the frame itself, so nothing differs.

        Args:
            total: frames of the video, or as many as are known.
        """
        others = times[:, None] + torch.tensor(self.lags)
        return torch.where((others >= 0) & (others < total), others, times[:, None])

    def around(self, blocks: Tensor, total: int) -> Tensor:
        """(blocks, steps) frames whose median a block that begins at such a frame is compared with."""
        steps = 2 * AROUND // STEP
        if not self.causal:
            return reflected(blocks[:, None] + torch.arange(-AROUND, AROUND + 1, STEP), total)
        begin = (blocks - 2 * AROUND).clamp(min=0)[:, None]
        return begin + (blocks[:, None] - begin) * torch.arange(steps + 1) // steps

    def embedded(self, seen: Tensor) -> Tensor:
        """(N, DIM) of what single frames look like beside others."""
        cells = F.relu(self.cell(seen))
        parts = F.relu(self.sixteen(_by_four(F.relu(self.four(_by_four(cells)))))).flatten(1, 2)
        frames: Tensor = self.norm(self.frame(torch.cat([parts.mean(1), parts.amax(1)], 1)))
        return F.relu(frames)

    def joined(self, frames: Tensor, *, before: int = 0, after: int = 0) -> Tensor:
        """(B, T) logits of (B, before + T + after, DIM); what is not given at either end is nothing."""
        x = frames.transpose(1, 2)
        for dilation, time, mixed in zip(DILATIONS, self.times, self.mixed, strict=True):
            ends = (2 * dilation, 0) if self.causal else (dilation, dilation)
            x = x + mixed(F.relu(time(F.pad(x, ends))))
        logits: Tensor = self.answer(x)[:, 0]
        return logits[:, before : logits.shape[1] - after]


class BothWays(nn.ModuleDict):
    """The two networks of an inspector: one that looks to both sides, and one for live use."""

    def __init__(self) -> None:
        super().__init__({side: InspectorNetwork(causal=side == "causal") for side in SIDES})


class Inspector:
    """Says of each frame how probably it was struck, as frames go by; memory does not grow with their number.

    Args:
        networks: whose weights are loaded.
        thresholds: the probability from which a frame counts as struck, for each of `SIDES`.
        name: what it is known by.

    Attributes:
        name: what it is known by.
        device: that it runs on.
        blank_rule: whether frames that show nothing between two of one scene are struck whatever the network says; not
            where it looks to the past alone. Without it the network alone speaks, as a study of the network needs it.
    """

    def __init__(
        self,
        networks: BothWays,
        thresholds: Mapping[str, float],
        *,
        name: str,
        device: str = "cpu",
        blank_rule: bool = True,
    ) -> None:
        self.name, self.blank_rule = name, blank_rule
        self._networks = networks.to(device).eval()
        self.device = torch.device(device)
        self._thresholds = {side: float(thresholds[side]) for side in SIDES}
        self._weights = tensors_fingerprint(networks)

    @property
    def fingerprint(self) -> str:
        """Of its weights, thresholds and rule, for records."""
        of = f"{self._weights} {sorted(self._thresholds.items())}{' blank frames' if self.blank_rule else ''}"
        return f"sha256:{hashlib.sha256(of.encode()).hexdigest()}"

    @property
    def network(self) -> InspectorNetwork:
        """The one that looks to both sides."""
        found = self._networks[SIDES[0]]
        assert isinstance(found, InspectorNetwork)
        return found

    def to(self, device: str) -> Inspector:
        """The same on another device."""
        networks = copy.deepcopy(self._networks)
        return Inspector(networks, self._thresholds, name=self.name, device=device, blank_rule=self.blank_rule)

    def threshold(self, *, causal: bool = False) -> float:
        """The probability from which a frame counts as struck."""
        return self._thresholds[SIDES[causal]]

    @staticmethod
    def latency(*, causal: bool = False, at_once: int = AT_ONCE) -> int:
        """Frames that come after one before its probability is told, at most."""
        return at_once - 1 + (0 if causal else AROUND + BLOCK + sum(DILATIONS))

    def inspect(
        self, frames: Iterable[Frame], *, causal: bool = False, at_once: int = AT_ONCE, jobs: int = 1
    ) -> Iterator[float]:
        """One probability a frame, in order.

        Args:
            frames: (H, W, 3) uint8 RGB.
            causal: from what came before a frame alone.
            at_once: frames that are looked at together; with `causal`, 1 answers each frame as it comes.
            jobs: threads that glance at frames, which are then taken further ahead of what is answered, by `at_once`
                and some more; not for live use.
        """
        network, rule = self._networks[SIDES[causal]], self.blank_rule and not causal
        stream = _Stream(network, self.device, at_once, blank_rule=rule, waits=jobs > 1)
        for some in glances_ahead(frames, jobs) if jobs > 1 else (glance(frame)[None] for frame in frames):
            yield from stream.told(some)
        yield from stream.rest()

    def __repr__(self) -> str:
        return f"Inspector({self.name!r}, {self.fingerprint[:15]}...)"


class _Stream:
    """One video on its way through a network: as few glances and embedded frames are kept as later ones need.

    Args:
        waits: whether answers are fetched when the next ones are on their way, so that a GPU and what feeds it need not
            wait for each other.
    """

    def __init__(
        self, network: nn.Module, device: torch.device, at_once: int, *, blank_rule: bool, waits: bool
    ) -> None:
        assert isinstance(network, InspectorNetwork)
        self._network, self._device, self._at_once, self._waits = network, device, at_once, waits
        self._ahead = 0 if network.causal else AROUND + BLOCK
        self._behind = (2 if network.causal else 1) * AROUND + BLOCK
        self._glances = torch.zeros(0, CHANNELS, CELLS, CELLS, dtype=torch.uint8, device=device)  # from `_first` on
        self._coming: list[Glances] = []  # behind them
        self._first, self._count, self._embedded, self._done = 0, 0, 0, 0
        self._frames = torch.zeros(0, DIM, device=device)  # what the network made of the last ones up to `_embedded`
        self._usual = torch.zeros(0, CELLS, CELLS, CHANNELS, device=device)  # medians of blocks, from `_block` on
        self._block = 0
        self._lately = Lately() if blank_rule else None
        self._answers: deque[_Answer] = deque()

    def told(self, some: Glances) -> list[float]:
        """The probabilities that further frames make known."""
        self._coming.append(some)
        self._count += len(some)
        while self._count - self._ahead >= self._embedded + self._at_once:
            self._advance(self._embedded + self._at_once, ended=False)
        return self._fetched(all_of_them=not self._waits)

    def rest(self) -> list[float]:
        """The probabilities of the last frames."""
        while self._embedded < self._count:
            self._advance(min(self._embedded + self._at_once, self._count), ended=True)
        return self._fetched(all_of_them=True)

    @torch.inference_mode()
    def _advance(self, hi: int, *, ended: bool) -> None:
        network = self._network
        if self._coming:
            coming = np.concatenate(self._coming)
            self._glances = torch.cat([self._glances, self._sent(torch.from_numpy(coming))])
            self._coming = []
            if self._lately is not None:
                self._lately.add(coming)
        with one_thread():
            self._frames = torch.cat([self._frames, network.embedded(self._compared(self._embedded, hi))])
            self._embedded = hi
            ready = hi - self._done
            after = 0 if network.causal or (ended and hi == self._count) else network.reach
            if ready <= after:
                return
            logits = network.joined(self._frames[None], before=len(self._frames) - ready, after=after)
            lost = [] if self._lately is None else self._lately.lost(self._done, hi - after)
            self._answers.append(_Answer(logits.sigmoid()[0], lost))
        self._done = hi - after
        self._forget()

    def _fetched(self, *, all_of_them: bool) -> list[float]:
        """Answers in order; of the last one, nothing as yet if it may still be on its way."""
        found: list[float] = []
        while len(self._answers) > (0 if all_of_them else 1):
            found += self._answers.popleft().probabilities()
        return found

    def _compared(self, lo: int, hi: int) -> Tensor:
        """Frames beside others, as the network is shown them in `forward`."""
        network, times = self._network, torch.arange(lo, hi)
        new = torch.arange(self._block + len(self._usual), -(-hi // BLOCK)) * BLOCK
        if len(new):
            around = self._at(network.around(new, self._count))
            medians = around.median(1).values if around.is_cuda else torch.from_numpy(median(around.numpy()))
            self._usual = torch.cat([self._usual, scaled(medians)])
        usual = self._usual[self._sent(times // BLOCK - self._block)]
        where = torch.cat([times[:, None], network.beside(times, self._count)], 1)
        own, *others = scaled(self._at(where)).unbind(1)
        return compared(own, others, usual)

    def _at(self, where: Tensor) -> Tensor:
        return self._glances[self._sent(where - self._first)]

    def _sent(self, values: Tensor) -> Tensor:
        """On the device: from memory that a GPU reads by itself, or it would have to be through with its work first."""
        on_gpu = self._device.type == "cuda"
        return (values.pin_memory() if on_gpu else values).to(self._device, non_blocking=on_gpu)

    def _forget(self) -> None:
        reach = (2 if self._network.causal else 1) * self._network.reach
        self._frames = self._frames[max(len(self._frames) - (self._embedded - self._done) - reach, 0) :]
        block = self._embedded // BLOCK
        self._usual, self._block = self._usual[block - self._block :], block
        drop = max(block * BLOCK - self._behind, 0) - self._first
        if drop > 0:
            self._glances = self._glances[drop:]
            self._first += drop


class _Answer:
    """Probabilities on their way from a device, and which of them a rule knows better."""

    def __init__(self, told: Tensor, lost: Sequence[int]) -> None:
        self._lost, self._arrived = lost, None
        self._told = told.to("cpu", non_blocking=True)
        if told.is_cuda:
            self._arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._arrived.record()

    def probabilities(self) -> list[float]:
        if self._arrived is not None:
            self._arrived.synchronize()
        found: list[float] = self._told.tolist()
        for number in self._lost:
            found[number] = 1.0
        return found


def inspector_of(
    weights: Mapping[str, Tensor], thresholds: Mapping[str, float], *, name: str, device: str
) -> Inspector:
    """An inspector with the tensors of a file.

    Raises:
        CheckpointError: if they are of something else.
    """
    networks = BothWays()
    shapes = {key: tuple(value.shape) for key, value in networks.state_dict().items()}
    wrong = differences(shapes, weights)
    if wrong:
        raise CheckpointError(f"{name}: these are no weights of an inspector: {wrong}")
    known = [value for value in thresholds.values() if isinstance(value, float) and 0 < value < 1]
    if set(thresholds) != set(SIDES) or len(known) != len(SIDES):
        raise CheckpointError(
            f"{name}: an inspector's weights note two thresholds, {' and '.join(SIDES)}; train it anew"
        )
    networks.load_state_dict(dict(weights))
    return Inspector(networks, thresholds, name=name, device=device)


def scaled(glances: Tensor) -> Tensor:
    """(..., CELLS, CELLS, CHANNELS) as the network wants it, all channels about as large, of bytes."""
    x = glances.movedim(-3, -1).float()
    x[..., LIGHT] /= 128
    x[..., COLOUR] = (x[..., COLOUR] - 128) / 64
    x[..., DETAIL] /= 96
    return x


def compared(own: Tensor, others: Sequence[Tensor], usual: Tensor) -> Tensor:
    """(..., channels): frames, and how they differ from others and from what is usual; differences are small."""
    return torch.cat([own, *(DIFFERENCES * (own - other) for other in (*others, usual))], -1)


def _by_four(maps: Tensor) -> Tensor:
    """(N, H / 2, W / 2, 4 C) of (N, H, W, C)."""
    count, height, width, channels = maps.shape
    quarters = maps.reshape(count, height // 2, 2, width // 2, 2, channels).transpose(2, 3)
    return quarters.reshape(count, height // 2, width // 2, 4 * channels)


def reflected(times: Tensor, total: int) -> Tensor:
    """Times mirrored at the ends of a video until they lie in it.

    >>> reflected(torch.arange(-3, 6), 4).tolist()
    [3, 2, 1, 0, 1, 2, 3, 2, 1]
    """
    if total == 1:
        return torch.zeros_like(times)
    turned = times.abs() % (2 * total - 2)
    return torch.minimum(turned, 2 * total - 2 - turned)
