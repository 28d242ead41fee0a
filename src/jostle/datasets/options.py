"""Options of data: which data set, where it lies, and which part of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from jostle.core.options import Role, option, reworded
from jostle.io.options import AnnotationOptions, RateOptions


@dataclass(frozen=True, kw_only=True, eq=False)
class DataOptions(RateOptions):
    """Data"""

    data: str | Path | None = field(
        default=None,
        metadata=option(
            "Folder with annotations and videos.", Role.SESSION, more="None for a data set that is made.", metavar="DIR"
        ),
    )
    dataset: str | None = field(
        default=None,
        metadata=option(
            "Run the recipe on another data set: a name (`jostle names datasets`), or folder.",
            Role.SAME,
            more="`folder` is for videos of your own. The run then says in its name that it is not the benchmark.",
            metavar="NAME",
        ),
    )
    subset: str | None = field(
        default=None,
        metadata=reworded(
            AnnotationOptions,
            "subset",
            "Subset to use in place of the recipe's; default: the data set's.",
            role=Role.SAME,
        ),
    )
