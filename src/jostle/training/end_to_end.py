"""End-to-end training of detectors on frames: clips, clean and corrupted, and the detector's own losses."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from jostle.core.formatting import join_names
from jostle.core.random import key_for, rng_for
from jostle.core.state_dict import describe_mismatch
from jostle.core.types.clip import Clip, Frames
from jostle.core.types.predictions import Predictions
from jostle.core.types.truth import Truth
from jostle.core.types.video import ClipSource
from jostle.corruptions.engine.placement import Timeline, parse_placement
from jostle.corruptions.engine.stages import chain
from jostle.errors import BadValue, CheckpointError
from jostle.metrics.score import score
from jostle.models.checkpoints import read_weights
from jostle.models.detection.afsd import AFSD
from jostle.models.detection.blocks.afsd import draw_cut
from jostle.models.detection.blocks.assignment import Actions
from jostle.models.detection.detector import make_detector
from jostle.models.detection.frame_detector import FrameDetector
from jostle.models.devices import channels_last_on_gpu, half_on_gpu
from jostle.parallel.workers import available_cpus
from jostle.training.augmentation import draw_transform
from jostle.training.clips import draw_corruption
from jostle.training.consistency import clip_consistency
from jostle.training.detection_config import ClipDropConfig, FrameTrainingConfig
from jostle.training.distributed import Processes
from jostle.training.frame_store import FilmClip, TrainingFilm, cut_clip, load_films, renumber_classes
from jostle.training.held_out import split
from jostle.training.learner import Learner, Losses, detector_metadata, mean_losses, steps_in, with_average
from jostle.training.optimisation import Average
from jostle.training.selection import class_numbers, restrict_truth, thresholds


@dataclasses.dataclass(frozen=True, eq=False)
class ClipSample:
    """A clip as one step uses it.

    Attributes:
        clean: (T, crop, crop, 3) uint8.
        corrupted: the same clip corrupted, or None.
        actions: segments in frames of the clip, and class numbers.
        moved: the clip with background moved into an action, and the three segments of its triplet loss; None if it is
            not requested, or the clip has no space for it.
    """

    clean: Frames
    corrupted: Frames | None
    actions: tuple[Any, Any]
    moved: tuple[Frames, npt.NDArray[np.float32]] | None = None


class EndToEndLearner(Learner):
    """A detector on frames and its training videos."""

    def __init__(self, config: FrameTrainingConfig, processes: Processes) -> None:
        self.config, self.processes, self.name = config, processes, config.detector
        self.model: FrameDetector[Any] = self._build_model()
        names, self.films, self.held_out = self._split()
        self.model.config = dataclasses.replace(self.model.config, class_names=names)
        self.steps_an_epoch = steps_in(len(self.films), "videos", config.optimiser, processes)
        self.counts = {"learn": len(self.films), "choose": len(self.held_out[0]) if self.held_out else 0}
        self.chosen_by = config.chosen_by
        self.tious = thresholds(config.protocol, config.chosen_by)
        slower = {} if config.backbone_rate == 1 else {"backbone.": config.backbone_rate}
        self.rates = slower | dict(config.rates)
        self._check_names()
        self._pool = ThreadPoolExecutor(max(available_cpus() // processes.count, 1))
        self._ahead: tuple[tuple[int, int], list[list[Future[ClipSample]]]] | None = None

    def ready(self) -> None:
        """Put the detector into training mode; a frozen backbone stays in evaluation mode."""
        super().ready()
        if not self.config.backbone_rate:
            self.model.get_submodule("backbone").eval()

    def losses(self, epoch: int, step: int) -> Iterator[Losses]:
        """Yield the losses of each batch of a step, while the clips of the next step are prepared."""
        known, waiting = self._ahead or (None, [])
        if known != (epoch, step):
            waiting = self._submit_batches(epoch, step)
        following = (epoch, step + 1) if step + 1 < self.steps_an_epoch else (epoch + 1, 0)
        self._ahead = following, self._submit_batches(*following)
        size = self.config.optimiser.batch * self.config.data.views
        for batch in waiting:
            samples = [future.result() for future in batch]
            losses = self.losses_of(samples)
            # Gradients are summed over processes. A loss normalised by the number of positives is scaled already.
            share = 1.0 if self.model.counts_positives else len(samples) / size
            yield {name: value * share for name, value in losses.items()}

    def losses_of(self, samples: Sequence[ClipSample]) -> Losses:
        """Return the losses of a batch: the detector's own, and the consistency of clean and corrupted outputs."""
        config, device = self.config, self.processes.device
        actions = Actions.of([sample.actions for sample in samples], device)
        learned = ("clean", "corrupted") if config.data.learn_from == "both" else (config.data.learn_from,)
        inputs = {"clean": [sample.clean for sample in samples]}
        if config.data.drop is not None:
            inputs["corrupted"] = [sample.corrupted for sample in samples if sample.corrupted is not None]
        outputs = {}
        for name in inputs if config.compares else learned:
            with half_on_gpu(config.precision, device):
                outputs[name] = self.model(self._clips(inputs[name]))
        own = [self.model.loss(outputs[name], actions) for name in learned]
        losses = mean_losses(own)
        total = losses["total"]
        if config.compares:
            apart = clip_consistency(self.model, outputs["clean"], outputs["corrupted"], actions, config.consistency)
            losses["consistency"] = apart
            total = total + config.consistency.weight * apart
        moved = [sample.moved for sample in samples if sample.moved is not None]
        if moved:
            losses["lesson"] = self._lesson(moved) * (len(moved) / len(samples))
            total = total + config.lesson * losses["lesson"]
        return losses | {"total": total}

    def _lesson(self, moved: Sequence[tuple[Frames, npt.NDArray[np.float32]]]) -> Tensor:
        """Return AFSD's mean triplet loss over clips with background inside an action."""
        assert isinstance(self.model, AFSD)
        device = self.processes.device
        segments = torch.from_numpy(np.stack([where for _, where in moved])).to(device)
        with half_on_gpu(self.config.precision, device):
            return self.model.triplet(self.model(self._clips([frames for frames, _ in moved])), segments)

    def score(self, average: Average) -> float | None:
        """Return the mean average precision on the held-out videos."""
        if self.held_out is None:
            return None
        films, truth = self.held_out
        with with_average(self.model, average):
            detections = {
                film.name: self.model.detect(film.frames, fps=film.rate, duration=film.duration) for film in films
            }
        predictions = Predictions.from_segments(detections)
        return score(predictions, truth, protocol=self.config.protocol, tious=self.tious).average_map

    def metadata(self) -> dict[str, str]:
        """Return the detector, its settings and classes."""
        return detector_metadata(self.config, self.model)

    def fingerprint_parts(self) -> Iterator[bytes]:
        """Yield the videos, their actions, and a few pixels of each."""
        for film in [*self.films, *(self.held_out[0] if self.held_out else [])]:
            yield film.name.encode("utf-8", "surrogatepass") + film.segments.tobytes() + film.labels.tobytes()
            yield f"{film.frames.shape} {film.rate}".encode() + film.frames[::17, ::7, ::5].tobytes()

    def _clips(self, frames: Sequence[Frames]) -> Tensor:
        """Return (B, 3, T, crop, crop) inputs in the scale of the network, padded to the clip length."""
        pixels = [torch.from_numpy(np.ascontiguousarray(clip)).to(self.processes.device) for clip in frames]
        return torch.cat([self.model.clip(clip.permute(3, 0, 1, 2), 0) for clip in pixels])

    def _submit_batches(self, epoch: int, step: int) -> list[list[Future[ClipSample]]]:
        """Submit this process's share of a step's batches; an incomplete last step is dropped."""
        batches, views = [], range(self.config.data.views)
        for rows in self.batch_rows(len(self.films), epoch, step):
            films = [self.films[row] for row in rows]
            batches.append([self._pool.submit(self._sample, film, epoch, view) for view in views for film in films])
        return batches

    def _sample(self, film: TrainingFilm, epoch: int, view: int) -> ClipSample:
        """Prepare a clip of a video, keyed by the video's name, the epoch and the view."""
        config, own = self.config, self.model.config
        key = (film.name, epoch, view)
        clip = cut_clip(film, own.max_length, visible=config.data.visible, key=(config.seed, "clip", *key))
        rng = rng_for(config.seed, "crop", *key)
        top, left = (int(rng.integers(side - own.crop + 1)) for side in clip.frames.shape[1:3])
        mirrored = config.data.mirror and bool(rng.random() < 0.5)

        look = draw_transform(rng_for(config.seed, "look", *key), config.data.recolour, config.data.rotate)

        def augment(frames: Frames) -> Frames:
            part = look.apply(frames[:, top : top + own.crop, left : left + own.crop])
            return part[:, :, ::-1] if mirrored else part

        corrupted = None
        if config.data.drop is not None:
            drawn = (config.seed, "drop", film.name, epoch if config.data.drop.fresh else 0, view)
            corrupted = augment(corrupt_clip(clip, film.rate, config.data.drop, drawn))
        clean, moved = augment(clip.frames), None
        if config.lesson:
            rng = rng_for(config.seed, "lesson", *key)
            gap = draw_cut(clip.segments, len(clean), rng, activitynet=own.form == "activitynet")
            moved = None if gap is None else (clean[gap.order(len(clean))], gap.segments())
        return ClipSample(clean, corrupted, (clip.segments, clip.labels), moved)

    def _check_names(self) -> None:
        """Raise if the settings name a part that this detector does not have."""
        config = self.config
        if config.lesson and not isinstance(self.model, AFSD):
            raise BadValue(f"lesson works with AFSD only, not with {config.detector}; remove it")
        names = [name for name, _ in self.model.named_parameters()]
        for part in config.rates:
            if not any(part in name for name in names):
                raise BadValue(f"rates: {config.detector} has no parameter with {part!r} in its name")

    def _split(self) -> tuple[tuple[str, ...], list[TrainingFilm], tuple[list[TrainingFilm], Truth] | None]:
        """Return class names, training videos, and held-out videos with their truth."""
        config, data = self.config, self.config.data
        load = partial(load_films, data, detector=self.model, name=config.detector, settings=config.settings)
        films, truth = load(data.train, seeds=data.seeds)
        names, numbers = class_numbers(truth, self.model.config.classes, data.dataset)
        renumber = np.array([numbers[name] for name in truth.classes], np.int64)
        films = renumber_classes(films, renumber)
        learn = [film for film in films if len(film.labels)]
        if isinstance(data.select, str):
            others, other = load(data.select, seeds=data.seeds[:1])
            known = restrict_truth(other, [film.name for film in others], names, numbers)
            return names, learn, (others, known)
        if not data.select:
            return names, learn, None
        if len(data.seeds) > 1:
            raise BadValue("data: no share can be held out of several seeds; set select to a subset, or use one seed")
        rows, held = split([film.name for film in learn], data.select, config.seed)
        selected = [learn[row] for row in held]
        known = restrict_truth(truth, [film.name for film in selected], names, numbers)
        return names, [learn[row] for row in rows], (selected, known)

    def _build_model(self) -> FrameDetector[Any]:
        config = self.config
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(key_for(config.seed, "first weights") % 2**63)
            built = make_detector(config.detector, weights=config.weights, **config.settings)
        if not isinstance(built, FrameDetector):
            raise BadValue(
                f"{config.detector} takes {built.looks_at}, and end-to-end training is for detectors on frames; "
                'write task = "detection", and name the folder of its features'
            )
        if config.backbone_weights is not None:
            fill_backbone(built, config.backbone_weights, config.detector)
        built.positives_of_all = self.processes.total
        if config.checkpointed:
            enable_checkpointing(built.get_submodule("backbone"))
        if not config.backbone_rate:
            built.get_submodule("backbone").requires_grad_(False)
        channels_last_on_gpu(built, self.processes.device)
        return built.to(self.processes.device)


