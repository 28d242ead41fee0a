"""Adaptation methods: registry, options, and the base class that takes steps and keeps a network's state apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar, Literal, TypeVar

import torch
from torch import Tensor, nn

from jostle.core.registry import Registry
from jostle.core.settings import convert_settings
from jostle.errors import BadValue
from jostle.models.adaptation.options import Protocol

PROTOCOLS: tuple[Protocol, ...] = ("episodic", "online")
When = Literal["before", "after"]
State = dict[str, Tensor]  # what adaptation changed, by name
SourceStatistics = Mapping[str, Tensor]
Forward = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Passes:
    """Number of passes of clips through a network.

    >>> Passes(1, 2, 1) + Passes(1, 1, 0)
    Passes(plain=2, forward=3, backward=1)
    """

    plain: int = 0  # forward passes that prediction without adaptation takes
    forward: int = 0
    backward: int = 0

    def __add__(self, other: Passes) -> Passes:
        return Passes(self.plain + other.plain, self.forward + other.forward, self.backward + other.backward)


class Adapter:
    """Base of adaptation methods: adapts a network to a batch of clips and predicts their outputs.

    Outside of `state` the network is in its source state, bit for bit.

    Args:
        network: in evaluation mode.
        settings: of the method.
        protocol: `episodic`, where each video begins with the source, or `online`, where it begins with the state that
            earlier videos left.
        forward: computes outputs of a prepared batch; the network itself unless its parts are called by name.
        source: statistics of clean videos, for methods that need them.

    Attributes:
        settings_type: dataclass of the settings.
        predicts: whether predictions precede the adaptation step or follow it, by protocol.
        needs_classes: whether the outputs must be logits of classes.
        two_views: whether the method compares two views of each clip, with different frames of it.
        needs_source: what the method needs to know of clean videos; None for nothing.
        passes: number of passes so far.
    """

    settings_type: ClassVar[type[Any]]
    predicts: ClassVar[Mapping[Protocol, When]] = {"episodic": "after", "online": "after"}
    needs_classes: ClassVar[bool] = True
    two_views: ClassVar[bool] = False
    needs_source: ClassVar[str | None] = None

    def __init__(
        self,
        network: nn.Module,
        settings: Any,
        protocol: Protocol,
        *,
        forward: Forward | None = None,
        source: SourceStatistics | None = None,
    ) -> None:
        self.network, self.settings, self.protocol = network, settings, protocol
        device = next(network.parameters()).device
        self.forward = forward or network
        self.source = {name: value.to(device) for name, value in (source or {}).items()}
        self.passes = Passes()
        self.memory: State = {}  # tensors that the method remembers from video to video
        self.parameters = self.adapted_parameters()
        self._originals = {name: value.detach().clone() for name, value in self._changing().items()}
        self._gradients: dict[str, Tensor | None] = {}

    def adapted_parameters(self) -> dict[str, nn.Parameter]:
        """Return the parameters that steps change, by name."""
        return {}

    def adapted_buffers(self) -> dict[str, Tensor]:
        """Return the buffers that the method changes, by name."""
        return {}

    def adapt(self, batch: Tensor, frames: int, second_view: Tensor | None = None) -> Tensor:
        """Adapt to a batch of prepared clips, and return their outputs.

        Args:
            batch: (B, ...) prepared crops of one video.
            frames: number of frames in the batch.
            second_view: (B, ...) crops of other frames of the same clips, where `two_views` is true.
        """
        raise NotImplementedError

    def measure_source(self, clips: Iterable[tuple[Tensor, int]]) -> dict[str, Tensor]:
        """Measure what the method needs to know of clean videos.

        Args:
            clips: prepared batches with their numbers of frames, one for each video.
        """
        raise NotImplementedError

    @contextmanager
    def state(self, state: State | None) -> Iterator[None]:
        """Put the network into a state; the source returns at the end, whatever happens.

        Args:
            state: what `save_state` returned after an earlier video; None for the source.
        """
        requires = {name: value.requires_grad for name, value in self.network.named_parameters()}
        self._gradients = {name: value.grad for name, value in self.parameters.items()}
        try:
            for name, parameter in self.network.named_parameters():
                parameter.requires_grad_(name in self.parameters)
                if name in self.parameters:
                    parameter.grad = None
            self.load_state(state)
            yield
        finally:
            with torch.no_grad():
                for name, value in self._changing().items():
                    value.copy_(self._originals[name])
            for name, parameter in self.network.named_parameters():
                parameter.requires_grad_(requires[name])
            for name, parameter in self.parameters.items():
                parameter.grad = self._gradients[name]

    def save_state(self) -> State:
        """Return a copy of all that adaptation has changed so far."""
        changed = {f"network.{name}": value for name, value in self._changing().items()}
        remembered = {f"memory.{name}": value for name, value in self.memory.items()}
        return {name: value.detach().clone() for name, value in (changed | remembered).items()}

    def load_state(self, state: State | None) -> None:
        """Set network and memory to a state, or to the source."""
        self.memory = {
            name.removeprefix("memory."): value.clone()
            for name, value in (state or {}).items()
            if name.startswith("memory.")
        }
        with torch.no_grad():
            for name, value in self._changing().items():
                value.copy_(self._originals[name] if state is None else state[f"network.{name}"])

    def _changing(self) -> dict[str, Tensor]:
        return {**self.parameters, **self.adapted_buffers()}

    def run(self, batch: Tensor) -> Tensor:
        """Compute the outputs of a batch, and count the pass."""
        self.passes += Passes(forward=1)
        return self.forward(batch)

    def gradients(self, loss: Tensor) -> dict[str, Tensor]:
        """Compute the gradients of a loss by the adapted parameters, and count the pass."""
        self.passes += Passes(backward=1)
        values = torch.autograd.grad(loss, list(self.parameters.values()), allow_unused=True)
        return {
            name: torch.zeros_like(parameter) if value is None else value
            for (name, parameter), value in zip(self.parameters.items(), values, strict=True)
        }

    @torch.no_grad()
    def sgd_step(self, gradients: Mapping[str, Tensor], *, lr: float, momentum: float = 0.0) -> None:
        """Take a step of stochastic gradient descent with momentum: v = momentum v + g, x = x - lr v."""
        for name, parameter in self.parameters.items():
            velocity = gradients[name]
            if momentum:
                before = self.memory.get(f"velocity.{name}")
                velocity = velocity.clone() if before is None else momentum * before + velocity
                self.memory[f"velocity.{name}"] = velocity
            parameter.sub_(lr * velocity)

    @torch.no_grad()
    def adam_step(
        self,
        gradients: Mapping[str, Tensor],
        *,
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        """Take a step of Adam (Kingma & Ba, 2015)."""
        memory = self.memory
        number = int(memory.get("adam.step", torch.zeros((), dtype=torch.int64))) + 1
        memory["adam.step"] = torch.tensor(number)
        for name, parameter in self.parameters.items():
            gradient = gradients[name]
            first = memory.get(f"adam.first.{name}", torch.zeros_like(gradient))
            second = memory.get(f"adam.second.{name}", torch.zeros_like(gradient))
            memory[f"adam.first.{name}"] = first = betas[0] * first + (1 - betas[0]) * gradient
            memory[f"adam.second.{name}"] = second = betas[1] * second + (1 - betas[1]) * gradient**2
            root = (second / (1 - betas[1] ** number)).sqrt() + eps
            parameter.sub_(lr * (first / (1 - betas[0] ** number)) / root)


Kind = TypeVar("Kind", bound=type[Adapter])
methods: Registry[type[Adapter]] = Registry("adaptation method", "jostle.models.adaptation")


def method(name: str) -> Callable[[Kind], Kind]:
    """Register an adaptation method; see `Adapter`."""

    def register(kind: Kind) -> Kind:
        methods.add(name, kind)
        return kind

    return register


def make_settings(name: str, changes: Mapping[str, Any]) -> Any:
    """Return the settings of a method with some changed.

    Raises:
        UnknownName: if there is no such method.
        BadValue: if it has no such setting, or the value does not fit.
    """
    kind = methods[name].settings_type
    settings = kind(**convert_settings(kind, changes, where=f"adaptation by {name}"))
    for setting in fields(settings):
        value = getattr(settings, setting.name)
        if value is not None and (value < 0 or (setting.name == "steps" and value < 1)):
            least = "at least 1" if setting.name == "steps" else "not below 0"
            raise BadValue(f"adaptation by {name}: {setting.name} must be {least}, got {value}")
    return settings


@dataclass(frozen=True)
class AdaptationOptions:
    """Method of adaptation with its protocol and settings; settings that are not given have their defaults."""

    method: str
    protocol: Protocol = "episodic"
    changes: Mapping[str, Any] = field(default_factory=dict)
    source: SourceStatistics | None = None  # what the method needs to know of clean videos, once measured

    def check(self) -> None:
        """Raise if there is no such method, protocol or setting."""
        if self.protocol not in PROTOCOLS:
            raise BadValue(f"a protocol of adaptation is {' or '.join(PROTOCOLS)}, not {self.protocol!r}")
        make_settings(self.method, self.changes)

    @property
    def kind(self) -> type[Adapter]:
        """Class that implements the method."""
        return methods[self.method]

    @property
    def settings(self) -> Any:
        """Settings of the method, with its defaults where nothing else is set."""
        return make_settings(self.method, self.changes)

    def build(self, network: Any, *, forward: Forward | None = None) -> Adapter:
        """Return the adapter of a network."""
        return self.kind(network, self.settings, self.protocol, forward=forward, source=self.source)

    def to_dict(self) -> dict[str, Any]:
        """Return method, protocol, settings and when predictions are made, for run.json."""
        return {
            "method": self.method,
            "protocol": self.protocol,
            "predicts": f"{self.kind.predicts[self.protocol]} the step",
            "settings": asdict(self.settings),
        }
