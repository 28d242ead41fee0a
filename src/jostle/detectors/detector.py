"""The base of the detectors and their shelf.

A detector's author writes `forward` (raw outputs), and where they differ `assign`, `loss` and `offsets_at`; `raw` and
`detect` are the same for all: check the features, run the network without gradients, decode.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, final

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from jostle.detectors.blocks.assignment import Actions, Targets, assign
from jostle.detectors.blocks.losses import distance_iou, focal
from jostle.detectors.checkpoints import read_weights
from jostle.detectors.config import DetectorConfig
from jostle.detectors.decoding import find_candidates, in_seconds, suppress, with_video_scores
from jostle.detectors.opentad import is_opentad, opentad_names
from jostle.detectors.outputs import Candidates, Losses, Outputs
from jostle.errors import BadValue, CheckpointError, DataError
from jostle.registry import Registry
from jostle.settings import fit_changes
from jostle.shapes import differences
from jostle.types.segments import Segments

C = TypeVar("C", bound=DetectorConfig)
Array = npt.NDArray[Any]
BUCKET = 384  # steps that compiled sequences are rounded up to
MOMENTUM = 0.9  # of the running number of positives


class Detector(nn.Module, Generic[C]):
    """Features of a video in, scored segments out.

    Args:
        config: sizes and settings, kept as `detector.config`.
    """

    loss_normalizer: Tensor

    def __init__(self, config: C) -> None:
        super().__init__()
        self.config = config
        # State that the originals keep outside of their checkpoints.
        self.register_buffer("loss_normalizer", torch.tensor(config.normaliser), persistent=False)
        self._fast: Callable[..., Outputs] | None = None
        # Several processes that share a batch count their positives together.
        self.positives_of_all: Callable[[Tensor], Tensor] | None = None

    def forward(self, features: Tensor, lengths: Tensor) -> Outputs:
        """Raw outputs of a batch.

        All videos of a batch are treated as padded to one length, that of the longest; up to `max_length` steps this
        is the length each would have alone.

        Args:
            features: (B, C, T) with zeros after the end of a video.
            lengths: (B,) steps of each video, at most T, on the same device.
        """
        raise NotImplementedError

    def padded(self, length: int) -> int:
        """Steps to which the original pads a sequence of `length` steps."""
        raise NotImplementedError

    def assign(self, outputs: Outputs, actions: Actions, *, radius: float | None) -> Targets:
        """What the points should say; `radius` is in strides around an action's centre, None for all of it."""
        return assign(outputs.points, actions, outputs.mask, classes=self.config.classes, radius=radius)

    def loss(self, outputs: Outputs, actions: Actions) -> Losses:
        """Focal loss of the classes and distance-IoU loss of the ends, over the running number of positives.

        In training mode the number moves on by this batch, before it is used.
        """
        targets = self.assign(outputs, actions, radius=self.config.centre_radius)
        normaliser = self.normaliser(targets.positive.sum())
        classes = self.smoothed(targets.classes)
        each = focal(outputs.logits.float(), classes) * outputs.mask[..., None]
        apart = distance_iou(outputs.offsets.float(), targets.offsets)
        regression = torch.where(targets.positive, apart, 0.0).sum() / normaliser
        return self.losses(each.sum() / normaliser, regression, targets)

    def offsets_at(self, outputs: Outputs, video: Tensor, point: Tensor, label: Tensor) -> Tensor:
        """(n, 2) distances to start and end, in strides, at n (video, point, class) triples."""
        return outputs.offsets[video, point]

    def decode(self, outputs: Outputs) -> list[Candidates]:
        """Candidates of each video, before suppression."""
        return find_candidates(outputs, self.config, self.offsets_at)

    def normaliser(self, positives: Tensor) -> Tensor:
        """The running number of positives with this batch in it."""
        if self.positives_of_all is not None:
            positives = self.positives_of_all(positives)
        moved = MOMENTUM * self.loss_normalizer + (1 - MOMENTUM) * positives.clamp(min=1).to(self.loss_normalizer)
        if self.training:
            self.loss_normalizer.copy_(moved.detach())
        return moved

    def smoothed(self, classes: Tensor) -> Tensor:
        """Class targets with a share of them spread over all classes."""
        share = self.config.label_smoothing
        return classes * (1 - share) + share / (classes.shape[-1] + 1)

    def losses(self, classification: Tensor, regression: Tensor, targets: Targets) -> Losses:
        """The parts and their weighted sum."""
        total = classification + self.config.loss_weight * regression
        return Losses(total, classification, regression, targets.positive.sum())

    def every_offset(self, outputs: Outputs) -> Tensor:
        """(B, N, 2), or (B, N, K, 2) where each class has its own: what `raw` shows."""
        return outputs.offsets

    @final
    def raw(self, features: npt.ArrayLike) -> dict[str, list[Array]]:
        """What the network says about one video, level by level, at the lengths the original pads to.

        Args:
            features: (T, C) one row a step.

        Returns:
            `cls` (T_l, K) logits, `offsets` (T_l, 2) or (T_l, K, 2) distances in strides of the level, `mask` (T_l,)
            which points lie inside the video. Outside of it all is zero.
        """
        with torch.inference_mode():
            outputs = self._infer(features)
            columns = {"cls": outputs.logits[0], "offsets": self.every_offset(outputs)[0], "mask": outputs.mask[0]}
        sizes = list(outputs.points.sizes)
        return {
            name: [_filled(x, n) for x, n in zip(torch.split(column.cpu(), sizes), outputs.padded, strict=True)]
            for name, column in columns.items()
        }

    @final
    def candidates(self, features: npt.ArrayLike) -> Candidates:
        """Segments of one video before suppression, on the grid that the network sees."""
        with torch.inference_mode():
            return self.decode(self._infer(features))[0]

    @final
    def detect(
        self,
        features: npt.ArrayLike,
        *,
        fps: float,
        duration: float,
        stride: float = 4,
        window: float = 16,
        video_scores: npt.ArrayLike | None = None,
    ) -> Segments:
        """Segments found in one video, in seconds, best first.

        Args:
            features: (T, C) one row for every `stride` frames.
            fps: frames a second of the video that the features were made of.
            duration: of the video, in seconds.
            stride: frames between two rows.
            window: frames that a row has seen.
            video_scores: (classes,) scores of the whole video by a classifier, for class-agnostic detectors.
        """
        for name, value in (("fps", fps), ("duration", duration), ("stride", stride), ("window", window)):
            if not (np.isfinite(float(value)) and float(value) > 0):
                raise BadValue(f"{name} must be above 0, not {value}")
        found = suppress(self.candidates(features), self.config)
        count = self.config.classes
        if video_scores is not None:
            if count > 1:
                raise BadValue(f"video_scores are for class-agnostic detectors; this one tells {count} classes apart")
            found = with_video_scores(found, video_scores, self.config)
            count = np.asarray(video_scores).size
        if self.config.resize:  # the rows were stretched, so each stands for fewer frames, and sees only those
            rows = len(np.asarray(features))
            stride = window = ((rows - 1) * stride + window) / self.config.max_length
        classes = self.config.class_names or tuple(str(i) for i in range(count))
        if count == 1 and len(self.config.class_names) != 1:
            classes = ("action",)  # proposals, which are of no class in particular
        if len(classes) != count:
            raise BadValue(f"{len(classes)} class_names were given for {count} classes")
        return in_seconds(
            found, fps=float(fps), duration=float(duration), stride=stride, window=window, classes=classes
        )

    @final
    def batch(self, videos: Sequence[npt.ArrayLike]) -> tuple[Tensor, Tensor]:
        """Features (B, C, T) and lengths (B,) on the detector's device, from the rows (T, C) of each video."""
        rows = [torch.from_numpy(self._checked(video)) for video in videos]
        if not rows:
            raise BadValue("a batch needs at least one video")
        features = torch.zeros(len(rows), self.config.input_dim, max(len(x) for x in rows))
        for i, x in enumerate(rows):
            features[i, :, : len(x)] = x.T
        device = self.loss_normalizer.device
        return features.to(device), torch.tensor([len(x) for x in rows], device=device)

    def _infer(self, features: npt.ArrayLike) -> Outputs:
        x, lengths = self.batch([features])
        if self.config.resize:
            x = F.interpolate(x, self.config.max_length, mode="linear", align_corners=False)
            lengths = torch.full_like(lengths, self.config.max_length)
        if self.config.compiled and x.is_cuda:
            # A few lengths instead of any, so that few graphs are compiled. Never beyond the padding: it has a say.
            wanted = min(-(-x.shape[-1] // BUCKET) * BUCKET, self.padded(x.shape[-1]))
            x = F.pad(x, (0, wanted - x.shape[-1]))
            self._fast = self._fast or torch.compile(self.forward, dynamic=False)
        run, training = (self._fast if x.is_cuda else None) or self.forward, self.training
        self.eval()
        try:
            with torch.autocast(x.device.type, torch.bfloat16, enabled=self.config.precision == "bfloat16"):
                return run(x, lengths)
        finally:
            self.train(training)

    def _checked(self, features: npt.ArrayLike) -> npt.NDArray[np.float32]:
        rows = np.asarray(features)
        width = self.config.input_dim
        if rows.dtype.kind != "f":
            raise BadValue(f"features must be floating-point numbers, got {rows.dtype}; convert them to float32")
        if rows.ndim != 2:
            raise BadValue(f"features must be (T, {width}), one row a step, got an array of shape {rows.shape}")
        if rows.shape[1] != width:
            hint = "; transpose them" if rows.shape[0] == width else "; choose the variant that fits the features"
            raise BadValue(f"features: got (T, {rows.shape[1]}), the model takes {width}{hint}")
        if not len(rows):
            raise DataError("features: no rows; the video may be shorter than one window")
        if not np.isfinite(rows).all():
            row = int(np.flatnonzero(~np.isfinite(rows).all(1))[0])
            raise DataError(f"features: row {row} of {len(rows)} holds NaN or infinity; extract the features again")
        made = np.ascontiguousarray(rows, np.float32)
        return made if made.flags.writeable else made.copy()  # tensors cannot be read-only


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


detectors: Registry[Variant] = Registry("detector", "jostle.detectors")


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
        name: a variant such as `actionformer_thumos_i3d`, or `actionformer`, `tridet`, `temporalmaxer`.
        weights: our `.safetensors`, an original's `.pth.tar` (its averaged weights) or OpenTAD's `.pth`, read safely.
            OpenTAD's weights bring its arithmetic along, unless `rules` says otherwise.
        config: fields of the detector's settings to change.

    Raises:
        CheckpointError: the weights do not fit; the message lists the differences.
    """
    variant = detectors[name]
    settings = variant.config()
    config = fit_changes(type(settings), config, where=name)
    tensors = None if weights is None else read_weights(weights)
    if tensors is not None and is_opentad(tensors):
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
        made.loss_normalizer.copy_(normaliser.reshape(()))
    if tensors is not None:
        made.load_state_dict(tensors)
    return made


def _filled(x: Tensor, length: int) -> Array:
    """The rows, with zeros after them up to a length."""
    made = np.zeros((length, *x.shape[1:]), np.bool_ if x.dtype == torch.bool else np.float32)
    made[: len(x)] = x if x.dtype == torch.bool else x.float()
    return made
