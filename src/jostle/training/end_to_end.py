"""Detectors of frames as learners: clips of videos, clean and struck, and the detector's own losses."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from jostle.core.random import key_for, rng_for
from jostle.core.types.clip import Clip, Frames
from jostle.core.types.predictions import Predictions
from jostle.core.types.truth import Truth
from jostle.corruptions.engine.placement import Timeline, parse
from jostle.corruptions.engine.spec import Spec
from jostle.corruptions.engine.stages import ClipSource, chain
from jostle.errors import BadValue
from jostle.metrics.score import score
from jostle.models.detection.afsd import AFSD
from jostle.models.detection.blocks.assignment import Actions
from jostle.models.detection.blocks.triplet import drawn_cut
from jostle.models.detection.detector import load_detector
from jostle.models.detection.frame_detector import FrameDetector
from jostle.parallel.workers import cores
from jostle.training.augmentation import drawn_look
from jostle.training.backbones import fill_backbone
from jostle.training.consistency import clip_consistency
from jostle.training.distributed import Processes
from jostle.training.end_to_end_config import FrameTrainingConfig, StrikesConfig
from jostle.training.frame_store import Cut, Film, cut, load_films, numbered
from jostle.training.learner import Learner, Losses, mean_losses, steps_in, with_average
from jostle.training.memory_format import channels_last_on_gpu, half_on_gpu
from jostle.training.optimisation import Average
from jostle.training.selection import class_numbers, held_out_names, only_of, thresholds


@dataclasses.dataclass(frozen=True, eq=False)
class Sample:
    """A clip as a step sees it.

    Attributes:
        clean: (T, crop, crop, 3) uint8.
        struck: the same struck, or None.
        actions: segments in frames of the clip, and class numbers.
        moved: the clip with background moved into an action, and the three segments that teach of; None where it is not
            asked for, or the clip has no room for it.
    """

    clean: Frames
    struck: Frames | None
    actions: tuple[Any, Any]
    moved: tuple[Frames, npt.NDArray[np.float32]] | None = None


class EndToEndLearner(Learner):
    """A detector of frames and the videos it learns from."""

    def __init__(self, config: FrameTrainingConfig, processes: Processes) -> None:
        self.config, self.processes, self.name = config, processes, config.detector
        self.model: FrameDetector[Any] = self._made()
        names, self.films, self.held_out = self._split()
        self.model.config = dataclasses.replace(self.model.config, class_names=names)
        self.steps_an_epoch = steps_in(len(self.films), "videos", config.optimiser, processes)
        self.counts = {"learn": len(self.films), "choose": len(self.held_out[0]) if self.held_out else 0}
        self.chosen_by = config.chosen_by
        self.tious = thresholds(config.protocol, config.chosen_by)
        slower = {} if config.backbone_rate == 1 else {"backbone.": config.backbone_rate}
        self.rates = slower | dict(config.rates)
        self._check_names()
        self._pool = ThreadPoolExecutor(max(cores() // processes.count, 1))
        self._ahead: tuple[tuple[int, int], list[list[Future[Sample]]]] | None = None

    def ready(self) -> None:
        """Have the detector learn; a backbone that does not is left alone, norms and all."""
        super().ready()
        if not self.config.backbone_rate:
            self.model.get_submodule("backbone").eval()

    def losses(self, epoch: int, step: int) -> Iterator[Losses]:
        """The losses of each batch of a step; clips of the next step are cut and struck meanwhile."""
        known, waiting = self._ahead or (None, [])
        if known != (epoch, step):
            waiting = self._asked(epoch, step)
        following = (epoch, step + 1) if step + 1 < self.steps_an_epoch else (epoch + 1, 0)
        self._ahead = following, self._asked(*following)
        size = self.config.optimiser.batch * self.config.data.views
        for batch in waiting:
            samples = [future.result() for future in batch]
            made = self.losses_of(samples)
            # Gradients of the processes are added up. A loss over the number of positives has its share already.
            share = 1.0 if self.model.counts_positives else len(samples) / size
            yield {name: value * share for name, value in made.items()}

    def losses_of(self, samples: Sequence[Sample]) -> Losses:
        """The losses of a batch; the detector's own, and how far its clean and struck answers are apart."""
        config, device = self.config, self.processes.device
        actions = Actions.of([sample.actions for sample in samples], device)
        learned = ("clean", "corrupted") if config.data.learn_from == "both" else (config.data.learn_from,)
        inputs = {"clean": [sample.clean for sample in samples]}
        if config.data.drop is not None:
            inputs["corrupted"] = [sample.struck for sample in samples if sample.struck is not None]
        outputs = {}
        for name in inputs if config.compares else learned:
            with half_on_gpu(config.precision, device):
                outputs[name] = self.model(self._clips(inputs[name]))
        own = [self.model.loss(outputs[name], actions) for name in learned]
        made = mean_losses(own)
        total = made["total"]
        if config.compares:
            apart = clip_consistency(self.model, outputs["clean"], outputs["corrupted"], actions, config.consistency)
            made["consistency"] = apart
            total = total + config.consistency.weight * apart
        moved = [sample.moved for sample in samples if sample.moved is not None]
        if moved:
            made["lesson"] = self._lesson(moved) * (len(moved) / len(samples))
            total = total + config.lesson * made["lesson"]
        return made | {"total": total}

    def _lesson(self, moved: Sequence[tuple[Frames, npt.NDArray[np.float32]]]) -> Tensor:
        """What AFSD learns without labels from clips with background inside an action, the mean over them."""
        assert isinstance(self.model, AFSD)
        device = self.processes.device
        segments = torch.from_numpy(np.stack([where for _, where in moved])).to(device)
        with half_on_gpu(self.config.precision, device):
            return self.model.triplet(self.model(self._clips([frames for frames, _ in moved])), segments)

    def score(self, average: Average) -> float | None:
        """Mean average precision on the videos held out."""
        if self.held_out is None:
            return None
        films, truth = self.held_out
        with with_average(self.model, average):
            found = {film.name: self.model.detect(film.frames, fps=film.rate, duration=film.duration) for film in films}
        made = Predictions.from_segments(found)
        return score(made, truth, protocol=self.config.protocol, tious=self.tious).average_map

    def described(self) -> dict[str, str]:
        """The detector, its settings and classes."""
        return {
            "detector": self.config.detector,
            "settings": json.dumps(dict(self.config.settings)),
            "classes": json.dumps(self.model.config.class_names),
            "seed": str(self.config.seed),
        }

    def deciding(self) -> Iterator[bytes]:
        """The videos, their actions, and a few pixels of each."""
        for film in [*self.films, *(self.held_out[0] if self.held_out else [])]:
            yield film.name.encode("utf-8", "surrogatepass") + film.segments.tobytes() + film.labels.tobytes()
            yield f"{film.frames.shape} {film.rate}".encode() + film.frames[::17, ::7, ::5].tobytes()

    def _clips(self, frames: Sequence[Frames]) -> Tensor:
        """(B, 3, T, crop, crop) in the scale of the network, filled up where a clip is short."""
        pixels = [torch.from_numpy(np.ascontiguousarray(clip)).to(self.processes.device) for clip in frames]
        return torch.cat([self.model.clip(clip.permute(3, 0, 1, 2), 0) for clip in pixels])

    def _asked(self, epoch: int, step: int) -> list[list[Future[Sample]]]:
        """This process's share of the batches of a step, being made; videos that fill no step are left out."""
        config = self.config
        order = rng_for(config.seed, "order", epoch).permutation(len(self.films))
        size, count = config.optimiser.batch, config.optimiser.accumulate
        batches = []
        for i in range(count):
            first = (step * count + i) * size
            rows = order[first : first + size][self.processes.rank :: self.processes.count]
            films = [self.films[row] for row in rows]
            views = range(config.data.views)
            batches.append([self._pool.submit(self._sample, film, epoch, view) for view in views for film in films])
        return batches

    def _sample(self, film: Film, epoch: int, view: int) -> Sample:
        """A clip of a video as an epoch shows it, drawn by the video's name, the epoch and which view of it it is."""
        config, own = self.config, self.model.config
        key = (film.name, epoch, view)
        clip = cut(film, own.max_length, visible=config.data.visible, key=(config.seed, "clip", *key))
        rng = rng_for(config.seed, "crop", *key)
        top, left = (int(rng.integers(side - own.crop + 1)) for side in clip.frames.shape[1:3])
        mirrored = config.data.mirror and bool(rng.random() < 0.5)

        look = drawn_look(rng_for(config.seed, "look", *key), config.data.recolour, config.data.rotate)

        def seen(frames: Frames) -> Frames:
            part = look.of(frames[:, top : top + own.crop, left : left + own.crop])
            return part[:, :, ::-1] if mirrored else part

        struck = None
        if config.data.drop is not None:
            drawn = (config.seed, "drop", film.name, epoch if config.data.drop.fresh else 0, view)
            struck = seen(strike(clip, film.rate, config.data.drop, drawn))
        clean, moved = seen(clip.frames), None
        if config.lesson:
            rng = rng_for(config.seed, "lesson", *key)
            gap = drawn_cut(clip.segments, len(clean), rng, activitynet=own.form == "activitynet")
            moved = None if gap is None else (clean[gap.order(len(clean))], gap.segments())
        return Sample(clean, struck, (clip.segments, clip.labels), moved)

    def _check_names(self) -> None:
        """Raise if the file asks for what this detector does not have."""
        config = self.config
        if config.lesson and not isinstance(self.model, AFSD):
            raise BadValue(f"lesson is AFSD's, and {config.detector} has none; leave it out")
        names = [name for name, _ in self.model.named_parameters()]
        for part in config.rates:
            if not any(part in name for name in names):
                raise BadValue(f"rates: {config.detector} has no parameter with {part!r} in its name")

    def _split(self) -> tuple[tuple[str, ...], list[Film], tuple[list[Film], Truth] | None]:
        """Class names, videos to learn from, and those to choose by with the truth about them."""
        config, data = self.config, self.config.data
        load = partial(load_films, data, detector=self.model, name=config.detector, settings=config.settings)
        films, truth = load(data.train, seeds=data.seeds)
        names, numbers = class_numbers(truth, self.model.config.classes, data.dataset)
        renumber = np.array([numbers[name] for name in truth.classes], np.int64)
        films = numbered(films, renumber)
        learn = [film for film in films if len(film.labels)]
        if isinstance(data.select, str):
            others, other = load(data.select, seeds=data.seeds[:1])
            known = only_of(other, [film.name for film in others], names, numbers)
            return names, learn, (others, known)
        if not data.select:
            return names, learn, None
        if len(data.seeds) > 1:
            raise BadValue("data: of several seeds no share can be held out; name a subset to choose by, or one seed")
        held = held_out_names([film.name for film in learn], data.select, config.seed)
        kept = [film for film in films if film.name in held]
        known = only_of(truth, [film.name for film in kept], names, numbers)
        return names, [film for film in learn if film.name not in held], (kept, known)

    def _made(self) -> FrameDetector[Any]:
        config = self.config
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(key_for(config.seed, "first weights") % 2**63)
            built = load_detector(config.detector, weights=config.weights, **config.settings)
        if not isinstance(built, FrameDetector):
            raise BadValue(
                f"{config.detector} looks at {built.looks_at}, and end-to-end training is for detectors of frames; "
                'write task = "detection", and name the folder of its features'
            )
        if config.backbone_weights is not None:
            fill_backbone(built, config.backbone_weights, config.detector)
        built.positives_of_all = self.processes.total
        if config.checkpointed:
            compute_again(built.get_submodule("backbone"))
        if not config.backbone_rate:
            built.get_submodule("backbone").requires_grad_(False)
        channels_last_on_gpu(built, self.processes.device)
        return built.to(self.processes.device)


