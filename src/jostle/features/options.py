"""Options of features: how their windows are counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from jostle.core.options import Role, option

Rule = Literal["all", "released", "released-json"]
ReleasedBug = Literal["skipped-window", "early-row"]


@dataclass(frozen=True, kw_only=True, eq=False)
class FeatureOptions:
    """Features"""

    rule: Rule = field(
        default="all",
        metadata=option(
            "Windows of features: all full ones, or those of THUMOS14-C's programs.",
            Role.CONDITION,
            more="See `jostle.features.windows.WindowGrid`.",
        ),
    )
    reproduce_bugs: Sequence[ReleasedBug] = field(
        default=(),
        metadata=option(
            "Reproduce a bug of THUMOS14-C's programs: skipped-window, early-row; may be repeated.",
            Role.CONDITION,
            flag="--reproduce-bug",
            metavar="FAULT",
        ),
    )
