"""Options of corruptions: what is done to which frames, and the seed of what is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.core.options import Role, option, reworded
from jostle.io.options import ConvertOptions

if TYPE_CHECKING:
    from jostle.core.types.truth import Truth
    from jostle.corruptions.engine.spec import Spec


@dataclass(frozen=True, kw_only=True, eq=False)
class SeedOptions:
    """Random draws"""

    seed: int = field(default=0, metadata=option("Seed of all random draws.", Role.CONDITION, variable="JOSTLE_SEED"))


@dataclass(frozen=True, kw_only=True, eq=False)
class SpecOptions:
    """Corruption"""

    spec: str | Spec | Sequence[str | Spec] = field(
        default=(),
        metadata=option(
            "Corruption, as [profile/]name[:severity]; may be repeated, applied in order.",
            flag="--corruption",
            short="-c",
            metavar="SPEC",
        ),
    )
    placement: str | None = field(
        default=None,
        metadata=option(
            "Frames to corrupt: everywhere, centre:5%, frame:120 ...", more="By default as each spec says.", metavar="P"
        ),
    )
    segments: Any = field(
        default=None,
        metadata=option(
            "Actions of a single video as (start, end) pairs in seconds, for placements that need them.", python=True
        ),
    )
    truth: str | Path | Truth | None = field(
        default=None,
        metadata=reworded(
            ConvertOptions,
            "truth",
            "Annotations: actions for placements that need them, rates and durations of videos.",
            more="Of a folder only the videos named there are processed; image folders have their rates from there.",
        ),
    )
    video_id: str | None = field(
        default=None, metadata=option("Id of the video; default: its file name.", more="Of a single one.", metavar="ID")
    )
