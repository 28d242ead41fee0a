"""Steps of training networks from scratch: an optimiser with its schedule, and a running average of weights."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn

from studies.harness import get_device

Losses = tuple[Tensor, dict[str, Tensor]]  # what is minimised, and what is printed


def training_device() -> torch.device:
    """Return the GPU where there is one, and have cuDNN search for the fastest convolutions."""
    torch.backends.cudnn.benchmark = True
    return torch.device(get_device())


class Descent:
    """AdamW with clipped gradients, whose rate rises over the first steps and falls along a cosine.

    Args:
        rise: share of the steps in which the rate rises.
        clip: largest norm of the gradient.
        cycle_momentum: whether momentum falls while the rate rises.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        lr: float,
        *,
        steps: int,
        decay: float,
        rise: float = 0.1,
        clip: float = 1.0,
        cycle_momentum: bool = False,
    ) -> None:
        self._parameters, self._clip = list(parameters), clip
        fused = self._parameters[0].device.type == "cuda"
        self._optimiser = torch.optim.AdamW(self._parameters, lr=lr, weight_decay=decay, fused=fused)
        self._schedule = torch.optim.lr_scheduler.OneCycleLR(
            self._optimiser, lr, total_steps=steps, pct_start=rise, cycle_momentum=cycle_momentum
        )

    def __call__(self, loss: Tensor) -> None:
        """Take one step down the gradient of a loss."""
        descend(loss, self._parameters, self._optimiser, self._clip)
        self._schedule.step()


def descend(
    loss: Tensor, parameters: Iterable[nn.Parameter], optimiser: torch.optim.Optimizer, clip: float = 1.0
) -> None:
    """Take one step of an optimiser, with gradients clipped to a norm."""
    optimiser.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(parameters, clip)
    optimiser.step()


def fit(
    label: str,
    parameters: Sequence[nn.Parameter],
    compute: Callable[[], Losses],
    *,
    steps: int,
    lr: float,
    decay: float,
    every: int,
) -> None:
    """Minimise a loss, and print it every so many steps."""
    step_down = Descent(parameters, lr, steps=steps, decay=decay, cycle_momentum=True)
    begin = time.monotonic()
    for step in range(1, steps + 1):
        loss, info = compute()
        step_down(loss)
        if step % every == 0 or step == steps:
            report(label, step, info, begin)


def report(label: str, step: int, info: Mapping[str, Tensor | float], begin: float) -> None:
    """Print the state of a training run."""
    values = {
        name: round(float(value.detach() if isinstance(value, Tensor) else value), 4) for name, value in info.items()
    }
    print(label, json.dumps({"step": step, **values, "s": round(time.monotonic() - begin, 1)}), flush=True)


class RandomCrops:
    """Crops of square pictures, moved and mirrored at random.

    Args:
        side: of the pictures; what lies beyond repeats their edge.
        size: of the crops.
        moves: range of the first row and column.

    Attributes:
        rows, columns: (B, size) indices of the pixels.
    """

    def __init__(self, count: int, side: int, size: int, moves: tuple[int, int], device: torch.device) -> None:
        self.moves = torch.randint(*moves, (count, 2), device=device)
        self.mirror = torch.rand(count, 1, device=device) < 0.5
        span = torch.arange(size, device=device)
        self.rows, across = ((span + self.moves[:, axis, None]).clamp(0, side - 1) for axis in (0, 1))
        self.columns = torch.where(self.mirror, across.flip(1), across)

    def move_points(self, points: Tensor, last: int) -> Tensor:
        """Return where points (B, ..., 2), x and y in pixels, are in the crops.

        Args:
            last: where a point at 0 is after mirroring.
        """
        shape = (-1, *[1] * (points.dim() - 2))
        points = points - self.moves.flip(1).view(*shape, 2)
        x = torch.where(self.mirror.view(shape), last - points[..., 0], points[..., 0])
        return torch.stack([x, points[..., 1]], -1)


@torch.no_grad()
def follow(average: Mapping[str, Tensor], network: nn.Module, step: int, decay: float) -> None:
    """Update a running average of a network's state, which forgets faster in the first steps."""
    decay = min(decay, step / (step + 10))
    for name, value in network.state_dict().items():
        if value.is_floating_point():
            average[name].lerp_(value, 1 - decay)
        else:
            average[name].copy_(value)


def as_shipped(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors rounded to half precision, so that results are those of the shipped network to the bit."""
    return {
        name: value.half().to(value.dtype).cpu() if value.is_floating_point() else value.cpu()
        for name, value in tensors.items()
    }
