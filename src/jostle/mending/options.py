"""Options of mending: who says which frames are damaged, and what becomes of a live stream."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from jostle.core.options import Role, option, reworded
from jostle.io.options import OutOptions, OverwriteOptions, RateOptions, VideoOptions

if TYPE_CHECKING:
    from jostle.corruptions.engine.damage_finder import DamageFinder
    from jostle.mending.inspection import Inspector


@dataclass(frozen=True, kw_only=True, eq=False)
class MendOptions:
    """Mending"""

    mend: str | Path | Inspector | DamageFinder | None = field(
        default=None,
        metadata=option(
            "Repair damaged frames before inference; found by jostle, weights, a damage finder or, in runs, known.",
            Role.CONDITION,
            more="What they touch is replaced by what lies around it: rows of features, frames, the frames of a clip. "
            "An `Inspector` or a `DamageFinder` may find them too; with `known` the benchmark itself says which they "
            "are, which is as well as it could be done. The run remembers it.",
            metavar="BY",
        ),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class InspectorOptions:
    """Inspector"""

    inspector: str | Path | Inspector | DamageFinder = field(
        default="jostle",
        metadata=option(
            "Inspector: jostle, weights of `jostle train`, or a damage finder (`jostle names damagefinders`).",
            more="Or an `Inspector`, or a `DamageFinder`.",
            metavar="F",
        ),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class ThresholdOptions(InspectorOptions):
    """Inspector"""

    threshold: float | None = field(
        default=None, metadata=option("Least probability of damage; default: the inspector's.", least=0, most=1)
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class WatchOptions(InspectorOptions, OverwriteOptions):
    """Stream"""

    inspector: str | Path | Inspector = field(
        default="jostle",
        metadata=reworded(
            InspectorOptions, "inspector", "Inspector: jostle, or weights of `jostle train`.", more="Or an `Inspector`."
        ),
    )
    source: str = field(
        kw_only=False,
        metadata=reworded(
            VideoOptions,
            "source",
            "A file, - for y4m on stdin, /dev/video0, or rtsp://, udp://, http:// ...",
            metavar="SOURCE",
        ),
    )
    lookahead: int = field(
        default=5,
        metadata=option("Frames that a verdict may wait for; more are more accurate.", metavar="N", least=0),
    )
    until_damaged: bool = field(default=False, metadata=option("End at the first damaged frame, with exit code 9."))
    mend: bool = field(
        default=False,
        metadata=option(
            "Replace damaged frames in the output.",
            more="Where there is nothing good to show, or for too long, the frame written is black.",
        ),
    )
    out: str | None = field(
        default=None,
        metadata=reworded(
            OutOptions,
            "out",
            "Output stream: - for y4m on stdout, or a .y4m file.",
            more="Raw frames if the source is raw.",
        ),
    )
    how: Literal["hold", "blend", "mark"] = field(
        default="hold",
        metadata=option("Hold the last good frame, blend to the next one, or mark frames in their headers."),
    )
    hold_limit: float = field(
        default=5.0,
        metadata=option("Longest hold in seconds; after it frames are black.", metavar="S", least=0),
    )
    drop: bool = field(
        default=False,
        metadata=option(
            "Drop frames when the reader of the output is slow.", more="Otherwise everything waits for it."
        ),
    )
    size: tuple[int, int] | None = field(default=None, metadata=option("Width and height of raw frames.", python=True))
    pixel_format: str | None = field(
        default=None,
        metadata=option("Pixel format of raw frames: yuv420p, rgb24 ...", flag="--pix-fmt", metavar="F"),
    )
    fps: Fraction | float | None = field(
        default=None, metadata=reworded(RateOptions, "fps", "Rate of raw frames; default: 30.")
    )
    retries: int | None = field(
        default=None,
        metadata=option("Attempts to reach an address again; default: no limit.", metavar="N", least=0),
    )
