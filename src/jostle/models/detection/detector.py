"""Base class and registry of detectors.

A detector's author writes `forward` (raw outputs), `loss` and `decode`. What is the same for all that look at features
is in `FeatureDetector`: check them, run the network without gradients, decode.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Generic, Literal, TypeVar, final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from jostle.core.registry import Registry
from jostle.core.settings import convert_settings
from jostle.core.state_dict import describe_mismatch
from jostle.core.types.segments import Segments
from jostle.errors import BadValue, CheckpointError
from jostle.models.checkpoints import Uninitialised, read_weights
from jostle.models.detection.blocks.assignment import Actions
from jostle.models.detection.config import DetectorConfig
from jostle.models.detection.outputs import Candidates, Losses, with_video_scores
from jostle.models.finite import OutputCheck, check_weights

_RENAMED = (
    (r"^projection\.embed\.(\d+)\.conv\.", r"backbone.embd.\1.conv."),
    (r"^projection\.embed\.(\d+)\.norm\.", r"backbone.embd_norm.\1."),
    (r"^projection\.", r"backbone."),
    (r"^rpn_head\.scale\.", r"reg_head.scale."),
    (r"^rpn_head\.reg_head\.", r"reg_head.offset_head.conv."),
    (r"^rpn_head\.reg_convs\.(\d+)\.conv\.", r"reg_head.head.\1.conv."),
    (r"^rpn_head\.reg_convs\.(\d+)\.norm\.", r"reg_head.norm.\1."),
    (r"^rpn_head\.cls_(start|end)_head\.", r"\1_head.cls_head.conv."),
    (r"^rpn_head\.cls_(start|end)_convs\.(\d+)\.conv\.", r"\1_head.head.\2.conv."),
    (r"^rpn_head\.cls_(start|end)_convs\.(\d+)\.norm\.", r"\1_head.norm.\2."),
    (r"^rpn_head\.cls_head\.", r"cls_head.cls_head.conv."),
    (r"^rpn_head\.cls_convs\.(\d+)\.conv\.", r"cls_head.head.\1.conv."),
    (r"^rpn_head\.cls_convs\.(\d+)\.norm\.", r"cls_head.norm.\1."),
    (r"^rpn_head\.loss_normalizer$", r"loss_normalizer"),
)
_CHANNEL_NORM = re.compile(r"(^|\.)(ln\d?|\w+_norm|\w*norms?\.\d+|\w+_norm\.\d+)\.(weight|bias)$")


def is_opentad(weights: Mapping[str, Tensor]) -> bool:
    """Whether the names are OpenTAD's."""
    return any(name.startswith(("rpn_head.", "projection.")) for name in weights)


