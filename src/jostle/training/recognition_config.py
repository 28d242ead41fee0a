"""Settings of recogniser training, as read from a TOML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from jostle.core.plugins import is_import_path
from jostle.datasets.dataset import datasets
from jostle.errors import BadValue
from jostle.models.loading.names import check_known
from jostle.training.config import RunConfig
from jostle.training.detection_config import Precision
from jostle.training.held_out import check_select
from jostle.training.loss import losses
from jostle.training.schedule import OptimiserConfig


@dataclass(frozen=True)
class ClipsConfig:
    """Training clips and their augmentation.

    Attributes:
        dataset: a data set for recognition, or of frames, by name.
        root: its folder; `none` for a generated one.
        train: subset to learn from.
        select: subset to choose the best epoch by, or a share of the clips that is held out for it; 0 keeps the last
            epoch. Never the test set.
        classes: only clips of these classes are learned from, numbered in this order; empty for all of the data set.
        seeds: seeds of a generated data set; all are used for training, and the first for held-out clips.
        span: least and greatest share of a clip's length to use, drawn anew every epoch.
        shift: largest move of the picture, as a share of its side.
        mirror: show half of the clips mirrored; only where no class depends on left and right.
        k: of a data set of frames, how many on either side of an anchor belong to its set.
        denser: stored frames of a clip for each that is used, so that every epoch can use other ones.
        cache: folder of cached clips; `none` for the default one.
        jobs: processes that read and corrupt; 0 for one a core.
    """

    dataset: str = "puppets-trimmed"
    root: str | None = None
    train: str = "train"
    select: str | float = "val"
    classes: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0,)
    span: tuple[float, ...] = (0.7, 1.0)
    shift: float = 0.07
    mirror: bool = False
    k: int = 10
    denser: int = 2
    cache: str | None = None
    jobs: int = 0

    def __post_init__(self) -> None:
        check_select(self.select, self.train, "clips")
        if len(self.span) != 2 or not 0 < self.span[0] <= self.span[1] <= 1:
            raise BadValue(f"data: span is two shares, the least first, as in [0.7, 1.0]; got {list(self.span)}")
        if not 0 <= self.shift < 0.5:
            raise BadValue(f"data: shift lies from 0 to below 0.5, got {self.shift}")
        if self.denser < 1:
            raise BadValue(f"data: denser must be at least 1, got {self.denser}")
        if self.k < 0:
            raise BadValue(f"data: k must not be below 0, got {self.k}")
        if len(set(self.classes)) < len(self.classes) or len(self.classes) == 1:
            raise BadValue(f"data: classes are at least two, each once; got {', '.join(self.classes)}")
        if not self.seeds:
            raise BadValue("data: seeds must hold at least one")
        if self.jobs < 0:
            raise BadValue(f"data: jobs must not be below 0, got {self.jobs}")


@dataclass(frozen=True)
class CorruptionsConfig:
    """Corruptions in training; some versions of each clip are made once, before the first step.

    Attributes:
        specs: any corruptions; one is drawn for each version of a clip, all as likely.
        severities: severities to draw from for specs without one.
        share: chance that a clip is corrupted.
        draws: corrupted versions of each clip.
    """

    specs: tuple[str, ...] = ()
    severities: tuple[int, ...] = (1, 2, 3)
    share: float = 0.75
    draws: int = 4

    def __post_init__(self) -> None:
        if self.specs and not self.severities:
            raise BadValue("corruptions: severities must hold at least one")
        if not 0 <= self.share <= 1:
            raise BadValue(f"corruptions: share lies from 0 to 1, got {self.share}")
        if self.draws < 1:
            raise BadValue(f"corruptions: draws must be at least 1, got {self.draws}")

    @property
    def versions(self) -> int:
        """Number of corrupted versions of each clip."""
        return self.draws if self.specs and self.share else 0


@dataclass(frozen=True)
class NoiseConfig:
    """Gaussian noise on every pixel, drawn anew in every step and not clipped (Yi et al., 2021).

    Attributes:
        std: standard deviation, where pixels lie from 0 to 1.
        share: chance that a clip gets it.
    """

    std: float = 0.0
    share: float = 1.0

    def __post_init__(self) -> None:
        if self.std < 0 or not 0 <= self.share <= 1:
            raise BadValue(f"noise: std must not be below 0 and share lies from 0 to 1; got {self.std}, {self.share}")


@dataclass(frozen=True)
class PatternsConfig:
    """Clips mixed with generated patterns (after PixMix, Hendrycks et al., 2022); one pattern for a whole clip.

    Attributes:
        share: chance that a clip is mixed.
        rounds: at most so many mixings, one after another.
        strength: how weak a mixing is: the higher, the more of the clip is left.
        count: patterns there are.
    """

    share: float = 0.0
    rounds: int = 4
    strength: float = 3.0
    count: int = 64

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise BadValue(f"patterns: share lies from 0 to 1, got {self.share}")
        if self.rounds < 1 or self.count < 1 or self.strength <= 0:
            raise BadValue("patterns: rounds and count must be at least 1, and strength above 0")


@dataclass(frozen=True)
class RecogniserOptimiserConfig(OptimiserConfig):
    """Optimiser settings; the defaults are those of jostle's small recognisers.

    Attributes:
        batch: clips in a step.
    """

    lr: float = 2e-3
    warmup_epochs: int = 3
    epochs: int = 37
    batch: int = 32
    average: float = 0.99


@dataclass(frozen=True, kw_only=True)
class RecognitionConfig(RunConfig):
    """Settings of a training run of a recogniser.

    Attributes:
        task: `recognition`.
        recogniser: a registered name whose network is a torch module.
        model: a network of your own instead, `package.module:attribute`: a `torch.nn.Module` or a function that makes
            one, which is given the number of classes if it takes an argument.
        input: fields of its `InputSpec` to change; of a network that has no `spec`, `frames` and `size` at least.
        corruptions: met in training.
        noise: likewise.
        patterns: likewise.
        loss: a registered name: `own` learns from each clip, of sets of frames from the anchor; `all` from every frame
            of a set alike; `worst` from the one whose loss is largest, the pm-k loss of Shankar et al. (2021).
        smoothing: of the labels.
        weights: a file to start from, or `clean` or `robust` where such come with jostle; `none` to start from
            chance. Where it knows other classes, only the last layer is begun anew.
        frozen_norms: keep the means and variances of batch norms as the weights have them, as is common where batches
            are small; their scales are learned on.
        precision: `bfloat16` runs the network in half precision on a GPU.
    """

    data: ClipsConfig = field(default_factory=ClipsConfig)
    task: Literal["recognition"] = "recognition"
    recogniser: str = "puppet_r2plus1d"
    model: str | None = None
    input: Mapping[str, Any] = field(default_factory=dict)
    corruptions: CorruptionsConfig = field(default_factory=CorruptionsConfig)
    noise: NoiseConfig = field(default_factory=NoiseConfig)
    patterns: PatternsConfig = field(default_factory=PatternsConfig)
    optimiser: RecogniserOptimiserConfig = field(default_factory=RecogniserOptimiserConfig)
    loss: str = "own"
    smoothing: float = 0.1
    frozen_norms: bool = False
    precision: Precision = "float32"

    def __post_init__(self) -> None:
        if not 0 <= self.smoothing < 1:
            raise BadValue(f"smoothing lies from 0 to below 1, got {self.smoothing}")
        if self.model is not None and not is_import_path(self.model):
            raise BadValue(f"model is package.module:attribute, a network of your own, not {self.model!r}; a "
                           "registered one is named by recogniser")  # fmt: skip

        if self.frozen_norms and self.weights is None and self.model is None:
            raise BadValue("frozen_norms keeps what the batch norms of weights know: give weights to start from")

    def check_names(self) -> None:
        """Raise UnknownName unless there are such a recogniser, data set and loss."""
        if self.model is None:
            check_known("models", self.recogniser)
        datasets.check(self.data.dataset)
        losses.check(self.loss)  # imports torch

    @property
    def trained(self) -> str:
        """Name or import path of the model."""
        return self.model or self.recogniser
