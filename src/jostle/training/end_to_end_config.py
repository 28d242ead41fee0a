"""Settings of end-to-end detector training, as read from a TOML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from jostle.errors import BadValue
from jostle.training.consistency_config import ConsistencyConfig
from jostle.training.detection_config import LEARN_FROM, check_select
from jostle.training.schedule import OptimiserConfig


@dataclass(frozen=True)
class ClipDropConfig:
    """FrameDrop on pixels: corruption of some frames of a clip before it is cropped.

    Attributes:
        specs: any corruptions; one is drawn for each clip, all as likely.
        severities: severities to draw from for specs without one.
        placement: which frames: `pair`, `each:1`, `centre:5%` ...
        fresh: draw anew in every epoch; otherwise once for all epochs.
    """

    specs: tuple[str, ...] = ("black_frame",)
    severities: tuple[int, ...] = (1,)
    placement: str = "pair"
    fresh: bool = True

    def __post_init__(self) -> None:
        if not self.specs or not self.severities:
            raise BadValue("data.drop: specs and severities must each hold at least one")


@dataclass(frozen=True)
class FramesConfig:
    """Training videos and their augmentation.

    Attributes:
        dataset: a data set for detection, by name.
        root: its folder; `none` for a generated one.
        train: subset to learn from.
        select: subset to choose the best epoch by, or a share of the training videos that is held out for it; 0 keeps
            the last epoch. Never the test set.
        seeds: seeds of a generated data set; all are used for training, and the first for held-out videos.
        drop: corruption of a second copy of each clip, for robust training.
        learn_from: clips that get the detector's own losses: `clean`, `corrupted` or `both`.
        views: clips of each video in a step, and so in an epoch.
        visible: share of an action, or of the clip, that must be seen of it to count.
        mirror: show half of the clips mirrored; only if no class depends on left and right.
        recolour: share of the clips whose colours are changed, brightness, contrast, saturation, hue and their order.
        rotate: degrees by which half of the clips are turned at most, to either side.
        cache: folder of cached pixels; `none` for the default one.
        jobs: processes that read; 0 for one a core.
    """

    dataset: str = "puppets"
    root: str | None = None
    train: str = "training"
    select: str | float = 0.0
    seeds: tuple[int, ...] = (0,)
    drop: ClipDropConfig | None = None
    learn_from: Literal["clean", "corrupted", "both"] = "clean"
    views: int = 1
    visible: float = 0.75
    mirror: bool = False
    recolour: float = 0.0
    rotate: float = 0.0
    cache: str | None = None
    jobs: int = 0

    def __post_init__(self) -> None:
        check_select(self.select, self.train, "training videos")
        if self.learn_from not in LEARN_FROM:
            raise BadValue(f"data: learn_from is one of {', '.join(LEARN_FROM)}, not {self.learn_from!r}")
        if self.learn_from != "clean" and self.drop is None:
            raise BadValue(f"data: learn_from = {self.learn_from!r} needs corrupted clips: set drop")
        if self.views < 1 or self.jobs < 0:
            raise BadValue(f"data: views are from 1 and jobs from 0, got {self.views} and {self.jobs}")
        if not 0 < self.visible <= 1:
            raise BadValue(f"data: visible lies above 0 and is at most 1, got {self.visible}")
        if not 0 <= self.recolour <= 1 or not 0 <= self.rotate <= 180:
            raise BadValue(
                f"data: recolour is a share up to 1 and rotate up to 180 degrees, got {self.recolour} and {self.rotate}"
            )
        if not self.seeds:
            raise BadValue("data: seeds must hold at least one")


@dataclass(frozen=True)
class FrameTrainingConfig:
    """Settings of an end-to-end training run, from frames to segments.

    Attributes:
        task: `end-to-end`.
        detector: registered name of a detector on frames.
        settings: fields of the detector's settings to change.
        data: training data.
        optimiser: optimiser settings.
        backbone_rate: share of the learning rate that the backbone has; 0 leaves it as it is.
        rates: share of the learning rate of other parameters, by a part of their names.
        lesson: weight of AFSD's triplet loss on clips with background moved into an action; 0 disables it.
        consistency: consistency of clean and corrupted clips; a weight of 0 disables it.
        weights: a checkpoint to start from.
        backbone_weights: public checkpoint of the video network, for the backbone alone.
        seed: seed of the initial weights, the order, the clips and the corruptions.
        protocol: how the chosen epoch is scored.
        chosen_by: `average_map`, or the mAP at one threshold, as `map@0.5`.
        score_every: epochs between two scores; the last epoch is always scored.
        precision: `bfloat16` runs the network in half precision on a GPU.
        checkpointed: recompute the backbone in the backward pass instead of storing activations: slower, less memory.
        device: `auto`, `cpu` or `cuda`.
        save_every: seconds between two checkpoints.
        bad_steps: steps in a row whose loss or gradient is not finite, after which the run stops.
        tensorboard: write TensorBoard's files too, if it is installed.
    """

    data: FramesConfig = field(default_factory=FramesConfig)
    task: Literal["end-to-end"] = "end-to-end"
    detector: str = "basictad_puppets"
    settings: Mapping[str, Any] = field(default_factory=dict)
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    backbone_rate: float = 1.0
    rates: Mapping[str, float] = field(default_factory=dict)
    lesson: float = 0.0
    consistency: ConsistencyConfig = field(default_factory=ConsistencyConfig)
    weights: str | None = None
    backbone_weights: str | None = None
    seed: int = 0
    protocol: str = "thumos14"
    chosen_by: str = "average_map"
    score_every: int = 1
    precision: Literal["float32", "bfloat16"] = "float32"
    checkpointed: bool = False
    device: Literal["auto", "cpu", "cuda"] = "auto"
    save_every: float = 300.0
    bad_steps: int = 10
    tensorboard: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.backbone_rate <= 1:
            raise BadValue(f"backbone_rate lies from 0 to 1, got {self.backbone_rate}")
        if not all(type(share) in (int, float) and share > 0 for share in self.rates.values()):
            raise BadValue(f"rates are shares above 0 by a part of a name, got {dict(self.rates)}")
        if self.weights is not None and self.backbone_weights is not None:
            raise BadValue("weights have a backbone already; remove backbone_weights, or weights")
        if self.lesson < 0:
            raise BadValue(f"lesson must not be below 0, got {self.lesson}")
        if self.consistency.selection != "centre":
            raise BadValue("consistency: selection is for detectors of features; here a detector's own positives count")

    @property
    def compares(self) -> bool:
        """Whether the loss includes the consistency of clean and corrupted outputs."""
        return self.data.drop is not None and self.consistency.weight > 0