def opentad_names(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Rename OpenTAD's weights, and reshape channel norms to (1, C, 1), as in the originals.

    >>> import torch
    >>> {k: tuple(v.shape) for k, v in opentad_names({"projection.embed.0.norm.bias": torch.zeros(4)}).items()}
    {'backbone.embd_norm.0.bias': (1, 4, 1)}
    """
    tensors = {}
    for name, tensor in weights.items():
        for pattern, ours in _RENAMED:
            renamed, hits = re.subn(pattern, ours, name)
            if hits:
                name = renamed
                break
        if tensor.ndim == 1 and _CHANNEL_NORM.search(name):
            tensor = tensor.view(1, -1, 1)
        tensors[name] = tensor
    return tensors


C = TypeVar("C", bound=DetectorConfig)


class Detector(nn.Module, Generic[C]):
    """Base class of detectors from videos to scored segments.

    Args:
        config: sizes and settings, kept as `detector.config`.

    Attributes:
        looks_at: its input: the `features` of a video, or its `frames`.
        known_from_opentad: whether it can load weights saved by OpenTAD.
        detect: returns segments in seconds for the input, best first.
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
        """Compute the losses of the raw outputs of a batch."""
        raise NotImplementedError

    def decode(self, outputs: Any) -> list[Candidates]:
        """Decode the candidates of each video."""
        raise NotImplementedError

    @final
    def decode_finite(self, *outputs: Any, count: int = 1) -> list[Candidates]:
        """Decode the candidates of the first `count` videos of a batch, if all of their raw outputs are finite.

        Args:
            outputs: arguments of `decode`.

        Raises:
            NonFiniteOutput: F121, with the name of the output; NaN would fail every comparison with a threshold.
        """
        checks = [OutputCheck({k: x for k, x in vars(part).items() if isinstance(x, Tensor)}) for part in outputs]
        try:
            return self.decode(*outputs)[:count]
        finally:  # if decoding fails too, this is the reason
            for check in checks:
                check.finish(type(self).__name__, count)

    @classmethod
    def own_names(cls, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Rename the tensors of a public checkpoint to the names of this network."""
        return dict(weights)

    @property
    def device(self) -> torch.device:
        """Device that holds the weights."""
        return next(self.parameters()).device

    def counted(self, count: Tensor) -> Tensor:
        """Sum a count over all processes that share the batch."""
        return count if self.positives_of_all is None else self.positives_of_all(count)

    def infer(self, run: Callable[..., Any], *inputs: Tensor) -> Any:
        """Run a function in evaluation mode, with the precision of the settings."""
        training = self.training
        if training:  # to go through all modules takes as long as some of them take to compute
            self.eval()
        try:
            with torch.autocast(inputs[0].device.type, torch.bfloat16, enabled=self.config.precision == "bfloat16"):
                return run(*inputs)
        finally:
            if training:
                self.train()

    def named(
        self, candidates: Candidates, video_scores: npt.ArrayLike | None = None
    ) -> tuple[Candidates, tuple[str, ...]]:
        """Return candidates and all class names, with classes of the whole video if scores are given.

        Raises:
            BadValue: if scores or names do not fit the detector's classes.
        """
        count = self.config.classes
        if video_scores is not None:
            if count > 1:
                raise BadValue(f"video_scores are for class-agnostic detectors; this one has {count} classes")
            candidates = with_video_scores(candidates, video_scores, self.config)
            count = np.asarray(video_scores).size
        classes = self.config.class_names or tuple(str(i) for i in range(count))
        if count == 1 and len(self.config.class_names) != 1:
            classes = ("action",)  # proposals, which are of no class in particular
        if len(classes) != count:
            raise BadValue(f"{len(classes)} class_names were given for {count} classes")
        return candidates, classes


def need_above_zero(**facts: float) -> None:
    """Raise unless every number is finite and above 0."""
    for name, value in facts.items():
        if not (np.isfinite(float(value)) and float(value) > 0):
            raise BadValue(f"{name} must be above 0, not {value}")


@dataclass(frozen=True)
class Variant:
    """Named variant of a detector."""

    name: str
    model: type[Detector[Any]]  # the network
    config: Callable[[], DetectorConfig]  # makes the settings
    summary: str  # what it is for, in a sentence


detectors: Registry[Variant] = Registry("detector", "jostle.models.detection")


def detector(model: type[Detector[C]]) -> Callable[[Callable[[], C]], Callable[[], C]]:
    """Register the decorated function, which returns the settings of a variant of `model`, under its name."""

    def register(function: Callable[[], C]) -> Callable[[], C]:
        summary = (function.__doc__ or "").strip().split("\n\n")[0].replace("\n    ", " ")
        detectors.add(function.__name__, Variant(function.__name__, model, function, summary))
        return function

    return register


def detector_variants(model: type[Detector[C]], variants: Mapping[str, tuple[str, C]]) -> None:
    """Register variants of `model` under their names: what each is for, in a sentence, and its settings."""
    for name, (summary, config) in variants.items():
        detectors.add(name, Variant(name, model, partial(dataclasses.replace, config), summary))


def make_detector(name: str, *, weights: str | os.PathLike[str] | None = None, **config: Any) -> Detector[Any]:
    """Build a registered detector, ready for inference, with weights in their own layout and its own settings.

    Args:
        name: a variant such as `actionformer_thumos_i3d`, or `actionformer`, `tridet`, `temporalmaxer`, `vsgn`, `afsd`,
            `basictad`, `e2e_tad`.
        weights: our `.safetensors`, an original's `.pth.tar` (its averaged weights, where it has some) or OpenTAD's
            `.pth`, read safely. OpenTAD's weights bring its arithmetic along, unless `rules` says otherwise.
        config: fields of the detector's settings to change.

    Raises:
        CheckpointError: the weights do not fit; the message lists the differences. F120 if one is not finite.
    """
    variant = detectors[name]
    settings = variant.config()
    config = convert_settings(type(settings), config, where=name)
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
        with torch.device("meta"), Uninitialised():
            expected = {key: tuple(value.shape) for key, value in variant.model(settings).state_dict().items()}
        differing = describe_mismatch(expected, tensors)
        if differing:
            raise CheckpointError(f"{weights}: the weights do not fit {name}:\n{differing}")
    with nullcontext() if tensors is None else Uninitialised():
        instance = variant.model(settings).eval()
    if normaliser is not None:
        instance.get_buffer("loss_normalizer").copy_(normaliser.reshape(()))
    if tensors is not None:
        instance.load_state_dict(tensors)
        check_weights(instance, str(weights))
    return instance
