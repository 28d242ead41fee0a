"""Options of adaptation at test time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from jostle.core.options import Role, option

Protocol = Literal["episodic", "online"]


@dataclass(frozen=True, kw_only=True, eq=False)
class AdaptOptions:
    """Adaptation"""

    adapt: str | None = field(
        default=None,
        metadata=option(
            "Adapt the network at test time: bn, tent, eata, sar or vitta.",
            Role.CONDITION,
            more="It is that of a recogniser or of an extractor, and as before when the run ends, which remembers it.",
            metavar="METHOD",
        ),
    )
    adapt_protocol: Protocol = field(
        default="episodic",
        metadata=option(
            "Adapt to each video from the source weights, or from the state after the videos before.",
            Role.CONDITION,
            more="These are in an order drawn by the seed, one after the other.",
        ),
    )
    adapt_settings: Mapping[str, Any] | None = field(
        default=None,
        metadata=option("Change a setting of the method, for example lr=1e-4.", Role.CONDITION, flag="--adapt-setting"),
    )
    adapt_source: str | Path | None = field(
        default=None,
        metadata=option(
            "Clean videos, or a run, for eata and vitta.",
            Role.CONDITION,
            more="The source is measured on a folder of videos, or taken from a run folder. By default it is measured "
            "on the training subset of the data set.",
            metavar="DIR",
        ),
    )