def strike(clip: Cut, rate: float, config: StrikesConfig, key: tuple[Any, ...]) -> Frames:
    """The frames of a clip, of which some are struck: by which corruption and which ones is drawn by the key."""
    seed = key_for(*key)
    rng = rng_for(seed, "kind")
    text = config.specs[int(rng.integers(len(config.specs)))]
    if ":" not in text:
        text = f"{text}:{config.severities[int(rng.integers(len(config.severities)))]}"
    spec = Spec.parse(text)
    count = len(clip.frames)
    mask = parse(config.placement).mask(Timeline(count, clip.segments.astype(np.float64), seed))
    frames = np.array(clip.frames)  # kept files are not written into
    source = ClipSource(Clip(frames, np.arange(count) / rate, Fraction(rate).limit_denominator(1000)))
    return np.array(chain(source, [spec], [mask], seed=seed, video_id="").block(0, count))


@contextmanager
def _counted(part: nn.Module) -> Iterator[None]:
    """What norms have counted of a batch is not counted once more on the way back."""
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


def compute_again(backbone: nn.Module) -> None:
    """Have the parts of a backbone keep nothing for the way back, on which they are computed again."""
    parts = list(backbone.children())
    if len(parts) == 1 and isinstance(parts[0], nn.Sequential):
        parts = list(parts[0].children())

    def lazily(part: nn.Module) -> None:
        plain = part.forward

        def forward(*inputs: Any) -> Any:
            if not torch.is_grad_enabled():
                return plain(*inputs)
            return checkpoint(plain, *inputs, use_reentrant=False, context_fn=lambda: (nullcontext(), _counted(part)))

        part.forward = forward

    for part in parts:
        lazily(part)
