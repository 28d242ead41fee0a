"""Option of mending: who says which frames are damaged."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.core.options import Role, option

if TYPE_CHECKING:
    from jostle.mending.inspector import Inspector


@dataclass(frozen=True, kw_only=True, eq=False)
class MendOptions:
    """Mending"""

    mend: str | Path | Inspector | None = field(
        default=None,
        metadata=option(
            "Repair damaged frames before inference; found by jostle, by your weights or, in runs, known.",
            Role.CONDITION,
            more="What they touch is replaced by what lies around it: rows of features, frames, the frames of a clip. "
            "An `Inspector` may find them too; with `known` the benchmark itself says which they are, which is as well "
            "as it could be done. The run remembers it.",
            metavar="BY",
        ),
    )