def corrupt_clip(clip: FilmClip, rate: float, config: ClipDropConfig, key: tuple[Any, ...]) -> Frames:
    """Corrupt some frames of a clip; the key determines the corruption and the frames."""
    seed = key_for(*key)
    spec = draw_corruption(config.specs, config.severities, rng_for(seed, "kind"))
    count = len(clip.frames)
    mask = parse_placement(config.placement).mask(Timeline(count, clip.segments.astype(np.float64), seed))
    frames = np.array(clip.frames)  # cached files are read-only
    source = ClipSource(Clip(frames, np.arange(count) / rate, Fraction(rate).limit_denominator(1000)))
    return np.array(chain(source, [spec], [mask], seed=seed, video_id="").block(0, count))


@contextmanager
def _without_norm_updates(part: nn.Module) -> Iterator[None]:
    """Freeze the statistics of batch norms during recomputation in the backward pass."""
    norms = [module for module in part.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    before = [(norm, norm.momentum) for norm in norms if norm.training and norm.num_batches_tracked is not None]
    for norm, _ in before:
        norm.momentum = 0.0
    try:
        yield
    finally:
        for norm, momentum in before:
            norm.momentum = momentum
            assert norm.num_batches_tracked is not None
            norm.num_batches_tracked -= 1


def enable_checkpointing(backbone: nn.Module) -> None:
    """Recompute the parts of a backbone in the backward pass instead of storing activations."""
    parts = list(backbone.children())
    if len(parts) == 1 and isinstance(parts[0], nn.Sequential):
        parts = list(parts[0].children())

    def wrap(part: nn.Module) -> None:
        plain = part.forward

        def forward(*inputs: Any) -> Any:
            if not torch.is_grad_enabled():
                return plain(*inputs)
            return checkpoint(
                plain, *inputs, use_reentrant=False, context_fn=lambda: (nullcontext(), _without_norm_updates(part))
            )

        part.forward = forward

    for part in parts:
        wrap(part)


PREFIX = "backbone."
INNER = ("_model.", "backbone.")  # prefixes of the inner network in AFSD and E2E-TAD
BATCH_COUNTER = "num_batches_tracked"  # missing in some files, and not needed


def fill_backbone(model: nn.Module, weights: str | Path, name: str) -> None:
    """Load public weights into the backbone of a detector.

    Tensors are matched by their names in the network, whatever prefix the file has; others, such as those of a
    classifier, are ignored.

    Raises:
        CheckpointError: F54 if tensors are missing, or have another shape.
    """
    tensors = read_weights(weights, ema=None)
    names = {own: _network_name(own) for own in model.state_dict() if own.startswith(PREFIX)}
    longest = max((core for core in names.values() if not core.endswith(BATCH_COUNTER)), key=len)
    before = {"", *(key.removesuffix(longest) for key in tensors if key.endswith(f".{longest}"))}
    prefix = max(sorted(before), key=lambda some: sum(some + core in tensors for core in names.values()))
    matched: dict[str, torch.Tensor] = {
        own: tensors[prefix + core] for own, core in names.items() if prefix + core in tensors
    }
    lacking = [core for own, core in names.items() if own not in matched and not core.endswith(BATCH_COUNTER)]
    if lacking:
        raise CheckpointError(
            f"{weights}: not a backbone of {name}: it has no {join_names(lacking)}, but {join_names(list(tensors))}",
            fault="F54",
        )
    shapes = {own: tuple(tensor.shape) for own, tensor in model.state_dict().items() if own in matched}
    if apart := describe_mismatch(shapes, matched):
        raise CheckpointError(f"{weights}: not a backbone of {name}: {apart}", fault="F54")
    model.load_state_dict(matched, strict=False)


def _network_name(own: str) -> str:
    """Return the name of a tensor in the video network itself."""
    inside = own.removeprefix(PREFIX)
    return next((inside.removeprefix(part) for part in INNER if inside.startswith(part)), inside)
