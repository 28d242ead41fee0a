"""Options of probes: which damage is tried where, on which videos."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from jostle.core.options import Role, option, reworded
from jostle.evaluation.config import InferenceConfig, RunOutputOptions
from jostle.mending.options import ThresholdOptions


@dataclass(frozen=True, kw_only=True, eq=False)
class ProbeOptions:
    """Probe"""

    kinds: Iterable[str] | None = field(
        default=None,
        metadata=option(
            "Kind of damage, for example kinetics-c/fog or fog:5; may be repeated. Default: those of THUMOS14-C.",
            Role.SAME,
            flag="--kind",
            metavar="SPEC",
        ),
    )
    step: int = field(
        default=1,
        metadata=option(
            "Frames between the positions of single damaged frames.",
            Role.SAME,
            more="1 tries every position.",
            least=1,
        ),
    )
    threshold: float | None = field(
        default=None,
        metadata=reworded(
            ThresholdOptions,
            "threshold",
            "Least score of detections that count; default: one that leaves as many as there are actions on clean "
            "video.",
            role=Role.SAME,
            least=None,
            most=None,
        ),
    )
    videos: int | None = field(
        default=None,
        metadata=option(
            "Use this many videos only, drawn by the seed.",
            Role.SESSION,
            more="More are added to those that are done.",
            metavar="N",
            least=1,
        ),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class ProbeConfig(InferenceConfig, ProbeOptions, RunOutputOptions):
    """Options of a probe, as requested."""
