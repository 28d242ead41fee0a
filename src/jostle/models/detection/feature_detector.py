"""Bases of feature detectors, which process long videos window by window, and of those with points on a pyramid."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, TypeVar, final

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from jostle.core.cuda import GraphReplays, launch_turn, network_stream, wait_for_networks
from jostle.core.types.segments import Segments
from jostle.errors import BadValue, DataError
from jostle.models.detection.blocks.assignment import Actions, Targets, assign, distance_iou, focal
from jostle.models.detection.blocks.levels import Row, masked_levels
from jostle.models.detection.blocks.pyramid import KERNEL, ClassTower, Embedding, Neck, OffsetTower, Points
from jostle.models.detection.config import DetectorConfig, PointConfig
from jostle.models.detection.detector import Detector, need_above_zero
from jostle.models.detection.outputs import Candidates, Losses, Outputs, find_candidates, in_seconds, suppress
from jostle.models.devices import inference_mode

C = TypeVar("C", bound=DetectorConfig)
H = TypeVar("H", Outputs, Points)
Array = npt.NDArray[Any]
# Videos go through a network in batches of one size, filled up where there are fewer, so that company does not change
# the bits. On a GPU it takes as long to start the work for one as for several.
LARGE_VIDEOS_AT_ONCE, SMALL_VIDEOS_AT_ONCE = 4, 16
SMALL_VIDEO = 2**17  # numbers in the features of a video


class FeatureDetector(Detector[C]):
    """Base class of detectors from features to scored segments.

    Attributes:
        row_centre: where in a row of features its place on the grid is: 0 where row g stands at g, 0.5 where it reaches
            from g to g + 1.
        aligned_ends: whether stretching keeps the first and the last row as they are.
        cuts_at_edges: whether actions that training crops are cut at the edge of the crop, or half a window beyond.
    """

    looks_at: ClassVar[Literal["features", "frames"]] = "features"
    row_centre: ClassVar[float] = 0.0
    aligned_ends: ClassVar[bool] = False
    cuts_at_edges: ClassVar[bool] = False

    def forward(self, features: Tensor, lengths: Tensor) -> Outputs:
        """Return the raw outputs of a batch.

        All videos of a batch are treated as padded to one length.

        Args:
            features: (B, C, T) with zeros after the end of a video.
            lengths: (B,) steps of each video, at most T, on the same device.
        """
        raise NotImplementedError

    def place_actions(self, outputs: Outputs, actions: Actions) -> Actions:
        """Map actions to the grid of the outputs; the feature grid by default."""
        return actions

    def assign(self, outputs: Outputs, actions: Actions, *, radius: float | None) -> Targets:
        """Return the targets of points for placed actions; `radius` in strides, None for whole actions."""
        raise NotImplementedError

    def offsets_at(self, outputs: Outputs, video: Tensor, point: Tensor, label: Tensor) -> Tensor:
        """Return (n, 2) distances to start and end, in strides, at n (video, point, class) triples."""
        return outputs.offsets[video, point]

    def every_offset(self, outputs: Outputs) -> Tensor:
        """Return (B, N, 2), or (B, N, K, 2) where each class has its own: what `raw` shows."""
        return outputs.offsets

    def suppress(self, candidates: Candidates, *, seconds_a_step: float) -> Candidates:
        """Suppress candidates, and return the rest by falling score."""
        raise NotImplementedError

    def windows(self, rows: int) -> list[tuple[int, int]]:
        """Return the first row and the number of rows of each window."""
        return [(0, rows)]

    def steps(self, rows: int) -> int:
        """Return the number of steps that a window of so many rows is resized to."""
        return self.config.max_length if self.config.stretches else rows

    @final
    def raw(self, features: npt.ArrayLike) -> dict[str, list[Array]]:
        """Return the raw outputs for one video by level, at the lengths the original pads to.

        Args:
            features: (T, C) one row a step, of no more than one window.

        Returns:
            `cls` (T_l, K) logits, `offsets` (T_l, 2) or (T_l, K, 2) distances in strides of the level, `mask` (T_l,)
            which points lie inside the video. Outside of it all is zero.
        """
        rows = self._checked(features)
        if self.windows(len(rows))[0][1] < len(rows):
            raise BadValue(
                f"{len(rows)} rows are more than the {self.config.max_length} of a window; give raw one window"
            )
        with inference_mode():
            outputs = self._outputs([rows])
            mask, offsets = outputs.mask[0], self.every_offset(outputs)[0]
            valid = mask.view(-1, *[1] * (offsets.ndim - 1))  # a GPU computes more than the video
            columns = {"cls": outputs.logits[0] * mask[:, None], "offsets": offsets * valid, "mask": mask}
        sizes = list(outputs.points.sizes)
        return {
            name: [_pad_rows(x, n) for x, n in zip(torch.split(column.cpu(), sizes), outputs.padded, strict=True)]
            for name, column in columns.items()
        }

    @property
    def at_once(self) -> int:
        """Number of videos in a batch."""
        if self.device.type != "cuda":
            return 1
        small = self.config.max_length * self.config.input_dim <= SMALL_VIDEO
        return SMALL_VIDEOS_AT_ONCE if small else LARGE_VIDEOS_AT_ONCE

    @final
    def candidates(self, features: npt.ArrayLike) -> Candidates:
        """Return the candidates of one video before suppression, on the grid of the network."""
        return self._candidates([self._checked(features)])[0]

    def _candidates(self, videos: Sequence[npt.NDArray[np.float32]]) -> list[Candidates]:
        """Return the candidates of each of at most `at_once` videos with as many rows each."""
        candidates: list[list[Candidates]] = [[] for _ in videos]
        with inference_mode():
            for first, count in self.windows(len(videos[0])):
                outputs = self._outputs([rows[first : first + count] for rows in videos])
                parts = self.decode_finite(outputs, count=len(videos))  # without what fills up the batch
                for own, part in zip(candidates, parts, strict=True):
                    own.append(part.moved(first))
        return [Candidates.join(own) for own in candidates]

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
        """Detect the segments of one video, in seconds, best first.

        Args:
            features: (T, C) one row for every `stride` frames.
            fps: frames a second of the video that the features were made of.
            duration: of the video, in seconds.
            stride: frames between two rows.
            window: frames that a row has seen.
            video_scores: (classes,) scores of the whole video by a classifier, for class-agnostic detectors.
        """
        facts = {"fps": fps, "duration": duration, "stride": stride, "window": window, "video_scores": video_scores}
        return self.detect_together([features], [facts])[0]

    @final
    def detect_together(self, videos: Sequence[npt.ArrayLike], facts: Sequence[Mapping[str, Any]]) -> list[Segments]:
        """Run `detect` on up to `at_once` videos of equal length, with bit-identical results.

        Args:
            facts: keyword arguments of `detect` for each; only `video_scores` may be left out.
        """
        for own in facts:
            need_above_zero(**{name: own[name] for name in ("fps", "duration", "stride", "window")})
        every = [self._checked(video) for video in videos]
        return [
            self._segments(candidates, len(every[0]), **own)
            for candidates, own in zip(self._candidates(every), facts, strict=True)
        ]

    def _segments(
        self,
        candidates: Candidates,
        rows: int,
        *,
        fps: float,
        duration: float,
        stride: float,
        window: float,
        video_scores: npt.ArrayLike | None = None,
    ) -> Segments:
        """Suppress the candidates of a video and convert them to seconds; see `detect`."""
        if self.config.stretches or (len(self.windows(rows)) == 1 and self.steps(rows) != rows):
            # The rows were stretched, so each stands for other frames, and sees only those.
            stride = window = ((rows - 1) * stride + window) / self.steps(rows)
        candidates, classes = self.named(self.suppress(candidates, seconds_a_step=stride / float(fps)), video_scores)
        return in_seconds(
            candidates,
            fps=float(fps),
            duration=float(duration),
            stride=stride,
            window=window - 2 * self.row_centre * stride,
            classes=classes,
        )

    @final
    def batch(self, videos: Sequence[npt.ArrayLike]) -> tuple[Tensor, Tensor]:
        """Stack the rows (T, C) of videos into features (B, C, T) and lengths (B,) on the device."""
        if not videos:
            raise BadValue("a batch needs at least one video")
        return self._stacked([self._checked(video) for video in videos])

    def forward_function(self, features: Tensor) -> tuple[Callable[[Tensor, Tensor], Outputs], Tensor]:
        """Return the function to run instead of `forward`, and the features in its layout."""
        return self.forward, features

    def _stacked(self, videos: Sequence[npt.NDArray[np.float32]]) -> tuple[Tensor, Tensor]:
        rows = [torch.from_numpy(video) for video in videos]
        pinned = self.device.type == "cuda"  # a GPU takes it from there while other work goes on
        features = torch.zeros(len(rows), self.config.input_dim, max(len(x) for x in rows), pin_memory=pinned)
        for i, x in enumerate(rows):
            features[i, :, : len(x)] = x.T
        lengths = torch.tensor([len(x) for x in rows], pin_memory=pinned)
        return features.to(self.device, non_blocking=True), lengths.to(self.device, non_blocking=True)

    def _outputs(self, videos: Sequence[npt.NDArray[np.float32]]) -> Outputs:
        """Return the raw outputs of videos of equal length, in a padded batch."""
        steps, count = self.steps(len(videos[0])), len(videos[0])
        with launch_turn(self.device):
            x, lengths = self._stacked([*videos, *[np.zeros_like(videos[0])] * (self.at_once - len(videos))])
            if steps != count or self.config.stretches:
                x = F.interpolate(x, steps, mode="linear", align_corners=self.aligned_ends)
                lengths = torch.full_like(lengths, steps)
            run, x = self.forward_function(x)
            with network_stream(x, lengths):
                outputs: Outputs = self.infer(run, x, lengths)
        wait_for_networks(self.device)
        return outputs

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
        array = np.ascontiguousarray(rows, np.float32)
        return array if array.flags.writeable else array.copy()  # tensors cannot be read-only


def _pad_rows(x: Tensor, length: int) -> Array:
    """Pad rows with zeros up to a length."""
    padded = np.zeros((length, *x.shape[1:]), np.bool_ if x.dtype == torch.bool else np.float32)
    padded[: len(x)] = x if x.dtype == torch.bool else x.float()
    return padded


P = TypeVar("P", bound=PointConfig)
BUCKET = 384  # steps that sequences on a GPU are rounded up to
MOMENTUM = 0.9  # of the running number of positives


class PointDetector(FeatureDetector[P]):
    """Base of detectors that predict classes and boundary distances at every point.

    Their author makes the backbone, the neck and the heads, and writes `padded`; where they differ also `forward`,
    `assign`, `loss` and `offsets_at`.
    """

    known_from_opentad: ClassVar[bool] = True
    loss_normalizer: Tensor
    backbone: Embedding
    neck: Neck
    cls_head: ClassTower
    reg_head: OffsetTower

    def __init__(self, config: P) -> None:
        super().__init__(config)
        # State that the originals keep outside of their checkpoints.
        self.register_buffer("loss_normalizer", torch.tensor(config.normaliser), persistent=False)
        self._fast: Callable[[Tensor, Tensor], Outputs] | None = None
        self._replays = GraphReplays(self)

    def padded(self, length: int) -> int:
        """Return the length that the original pads `length` steps to."""
        raise NotImplementedError

    def forward(self, features: Tensor, lengths: Tensor) -> Outputs:
        """Return the raw outputs of backbone, neck and the two towers, which see all levels in one row."""
        config, length = self.config, features.shape[-1]
        levels = masked_levels(lengths, length, self.padded(length), levels=config.levels)
        pyramid = self.neck(self.backbone(features, levels), levels)
        row = Row.of(levels, gap=KERNEL // 2)
        x = row.join(pyramid)  # (B, D, S)
        return Outputs(
            points=Points.of([level.points for level in levels], config.level_ranges, features.device),
            mask=row.points(row.valid)[..., 0],  # (B, N)
            logits=row.points(self.cls_head(x, row)),  # (B, N, K)
            offsets=row.points(self.reg_head(x, row)),  # (B, N, 2)
            padded=tuple(level.padded for level in levels),
        )

    def assign(self, outputs: Outputs, actions: Actions, *, radius: float | None) -> Targets:
        """Return the targets of the points; `radius` in strides around centres, None for whole actions."""
        return assign(outputs.points, actions, outputs.mask, classes=self.config.classes, radius=radius)

    def loss(self, outputs: Outputs, actions: Actions) -> Losses:
        """Compute focal and distance-IoU losses, over the running number of positives.

        In training mode the number moves on by this batch, before it is used.
        """
        targets = self.assign(outputs, actions, radius=self.config.centre_radius)
        normaliser = self.normaliser(targets.positive.sum())
        classes = self.smoothed(targets.classes)
        each = focal(outputs.logits.float(), classes) * outputs.mask[..., None]
        apart = distance_iou(outputs.offsets.float(), targets.offsets)
        regression = torch.where(targets.positive, apart, 0.0).sum() / normaliser
        return self.losses(each.sum() / normaliser, regression, targets)

    def decode(self, outputs: Outputs) -> list[Candidates]:
        """Decode the candidates of each video, before suppression."""
        return find_candidates(outputs, self.config, self.offsets_at)

    def normaliser(self, positives: Tensor) -> Tensor:
        """Return the running number of positives with this batch in it."""
        count = self.counted(positives).clamp(min=1).to(self.loss_normalizer)
        moved = MOMENTUM * self.loss_normalizer + (1 - MOMENTUM) * count
        if self.training:
            self.loss_normalizer.copy_(moved.detach())
        return moved

    def smoothed(self, classes: Tensor) -> Tensor:
        """Apply label smoothing to class targets."""
        share = self.config.label_smoothing
        return classes * (1 - share) + share / (classes.shape[-1] + 1)

    def losses(self, classification: Tensor, regression: Tensor, targets: Targets) -> Losses:
        """Return the parts and their weighted sum."""
        total = classification + self.config.loss_weight * regression
        return Losses(total, classification, regression, targets.positive.sum())

    def suppress(self, candidates: Candidates, *, seconds_a_step: float) -> Candidates:
        """Apply soft-NMS, and voting for class-agnostic suppression."""
        return suppress(candidates, self.config)

    def forward_function(self, features: Tensor) -> tuple[Callable[[Tensor, Tensor], Outputs], Tensor]:
        """Return the network as a GPU runs it, compiled or recorded, with features padded to a few lengths."""
        if not features.is_cuda:
            return self.forward, features
        # A few lengths instead of any, so that there are few graphs. Never beyond the padding: it has a say.
        length = features.shape[-1]
        padded_length = min(-(-length // BUCKET) * BUCKET, self.padded(length))
        if self.config.compiled:
            self._fast = self._fast or torch.compile(self.forward, dynamic=False)
        return self._fast or self._replay, F.pad(features, (0, padded_length - length))

    def _replay(self, features: Tensor, lengths: Tensor) -> Outputs:
        """Return what `forward` does, launched as one; all tensors are copied, as the next call overwrites them."""
        outputs = self._replays(self.forward, features, lengths)
        return replace(_copy_tensors(outputs), points=_copy_tensors(outputs.points))


class PointwiseDetector(PointDetector[P]):
    """Base of detectors of one's own that predict at every step of the features: classes, and distances to both ends.

    Their author makes the network, whose settings have `levels=1`, and writes `predict`; losses, decoding and
    suppression are those of point detectors.
    """

    def predict(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return class logits (B, T, K), and the distances to start and end (B, T, 2) in steps, not below 0.

        Args:
            features: (B, C, T); in training with zeros after the end of a video.
        """
        raise NotImplementedError

    def padded(self, length: int) -> int:
        """Return the length itself: nothing is padded."""
        return length

    def forward(self, features: Tensor, lengths: Tensor) -> Outputs:
        """Return the predictions at every step as raw outputs."""
        batch, _, steps = features.shape
        config = self.config
        if config.levels != 1:
            raise BadValue(f"{type(self).__name__}: predicts at one level; set levels=1 in its settings")
        logits, distances = self.predict(features)
        for what, found, width in (("logits", logits, config.classes), ("distances", distances, 2)):
            if tuple(found.shape) != (batch, steps, width):
                raise BadValue(
                    f"{type(self).__name__}: predict returned {what} of shape {tuple(found.shape)} for features of "
                    f"{tuple(features.shape)}; {(batch, steps, width)} is needed"
                )
        return Outputs(
            points=Points.of([steps], config.level_ranges, features.device),
            mask=torch.arange(steps, device=lengths.device) < lengths[:, None],
            logits=logits,
            offsets=distances,
            padded=(steps,),
        )

    def forward_function(self, features: Tensor) -> tuple[Callable[[Tensor, Tensor], Outputs], Tensor]:
        """Return `forward` as it is: padding would change what a network without masks predicts at the end."""
        return self.forward, features


def _copy_tensors(holder: H) -> H:
    """Return a data class with copies of the tensors that are its fields."""
    copies: dict[str, Any] = {name: value.clone() for name, value in vars(holder).items() if isinstance(value, Tensor)}
    return replace(holder, **copies)
