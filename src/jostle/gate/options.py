"""Options of a gate, and of an early end: a run stops when every condition of a budget is decided."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.core.options import Role, option, reworded
from jostle.core.progress import ProgressOptions
from jostle.corruptions.options import SeedOptions
from jostle.evaluation.config import CellOptions
from jostle.metrics.options import ScoreOptions

if TYPE_CHECKING:
    from jostle.gate.budget import Budget


@dataclass(frozen=True, kw_only=True, eq=False)
class StopOptions:
    """Early end"""

    until_decided: str | Path | Mapping[str, Any] | Budget | None = field(
        default=None,
        metadata=option(
            "Process videos in random order until every condition of the budget is decided; see `jostle check`.",
            Role.SESSION,
            more="The guarantee of its level holds although one looks several times: after each video for recognition, "
            "at four planned looks for scores that are no mean over videos, such as mAP. The run says that it stopped "
            "early, and the same run without this goes on to the whole benchmark.",
            metavar="BUDGET",
        ),
    )
    against: str | Path | None = field(
        default=None,
        metadata=option(
            "Reference run, with --until-decided.", Role.SESSION, more="It is of all videos.", metavar="RUN"
        ),
    )
    fail_fast: bool = field(
        default=False,
        metadata=option("With --until-decided: stop as soon as one condition has failed.", Role.SESSION),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class CheckConfig(SeedOptions, ProgressOptions):
    """Gate"""

    run: str | Path = field(
        kw_only=False,
        metadata=option("Run folder; or the folder of a corrupted data set, or of a data set.", metavar="DIR"),
    )
    against: str | Path | None = field(
        kw_only=False,
        default=None,
        metadata=reworded(StopOptions, "against", "Reference run of the same benchmark.", flag="--against"),
    )
    budget: str | Path | Mapping[str, Any] | Budget | None = field(
        kw_only=False,
        default=None,
        metadata=option(
            "TOML file with [[condition]] tables; default with --against: at most 2 points lost, clean and corrupted.",
            more="Or a mapping of the same form.",
            flag="--budget",
            metavar="FILE",
        ),
    )
    cells: Iterable[str] | None = field(
        default=None,
        metadata=reworded(
            CellOptions, "cells", "Cells that the gate is about; default: all that count.", metavar="CELL,..."
        ),
    )
    draws: int | None = field(
        default=None,
        metadata=reworded(
            ScoreOptions,
            "bootstrap",
            "Number of bootstrap draws of intervals; default: enough for the decision.",
            least=2,
        ),
    )
