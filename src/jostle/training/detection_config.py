"""Settings of detector training, on features and end to end from frames, as read from a TOML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jostle.datasets.dataset import datasets
from jostle.errors import BadValue
from jostle.models.loading.names import check_known
from jostle.training.config import RunConfig
from jostle.training.held_out import check_select
from jostle.training.loss import divergences

if TYPE_CHECKING:
    from jostle.features.store import FeatureOrigin, VideoEntry

Form = Literal["released", "paper"]
Precision = Literal["float32", "bfloat16"]
Selection = Literal["centre", "action", "video"]


@dataclass(frozen=True)
class ConsistencyConfig:
    """Settings of the consistency loss.

    Attributes:
        form: `released` compares 1 - tIoU point by point at the positives; `paper` compares the tIoU of the `nearest`
            predictions of each action, chosen separately on both sides.
        selection: points of the released form: near the `centre` of an action as the detector's own targets,
            anywhere in the `action`, or in the whole `video` wherever the action that a point refers to covers it.
        divergence: a registered name: `js` as in the paper, or its alternatives `kl` and `mse`.
        weight: of the term in the loss.
        nearest: K of the paper's form, which the paper does not give.
        normalise: how the K values of the paper's form become a distribution: divided by their `sum`, by `softmax`, or
            `none`. The paper does not say.
        epsilon: values are kept above it, so that no logarithm is infinite; the released program has none.
        reproduce_bugs: repeat three faults of the released program: TriDet's targets lose their centre radius under
            `centre` and `video`, its `video` reads the offsets of class 0 and counts padding, and the running number
            of positives moves twice a step.
    """

    form: Form = "released"
    selection: Selection = "centre"
    divergence: str = "js"
    weight: float = 1.0
    nearest: int = 10
    normalise: Literal["sum", "softmax", "none"] = "sum"
    epsilon: float = 1e-6
    reproduce_bugs: bool = False

    def __post_init__(self) -> None:
        if self.nearest < 1:
            raise BadValue(f"consistency: nearest must be at least 1, got {self.nearest}")
        if not 0 < self.epsilon < 0.1:
            raise BadValue(f"consistency: epsilon lies above 0 and below 0.1, got {self.epsilon}")
        if self.weight < 0:
            raise BadValue(f"consistency: weight must not be below 0, got {self.weight}")


GRID = (4, 16)  # stride and window of the public features of THUMOS14
LEARN_FROM = ("clean", "corrupted", "both")


@dataclass(frozen=True)
class DropConfig:
    """FrameDrop without decoding: frame features are replaced by corrupted ones and windows recomputed.

    Attributes:
        struck: folder of features of the same videos with every frame corrupted, extracted with `--keep-frames`; so is
            `data.features`.
        placement: which frames are taken from there: `pair`, `pair:released`, `each:1` ...
        fresh: draw them anew in every epoch; otherwise once for all epochs, as the released program does.
        extractor: extractor of these features; it must process single frames.
        weights: weights of the extractor; None for the bundled ones.
    """

    struck: str
    placement: str = "pair"
    fresh: bool = True
    extractor: str = "puppet_net"
    weights: str | None = None


@dataclass(frozen=True)
class DataConfig:
    """Location of features and annotations, in the layout of ActionFormer.

    Attributes:
        features: folder of one `<prefix><video id><suffix>` array (T, C) a video.
        truth: ground truth in any known format, with a rate for each video, or `fps` below.
        train: subset to learn from.
        select: subset to choose the best epoch by, or a share of the training videos that is held out for it; 0 keeps
            the last epoch. Never the test set.
        corrupted: a second folder, of the same videos corrupted: then training is robust, by the consistency loss.
        drop: makes the corrupted features during training, instead of `corrupted`.
        learn_from: inputs that get the detector's own losses: `clean`, `corrupted` or `both`. The released program
            learns from clean ones; corrupted ones only enter its consistency.
        views: crops of each video in a step.
        prefix: file name before the video id, such as `v_`.
        suffix: file name after the video id.
        stride: frames between two rows; by default from `features.json`, or else 4.
        window: frames of a row; likewise, or else 16.
        fps: rate of videos whose annotation does not give it.
        crop: least and greatest share of a short video that is kept, drawn anew every epoch.
        visible: share of an action that a crop must show to keep it.
    """

    features: str
    truth: str
    train: str = "validation"
    select: str | float = 0.0
    corrupted: str | None = None
    drop: DropConfig | None = None
    learn_from: Literal["clean", "corrupted", "both"] = "clean"
    views: int = 1
    prefix: str = ""
    suffix: str = ".npy"
    stride: int | None = None
    window: int | None = None
    fps: float | None = None
    crop: tuple[float, ...] = (0.9, 1.0)
    visible: float = 0.5

    def __post_init__(self) -> None:
        check_select(self.select, self.train, "training videos")
        for name in ("stride", "window"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise BadValue(f"data: {name} must be at least 1, got {value}")
        if len(self.crop) != 2 or not 0 < self.crop[0] <= self.crop[1] <= 1:
            raise BadValue(f"data: crop is two shares, the least first, as in [0.9, 1.0]; got {list(self.crop)}")
        if self.corrupted is not None and self.drop is not None:
            raise BadValue("data: corrupted features come from a folder or from drop, not from both; remove one")
        if self.learn_from not in LEARN_FROM:
            raise BadValue(f"data: learn_from is one of {', '.join(LEARN_FROM)}, not {self.learn_from!r}")
        if self.learn_from != "clean" and not self.robust:
            raise BadValue(f"data: learn_from = {self.learn_from!r} needs corrupted features: set corrupted or drop")
        if self.views < 1:
            raise BadValue(f"data: views must be at least 1, got {self.views}")

    @cached_property
    def grid(self) -> tuple[int, int]:
        """Stride and window of the features.

        Raises:
            DataError: if the `features.json` of `jostle extract` is damaged.
        """
        store = self._store
        stride, window = GRID if store is None else (store[0].stride, store[0].window)
        return self.stride or stride, self.window or window

    @cached_property
    def rates(self) -> dict[str, float]:
        """Frames a second on the axis of the windows, by file, from `features.json`."""
        return {} if self._store is None else {entry.file: entry.fps for entry in self._store[1].values()}

    @cached_property
    def _store(self) -> tuple[FeatureOrigin, dict[str, VideoEntry]] | None:
        from jostle.features.store import read_store  # slow to import, and most mistakes in a file are found without it

        return read_store(Path(self.features))

    @property
    def robust(self) -> bool:
        """Whether there are corrupted features beside the clean ones."""
        return self.corrupted is not None or self.drop is not None


@dataclass(frozen=True, kw_only=True)
class TrainingConfig(RunConfig):
    """Settings of a training run of a detector.

    Attributes:
        task: `detection`; another task has another file.
        detector: a registered name.
        settings: fields of the detector's settings to change.
        consistency: of the robust run, where there are corrupted features; a weight of 0 leaves it out.
        weights: a checkpoint to start from.
        seed: of the first weights, the order, the crops and the drops.
        protocol: how the chosen epoch is scored.
        chosen_by: `average_map`, or the mAP at one threshold, as `map@0.5`.
        precision: `bfloat16` runs the network in half precision on a GPU.
    """

    data: DataConfig
    task: Literal["detection"] = "detection"
    detector: str = "actionformer_thumos_i3d"
    settings: Mapping[str, Any] = field(default_factory=dict)
    consistency: ConsistencyConfig = field(default_factory=ConsistencyConfig)
    protocol: str = "thumos14"
    chosen_by: str = "average_map"
    precision: Precision = "float32"

    def check_names(self) -> None:
        """Raise UnknownName unless there are such a detector and divergence."""
        check_known("detectors", self.detector)
        if self.compares:
            divergences.check(self.consistency.divergence)  # imports torch

    @property
    def compares(self) -> bool:
        """Whether the consistency of clean and corrupted answers is part of the loss."""
        return self.data.robust and self.consistency.weight > 0


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


@dataclass(frozen=True, kw_only=True)
class FrameTrainingConfig(RunConfig):
    """Settings of an end-to-end training run, from frames to segments.

    Attributes:
        task: `end-to-end`.
        detector: registered name of a detector on frames.
        settings: fields of the detector's settings to change.
        backbone_rate: share of the learning rate that the backbone has; 0 leaves it as it is.
        rates: share of the learning rate of other parameters, by a part of their names.
        lesson: weight of AFSD's triplet loss on clips with background moved into an action; 0 disables it.
        consistency: consistency of clean and corrupted clips; a weight of 0 disables it.
        weights: a checkpoint to start from.
        backbone_weights: public checkpoint of the video network, for the backbone alone.
        seed: seed of the initial weights, the order, the clips and the corruptions.
        protocol: how the chosen epoch is scored.
        chosen_by: `average_map`, or the mAP at one threshold, as `map@0.5`.
        precision: `bfloat16` runs the network in half precision on a GPU.
        checkpointed: recompute the backbone in the backward pass instead of storing activations: slower, less memory.
    """

    data: FramesConfig = field(default_factory=FramesConfig)
    task: Literal["end-to-end"] = "end-to-end"
    detector: str = "basictad_puppets"
    settings: Mapping[str, Any] = field(default_factory=dict)
    backbone_rate: float = 1.0
    rates: Mapping[str, float] = field(default_factory=dict)
    lesson: float = 0.0
    consistency: ConsistencyConfig = field(default_factory=ConsistencyConfig)
    backbone_weights: str | None = None
    protocol: str = "thumos14"
    chosen_by: str = "average_map"
    precision: Precision = "float32"
    checkpointed: bool = False

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

    def check_names(self) -> None:
        """Raise UnknownName unless there are such a detector, data set and divergence."""
        check_known("detectors", self.detector)
        datasets.check(self.data.dataset)
        if self.compares:
            divergences.check(self.consistency.divergence)  # imports torch

    @property
    def compares(self) -> bool:
        """Whether the loss includes the consistency of clean and corrupted outputs."""
        return self.data.drop is not None and self.consistency.weight > 0
