"""Options of copies: which corrupted videos of a benchmark are written, where, and in which layouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jostle.core.options import option, reworded
from jostle.core.progress import ProgressOptions
from jostle.datasets.options import DataOptions
from jostle.evaluation.config import BenchmarkOptions, CellOptions
from jostle.io.options import LosslessOptions, OutOptions
from jostle.parallel.options import JobOptions


@dataclass(frozen=True, kw_only=True, eq=False)
class CopyOptions(BenchmarkOptions, DataOptions, CellOptions, LosslessOptions):
    """Options of what a set of corrupted copies holds, as requested."""


@dataclass(frozen=True, kw_only=True, eq=False)
class BuildConfig(CopyOptions, JobOptions, ProgressOptions):
    """Copies"""

    out: str | Path = field(metadata=reworded(OutOptions, "out", "Root folder of the copies.", metavar="DIR"))
    layouts: Sequence[str] = field(
        default=(),
        metadata=option(
            "Also write a layout for other programs: hub (metadata.jsonl and a card), webdataset (tar files) or "
            "croissant (metadata); may be repeated.",
            flag="--layout",
            metavar="NAME",
        ),
    )
