"""Options of files: how videos are read, and what is written over."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from jostle.core.options import Role, option, reworded

if TYPE_CHECKING:
    from jostle.core.types.truth import Truth


@dataclass(frozen=True, kw_only=True, eq=False)
class RateOptions:
    """Images"""

    fps: Fraction | float | None = field(
        default=None,
        metadata=option("Frame rate of image folders that do not state it; default: 30.", Role.SAME),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class VideoOptions(RateOptions):
    """Video"""

    source: str | Path = field(
        kw_only=False, metadata=option("Video file, address, or folder of images.", metavar="IN")
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class AnnotationOptions:
    """Files"""

    subset: str | None = field(default=None, metadata=option("Subset of the ground truth.", metavar="S"))
    fix: bool = field(default=False, metadata=option("Drop bad entries and count them instead of refusing the file."))


@dataclass(frozen=True, kw_only=True, eq=False)
class ConvertOptions(AnnotationOptions):
    """Conversion"""

    source: str | Path = field(
        kw_only=False, metadata=reworded(VideoOptions, "source", "File in any supported format.")
    )
    target: str | Path = field(
        kw_only=False, metadata=option("File to write; its ending selects the format.", metavar="OUT")
    )
    to: str | None = field(default=None, metadata=option("Format, if the ending is ambiguous.", metavar="FORMAT"))
    truth: str | Path | Truth | None = field(
        default=None,
        metadata=option("Ground truth, for names or numbers of the classes of predictions.", metavar="GT"),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class OutOptions:
    """Output"""

    out: str | Path = field(metadata=option("File or folder to write.", flag="--out", short="-o", metavar="OUT"))


@dataclass(frozen=True, kw_only=True, eq=False)
class OverwriteOptions:
    """Output"""

    overwrite: bool = field(
        default=False,
        metadata=option("Replace the output if it exists; features also if they were made with other settings."),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class LosslessOptions:
    """Output"""

    lossless: bool = field(
        default=False,
        metadata=option(
            "Keep every pixel: FFV1 in .mkv, or PNG.", more="Otherwise H.264, and JPEG for folders of JPEG."
        ),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class DamagedInputOptions:
    """Damaged input"""

    strict: bool = field(default=False, metadata=option("Refuse a damaged input."))
    on_missing: Literal["error", "drop", "hold"] = field(
        default="drop", metadata=option("Handling of frames that cannot be decoded.")
    )
