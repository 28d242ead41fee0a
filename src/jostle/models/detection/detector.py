"""The base of the detectors and their shelf.

A detector's author writes `forward` (raw outputs), `loss` and `decode`. What is the same for all that look at features
is in `FeatureDetector`: check them, run the network without gradients, decode.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from jostle.core.config import fit_changes
from jostle.core.registry import Registry
from jostle.core.state_dict import differences
from jostle.core.types.segments import Segments
from jostle.errors import BadValue, CheckpointError
from jostle.models.checkpoints import read_weights
from jostle.models.detection.blocks.assignment import Actions
from jostle.models.detection.config import DetectorConfig
from jostle.models.detection.decoding import with_video_scores
from jostle.models.detection.opentad import is_opentad, opentad_names
from jostle.models.detection.outputs import Candidates, Losses

C = TypeVar("C", bound=DetectorConfig)


class Detector(nn.Module, Generic[C]):
    """A video in, scored segments out.

    Args:
        config: sizes and settings, kept as `detector.config`.

    Attributes:
        looks_at: what it is given of a video: its `features` or its `frames`.
        known_from_opentad: whether weights that OpenTAD saved fit it.
        detect: from what it is given to segments in seconds, best first.
    """

    looks_at: ClassVar[Literal["features", "frames"]]
    known_from_opentad: ClassVar[bool] = False
    detect: Callable[..., Segments]

    def __init__(self, config: C) -> None:
        super().__init__()
        self.config = config
        # Several processes that share a batch count together: their losses are shares of that of the whole batch.
        self.positives_of_all: Callable[[Tensor], Tensor] | None = None

    def loss(self, outputs: Any, actions: Actions) -> Losses:
        """What the raw outputs of a batch cost."""
        raise NotImplementedError

    def decode(self, outputs: Any) -> list[Candidates]:
        """Candidates of each video."""
        raise NotImplementedError

    @classmethod
    def own_names(cls, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The tensors of a public checkpoint under the names that they have here."""
        return dict(weights)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def counted(self, count: Tensor) -> Tensor:
        """A number of this batch, over all processes that share it."""
        return count if self.positives_of_all is None else self.positives_of_all(count)

    def infer(self, run: Callable[..., Any], *inputs: Tensor) -> Any:
        """What `run` makes of the inputs as in evaluation, in the precision that the settings ask for."""
        training = self.training
        if training:  # to go through all modules takes as long as some of them take to compute
            self.eval()
        try:
            with torch.autocast(inputs[0].device.type, torch.bfloat16, enabled=self.config.precision == "bfloat16"):
                return run(*inputs)
        finally:
            if training:
                self.train()

    def named(self, found: Candidates, video_scores: npt.ArrayLike | None = None) -> tuple[Candidates, tuple[str, ...]]:
        """What was found, with the classes of the whole video where a classifier gave them, and all class names.

        Raises:
            BadValue: if scores or names do not fit the detector's classes.
        """
        count = self.config.classes
        if video_scores is not None:
            if count > 1:
                raise BadValue(f"video_scores are for class-agnostic detectors; this one tells {count} classes apart")
            found = with_video_scores(found, video_scores, self.config)
            count = np.asarray(video_scores).size
        classes = self.config.class_names or tuple(str(i) for i in range(count))
        if count == 1 and len(self.config.class_names) != 1:
            classes = ("action",)  # proposals, which are of no class in particular
        if len(classes) != count:
            raise BadValue(f"{len(classes)} class_names were given for {count} classes")
        return found, classes


def need_above_zero(**facts: float) -> None:
    """Raise unless every number is finite and above 0."""
    for name, value in facts.items():
        if not (np.isfinite(float(value)) and float(value) > 0):
            raise BadValue(f"{name} must be above 0, not {value}")


@dataclass(frozen=True)
class Variant:
    """One named detector.

    Attributes:
        model: the network.
        config: makes the settings.
        summary: what it is for, in a sentence.
    """

    name: str
    model: type[Detector[Any]]
    config: Callable[[], DetectorConfig]
    summary: str


detectors: Registry[Variant] = Registry("detector", "jostle.models.detection")


def detector(model: type[Detector[C]]) -> Callable[[Callable[[], C]], Callable[[], C]]:
    """Register the decorated function, which gives the settings of a variant of `model`, under its own name."""

    def register(function: Callable[[], C]) -> Callable[[], C]:
        summary = (function.__doc__ or "").strip().split("\n\n")[0].replace("\n    ", " ")
        detectors.add(function.__name__, Variant(function.__name__, model, function, summary))
        return function

    return register


def load_detector(name: str, *, weights: str | os.PathLike[str] | None = None, **config: Any) -> Detector[Any]:
    """A detector by name, ready for inference.

    Args:
        name: a variant such as `actionformer_thumos_i3d`, or `actionformer`, `tridet`, `temporalmaxer`, `vsgn`, `afsd`,
            `basictad`, `e2e_tad`.
        weights: our `.safetensors`, an original's `.pth.tar` (its averaged weights, where it has some) or OpenTAD's
            `.pth`, read safely. OpenTAD's weights bring its arithmetic along, unless `rules` says otherwise.
        config: fields of the detector's settings to change.

    Raises:
        CheckpointError: the weights do not fit; the message lists the differences.
    """
    variant = detectors[name]
    settings = variant.config()
    config = fit_changes(type(settings), config, where=name)
    tensors = None if weights is None else variant.model.own_names(read_weights(weights))
    if tensors is not None and is_opentad(tensors):
        if not variant.model.known_from_opentad:
            raise CheckpointError(
                f"{weights}: OpenTAD's {variant.model.__name__} is another network than the original, which this is; "
                "give weights of the original's program"
            )
        tensors = opentad_names(tensors)
        config.setdefault("rules", "opentad")
    settings = dataclasses.replace(settings, **config)
    normaliser = None
    if tensors is not None:
        normaliser = tensors.pop("loss_normalizer", None)
        # Settings may come from the file as well, so shapes are compared before room is made for them.
        with torch.device("meta"):
            expected = {key: tuple(value.shape) for key, value in variant.model(settings).state_dict().items()}
        differing = differences(expected, tensors)
        if differing:
            raise CheckpointError(f"{weights}: the weights do not fit {name}:\n{differing}")
    made = variant.model(settings).eval()
    if normaliser is not None:
        made.get_buffer("loss_normalizer").copy_(normaliser.reshape(()))
    if tensors is not None:
        made.load_state_dict(tensors)
    return made
