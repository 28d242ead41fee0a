"""Result of inspecting a video: the probability that each frame is corrupted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.core.results import Result
from jostle.core.tables import Column, Table
from jostle.core.types.clip import Frame, Times


@dataclass(frozen=True, eq=False)
class Inspection(Result):
    """Result of inspecting a video.

    Attributes:
        probabilities: (T,) probability that each frame is corrupted.
        threshold: probability from which a frame counts as corrupted.
        pts: (T,) presentation times in seconds.
        fps: frames per second.
        causal: whether only past frames were used.
        inspector: name of the inspector.
        fingerprint: of the inspector's weights.
        kinds: (T,) kind of damage of each frame: `clean` where there is none, `unknown` where no rule names it.
        small: thumbnails of some frames, evenly spread, for figures.
        concealed: number of frames that show what the decoder concealed.
        undecodable: number of frames that the file promises and the decoder did not give.
        out: figure that was drawn of it.
    """

    probabilities: npt.NDArray[np.float64]
    threshold: float
    pts: Times
    fps: Fraction
    causal: bool
    inspector: str
    fingerprint: str
    kinds: npt.NDArray[np.str_]
    small: tuple[Frame, ...] = ()
    concealed: int = 0
    undecodable: int = 0
    out: Path | None = None

    @property
    def damaged(self) -> npt.NDArray[np.bool_]:
        """(T,) flags of the frames that count as corrupted."""
        return self.probabilities >= self.threshold

    @property
    def stretches(self) -> list[tuple[int, int]]:
        """First frame and end (exclusive) of each run of corrupted frames."""
        edges = np.flatnonzero(np.diff(np.concatenate([[0], self.damaged.astype(np.int8), [0]])))
        return [(int(lo), int(hi)) for lo, hi in edges.reshape(-1, 2)]

    def tables(self) -> tuple[Table, ...]:
        """Return the stretches of damaged frames."""
        columns = (Column("frames"), Column("seconds"), Column("kind"), Column("probability", "percent"))
        rows = []
        for one in self.to_dict()["stretches"]:
            frames = f"{one['first']}-{one['stop'] - 1}" if one["stop"] - one["first"] > 1 else str(one["first"])
            rows.append((frames, f"{one['start_s']:.2f}-{one['end_s']:.2f}", one["kind"], one["probability"]))
        return (Table("", columns, tuple(rows)),)

    def notes(self) -> tuple[str, ...]:
        """Return how many frames are damaged, and what the decoder says of them."""
        count, total = int(self.damaged.sum()), len(self.probabilities)
        what = "all" if count == total and total else "none" if not count else f"{count}"
        decoder = describe_decoder(self.concealed, self.undecodable)
        return (f"{what} of {total} frames damaged, at a threshold of {self.threshold:.3f}{decoder}",)

    def written(self) -> tuple[Path, ...]:
        """Return the path of the figure."""
        return () if self.out is None else (self.out,)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        end = self.pts + float(1 / self.fps)
        return {
            "format": 1,
            "frames": len(self.probabilities),
            "damaged": int(self.damaged.sum()),
            "concealed": self.concealed,
            "undecodable": self.undecodable,
            "threshold": self.threshold,
            "causal": self.causal,
            "inspector": self.inspector,
            "fingerprint": self.fingerprint,
            "stretches": [
                {
                    "first": lo,
                    "stop": hi,
                    "start_s": float(self.pts[lo]),
                    "end_s": float(end[hi - 1]),
                    "kind": Counter(self.kinds[lo:hi].tolist()).most_common(1)[0][0],
                    "probability": float(self.probabilities[lo:hi].mean()),
                }
                for lo, hi in self.stretches
            ],
            "probabilities": self.probabilities.tolist(),
            "out": None if self.out is None else str(self.out),
        }


def describe_decoder(concealed: int, undecodable: int) -> str:
    """Return what a decoder says of its frames, for the end of a line.

    >>> describe_decoder(0, 2)
    '; 2 more did not decode'
    """
    parts = [f"{concealed} show what the decoder concealed"] if concealed else []
    parts += [f"{undecodable} more did not decode"] if undecodable else []
    return "".join(f"; {part}" for part in parts)
