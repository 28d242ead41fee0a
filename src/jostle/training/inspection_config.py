"""Settings of inspector training, as read from a TOML file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from jostle.core.schema import Bounds
from jostle.errors import BadValue
from jostle.training.config import RunConfig
from jostle.training.schedule import OptimiserConfig

RANDOM = "random"  # weights to start from: none


@dataclass(frozen=True)
class FootageConfig:
    """Training videos; no labels are needed, since jostle corrupts them itself.

    Attributes:
        videos: folder of videos, which are assumed to be clean.
        select: share of the videos held out to choose the epoch and the thresholds.
        piece: frames of a piece of a video.
        pieces: largest number of pieces of a video, evenly spread.
        cache: folder of cached descriptors; `none` for the default one.
        jobs: worker processes; `none` for one a core.
    """

    videos: str
    select: float = 0.15
    piece: int = 160
    pieces: int = 4
    cache: str | None = None
    jobs: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.select < 1:
            raise BadValue(f"data: select is a share from 0 to below 1, got {self.select}")
        if self.piece < 16 or self.pieces < 1:
            raise BadValue(
                f"data: piece must be at least 16 frames and pieces at least 1; got {self.piece} and {self.pieces}"
            )


@dataclass(frozen=True)
class StretchesConfig:
    """Corruption of the training videos.

    Attributes:
        specs: corruptions to draw from, each as likely, so that one named twice is drawn twice as often; empty for
            all that change pictures.
        severities: severities to draw from for specs without one.
        each: corrupted spans in a piece of a film.
        lengths: least and greatest length of a span in frames, drawn log-uniformly.
    """

    specs: tuple[str, ...] = ()
    severities: tuple[int, ...] = (1, 2, 3, 4, 5)
    each: int = 10
    lengths: tuple[int, ...] = (1, 60)

    def __post_init__(self) -> None:
        if not self.severities:
            raise BadValue("strikes: severities must hold at least one")
        if self.each < 1:
            raise BadValue(f"strikes: each must be at least 1, got {self.each}")
        if len(self.lengths) != 2 or not 1 <= self.lengths[0] <= self.lengths[1]:
            raise BadValue(f"strikes: lengths is two numbers, the least first, as in [1, 60]; got {list(self.lengths)}")


@dataclass(frozen=True)
class InspectorOptimiserConfig(OptimiserConfig):
    """Optimiser settings; the defaults suit fine-tuning of the bundled inspector.

    Attributes:
        batch: windows in a step.
    """

    lr: float = 1e-3
    warmup_epochs: int = 1
    epochs: int = 19
    batch: int = 8
    weight_decay: float = 0.01
    average: float = 0.99


@dataclass(frozen=True, kw_only=True)
class InspectionConfig(RunConfig):
    """Settings of a training run of an inspector.

    Attributes:
        task: `inspection`.
        strikes: corruption of the training data.
        window: frames of a window.
        windows: windows of an epoch.
        alarms: false-alarm rate on held-out clean frames, by which the thresholds are chosen.
        weights: `jostle` to start from the bundled inspector, `random`, or a file.
        seed: seed of the films, the initial weights and the windows.
    """

    data: FootageConfig
    task: Literal["inspection"] = "inspection"
    strikes: StretchesConfig = field(default_factory=StretchesConfig)
    optimiser: InspectorOptimiserConfig = field(default_factory=InspectorOptimiserConfig)
    window: int = 128
    windows: int = 400
    alarms: float = 0.0025
    weights: str = "jostle"
    score_every: Annotated[int, Bounds(1)] = 5
    save_every: float = 60.0

    def __post_init__(self) -> None:
        if self.window < 16:
            raise BadValue(f"window is 16 frames at least, got {self.window}")
        if not 0 <= self.alarms < 1:
            raise BadValue(f"alarms is a share from 0 to below 1, got {self.alarms}")
