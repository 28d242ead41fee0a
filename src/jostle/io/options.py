"""Options of files: how videos are read, and what is written over."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from jostle.core.options import Role, option


@dataclass(frozen=True, kw_only=True, eq=False)
class RateOptions:
    """Images"""

    fps: Fraction | float | None = field(
        default=None,
        metadata=option("Frame rate of image folders that do not state it; default: 30.", Role.SAME),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class OverwriteOptions:
    """Output"""

    overwrite: bool = field(
        default=False,
        metadata=option("Replace the output if it exists; features also if they were made with other settings."),
    )
