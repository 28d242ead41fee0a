"""Options of adaptation in a run: method, protocol and settings, checked before a network is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from jostle.errors import BadValue
from jostle.models.adaptation.method import (
    PROTOCOLS,
    Adapter,
    Forward,
    Protocol,
    SourceStatistics,
    make_settings,
    methods,
)


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
