"""Configurations of runs and probes: options from which keywords, flags and keys of settings files follow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.core.options import Role, option
from jostle.errors import BadValue
from jostle.evaluation.config import InferenceConfig, SelectionOptions
from jostle.gate.options import StopOptions

if TYPE_CHECKING:
    from jostle.evaluation.runner.progress import Watch


@dataclass(frozen=True, kw_only=True, eq=False)
class OutputOptions:
    """Output"""

    out: str | Path = field(
        metadata=option(
            "Run folder; with several models, the folder that holds theirs.",
            Role.SESSION,
            more="Deleting a predictions file there makes the next run do that cell again.",
            short="-o",
            metavar="RUN",
        )
    )
    progress: Callable[[int, int], None] | None = field(
        default=None,
        metadata=option(
            "Called with (videos done, videos to do); of long videos of single frames, with portions of them.",
            Role.SESSION,
            python=True,
        ),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class RunConfig(InferenceConfig, SelectionOptions, StopOptions, OutputOptions):
    """Options of a run, as requested."""

    watch: Watch | None = field(
        default=None,
        metadata=option("Called with the state of all cells after each video.", Role.SESSION, python=True),
    )

    def check_stop(self) -> None:
        """Raise if options of an early end are given without a budget, or cannot be combined with others."""
        if self.until_decided is None and (self.against is not None or self.fail_fast):
            what = "a reference run is compared with by `jostle check`"
            if self.fail_fast:
                what = "fail_fast ends a run by a budget"
            raise BadValue(f"{what}; give until_decided (--until-decided), the budget, with it")
        if self.adapt_protocol == "online" and self.until_decided is not None:
            raise BadValue(
                "a budget decides the order of videos, and so does online adaptation; leave one of the two out"
            )


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
        metadata=option(
            "Least score of detections that count; default: one that leaves as many as there are actions on clean "
            "video.",
            Role.SAME,
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
class ProbeConfig(InferenceConfig, ProbeOptions, OutputOptions):
    """Options of a probe, as requested."""
