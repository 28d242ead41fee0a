"""Diagnosis styles: the thresholds and buckets that DETAD uses for a dataset, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from jostle.core.registry import Registry
from jostle.core.types.columns import Floats
from jostle.errors import BadValue
from jostle.metrics.protocol import thresholds

NO_BUCKET = -1


@dataclass(frozen=True)
class Buckets:
    """Buckets of one characteristic of instances.

    >>> lengths = Buckets("length", (0, 3, 6), ("short", "long"))
    >>> lengths.sort(np.array([0, 3, 3.5, 7, np.nan])).tolist()
    [0, 0, 1, -1, -1]
    """

    characteristic: str  # DETAD's name of it
    # Rising; bucket i holds what lies above `edges[i]` and not above `edges[i + 1]`, the first also what equals
    # `edges[0]`.
    edges: tuple[float, ...]
    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.edges) != len(self.labels) + 1 or any(np.diff(self.edges) <= 0):
            raise BadValue(
                f"buckets of {self.characteristic!r} need rising edges, one more than labels; got {len(self.edges)} "
                f"edges and {len(self.labels)} labels"
            )

    def sort(self, values: Floats) -> npt.NDArray[np.int8]:
        """Return (n,) the bucket of each value, -1 for values that are missing or outside the edges."""
        bucket = np.searchsorted(self.edges, values, side="left") - 1
        bucket[values == self.edges[0]] = 0
        bucket[(bucket >= len(self.labels)) | np.isnan(values)] = NO_BUCKET
        return bucket.astype(np.int8)


@dataclass(frozen=True)
class Style:
    """Settings for diagnosing a dataset."""

    name: str  # value of `--style`
    tious: tuple[float, ...]  # thresholds of temporal overlap
    buckets: tuple[Buckets, ...]  # of the characteristics that are analysed where the ground truth has them
    # What `num-instances` counts where the file does not say: those of the `same class` in the video, as the paper has
    # it, or `all` of the video, as the THUMOS14 file does.
    instances: Literal["same class", "all"]
    summary: str = ""

    def __post_init__(self) -> None:
        if not self.tious or not all(0 < tiou <= 1 for tiou in self.tious):
            raise BadValue(f"style {self.name!r} needs thresholds above 0 and at most 1, got {list(self.tious)}")


_FIFTHS = tuple(
    np.linspace(0, 1, 6).tolist()
)  # as in DETAD; the third edge differs from the literal 0.6 in the last bit
_SIZES = ("XS", "S", "M", "L", "XL")

styles: Registry[Style] = Registry("style")

for _style in (
    Style(
        "activitynet",
        thresholds(0.5, 0.95, 10),
        (
            Buckets("context-size", (-1, 0, 1, 2, 3, 4, 5, 6), ("0", "1", "2", "3", "4", "5", "6")),
            Buckets("context-distance", (-1, 0, 1, 2, 3), ("Inf", "N", "M", "F")),
            Buckets("agreement", _FIFTHS, ("XW", "W", "M", "H", "XH")),
            Buckets("coverage", _FIFTHS, _SIZES),
            Buckets("length", (0, 30, 60, 120, 180, np.inf), _SIZES),
            Buckets("num-instances", (-1, 1, 4, 8, np.inf), _SIZES[:4]),
        ),
        instances="same class",
        summary="ActivityNet: tIoU 0.5 to 0.95, six characteristics where the file has them.",
    ),
    Style(
        "thumos14",
        (0.5,),
        (
            Buckets("coverage", (0, 0.02, 0.04, 0.06, 0.08, 1), _SIZES),
            Buckets("length", (0, 3, 6, 12, 18, np.inf), _SIZES),
            Buckets("num-instances", (-1, 1, 40, 80, np.inf), _SIZES[:4]),
        ),
        instances="all",
        summary="THUMOS14: tIoU 0.5, coverage, length and number of instances.",
    ),
):
    styles.add(_style.name, _style)
