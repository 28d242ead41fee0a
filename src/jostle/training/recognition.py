"""Recognisers as learners: clips, clean or roughened, and the cross-entropy of their classes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jostle.core.cache import cache_folder
from jostle.core.random import key_for, rng_for
from jostle.errors import BadValue, DataError
from jostle.io.files.video_ids import listing
from jostle.models.checkpoints import read_weights
from jostle.models.input_spec import InputSpec
from jostle.models.recognition.recogniser import Recogniser, Scores, kind_of, load_recogniser
from jostle.models.user_network import own_recogniser
from jostle.models.weights.resolve import weights_path
from jostle.parallel.workers import cores
from jostle.training.clip_augmentation import Showing, View, drawn_view, plain_view, prepared
from jostle.training.clips import Clips, Preparation, VideoClip, load_clips, videos_of
from jostle.training.distributed import Processes
from jostle.training.learner import Learner, Losses, steps_in, with_average
from jostle.training.memory_format import half_on_gpu
from jostle.training.optimisation import Average
from jostle.training.pixmix import pattern_shelf
from jostle.training.recognition_config import ClipsConfig, CorruptionsConfig, RecognitionConfig

AT_ONCE = 64  # clips that are scored together


class RecognitionLearner(Learner):
    """A recogniser and the clips it learns from."""

    chosen_by = "accuracy"

    def __init__(self, config: RecognitionConfig, processes: Processes) -> None:
        self.config, self.processes, self.name = config, processes, config.trained
        self.classes, learn, choose = load_split(config)
        self.spec, self.model = self._made()
        self.steps = self._steps(learn)
        self.learn = Showing(learn, self.spec, processes.device)
        self.choose = None if choose is None else Showing(choose, self.spec, processes.device)
        self.steps_an_epoch = steps_in(len(learn), "clips", config.optimiser, processes)
        self.counts = {"learn": len(learn), "choose": len(choose) if choose else 0}
        self.shelf: Tensor | None = None
        if config.patterns.share:
            self.shelf = pattern_shelf(config.patterns, self.spec.size, config.seed).to(processes.device)

    def ready(self) -> None:
        """Have the model learn; batch norms that are frozen stay as they are in a test."""
        super().ready()
        if self.config.frozen_norms:
            for module in self.model.modules():
                if isinstance(module, nn.modules.batchnorm._BatchNorm):
                    module.eval()

    def losses(self, epoch: int, step: int) -> Iterator[Losses]:
        """The cross-entropy of each batch of a step."""
        config, clips = self.config, self.learn.clips
        order = rng_for(config.seed, "order", epoch).permutation(len(clips))
        size, count = config.optimiser.batch, config.optimiser.accumulate
        for i in range(count):
            first = (step * count + i) * size
            rows = order[first : first + size][self.processes.rank :: self.processes.count].tolist()
            loss = self.loss_of(rows, epoch)
            # Gradients of the processes are added up, and each has its share of the batch.
            yield {"total": loss * len(rows) / size}

    def loss_of(self, rows: list[int], epoch: int) -> Tensor:
        """The mean cross-entropy of some clips as an epoch shows them."""
        config, clips, device = self.config, self.learn.clips, self.processes.device
        shape = clips.frames.shape[1:5]
        views = [
            drawn_view(
                clips.names[row],
                shape,
                self.spec.frames,
                config.data,
                share=config.corruptions.share,
                seed=config.seed,
                epoch=epoch,
                steps=self.steps,
            )
            for row in rows
        ]
        patterns = None if self.shelf is None else (config.patterns, self.shelf)
        shown = self.learn.show(rows, views)
        if self.steps is not None:
            shown = shown.flatten(0, 1)[:, None]  # each frame of a set by itself
        ready = prepared(shown, self.spec, noise=config.noise, patterns=patterns)
        labels = torch.from_numpy(clips.labels[rows]).to(device).repeat_interleave(len(shown) // len(rows))
        with half_on_gpu(config.precision, device):
            logits = self.model(ready)
        losses = F.cross_entropy(logits.float(), labels, label_smoothing=config.smoothing, reduction="none")
        if config.loss == "worst":
            losses = losses.view(len(rows), -1).amax(1)
        return losses.mean()

    def score(self, average: Average) -> float | None:
        """Share of the clips held out whose class is told right."""
        if self.choose is None:
            return None
        middle = None if self.steps is None else (self.config.data.k,)
        with with_average(self.model, average):
            logits = scored(self.model, self.choose, precision=self.config.precision, steps=middle)
        return float((logits.argmax(1) == self.choose.clips.labels).mean())

    def described(self) -> dict[str, str]:
        """The recogniser, what it wants to see, and its classes."""
        return {
            "recogniser": self.config.trained,
            "input": json.dumps({**self.config.input, **({"resize": self.spec.resize} if self.config.input else {})}),
            "classes": json.dumps(self.classes if self.steps is None else ()),  # frames have classes by number
            "outputs": str(len(self.classes)),
            "seed": str(self.config.seed),
        }

    def deciding(self) -> Iterator[bytes]:
        """The clips and their classes, and a few pixels of each."""
        for showing in (self.learn, self.choose):
            if showing is not None:
                clips = showing.clips
                yield json.dumps([*clips.names, *clips.labels.tolist(), *clips.frames.shape]).encode()
                few = clips.frames[:, :, 0, ::17, ::13][clips.where]
                yield hashlib.sha256(few.tobytes()).digest()

    def _steps(self, learn: Clips) -> tuple[int, ...] | None:
        """The frames of a set that are learned from; None for clips, of which frames are drawn."""
        config, frames, kept = self.config, self.spec.frames, learn.frames.shape[2]
        if not learn.are_sets:
            if config.loss != "own":
                raise BadValue(f"loss = {config.loss!r} is for sets of frames, and {config.data.dataset} is of clips")
            return None
        if frames != 1:
            raise BadValue(f"{self.name} sees {frames} frames at once, and {config.data.dataset} is of single ones")
        return (config.data.k,) if config.loss == "own" else tuple(range(kept))

    def _made(self) -> tuple[InputSpec, nn.Module]:
        config = self.config
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(key_for(config.seed, "first weights") % 2**63)
            made = start_from(config, len(self.classes))
            if made.spec is None or not isinstance(made.network, nn.Module):
                raise BadValue(f"{self.name} cannot be trained: it is no torch module, or wants to see nothing")
            fit_head(made.network, made.head, len(self.classes))
        return made.spec, made.network.to(self.processes.device)


def load_split(config: RecognitionConfig) -> tuple[tuple[str, ...], Clips, Clips | None]:
    """Class names, clips to learn from, and those to choose by.

    Raises:
        DataError: if those to choose by show a class that is not learned.
    """
    data = config.data
    if config.model is None:
        kind_of(config.recogniser)  # a wrong name is told before videos are read
    classes, videos = _wanted(data, *videos_of(data, data.train, seeds=data.seeds))
    spec = load_spec(config, len(classes))
    cache = (cache_folder() / "clips") if data.cache is None else Path(data.cache)
    jobs = data.jobs or cores()
    learn = load_clips(videos, Preparation.of(data, config.corruptions, spec), cache=cache, jobs=jobs)
    clean = Preparation.of(data, CorruptionsConfig(), spec)
    if isinstance(data.select, str):
        names, others = _wanted(data, *videos_of(data, data.select, seeds=data.seeds[:1]))
        unknown = sorted(set(names) - set(classes))
        if unknown:
            raise DataError(f"{data.dataset}: {data.select!r} has classes that are not learned: {listing(unknown)}")
        others = [_renumbered(video, names, classes) for video in others]
        return classes, learn, load_clips(others, clean, cache=cache, jobs=jobs)
    if not data.select:
        return classes, learn, None
    by_name = sorted(learn.names)
    order = rng_for(config.seed, "held out", *by_name).permutation(len(by_name))
    held = {by_name[i] for i in order[: max(1, round(data.select * len(by_name)))]}
    kept = [row for row, name in enumerate(learn.names) if name not in held]
    other = [row for row, name in enumerate(learn.names) if name in held]
    return classes, learn.of(kept), learn.of(other)


def _wanted(
    data: ClipsConfig, names: tuple[str, ...], videos: list[VideoClip]
) -> tuple[tuple[str, ...], list[VideoClip]]:
    """Only the classes that are to be learned, in their order.

    Raises:
        DataError: if one of them is not there, or has no clip.
    """
    if not data.classes:
        return names, videos
    unknown = [name for name in data.classes if name not in names]
    if unknown:
        raise DataError(f"{data.dataset}: data.classes has {listing(unknown)}, and it knows {listing(names)}")
    kept = [_renumbered(video, names, data.classes) for video in videos if names[video.label] in data.classes]
    if not kept:
        raise DataError(f"{data.dataset}: no clip shows one of data.classes: {listing(data.classes)}")
    return data.classes, kept


def _renumbered(video: VideoClip, names: tuple[str, ...], classes: tuple[str, ...]) -> VideoClip:
    return replace(video, label=classes.index(names[video.label]))


def load_spec(config: RecognitionConfig, classes: int) -> InputSpec:
    """What the recogniser wants to see, with the changes of the settings.

    Raises:
        BadValue: if that only comes with its weights.
    """
    if config.model is None and kind_of(config.recogniser).spec is not None:
        return kind_of(config.recogniser).shown(config.input)
    spec = start_from(config, classes).spec
    if spec is None:
        raise BadValue(f"{config.trained} does not say what it wants to see, so clips cannot be prepared for it")
    return spec


def start_from(config: RecognitionConfig, classes: int) -> Recogniser:
    """A recogniser to be trained: with the weights of a file, or else begun anew by chance.

    One's own network begins as it is made, which may be with weights from elsewhere.
    """
    changes = _tuples(config.input)
    if config.model is not None:
        given = None if config.weights is None else read_weights(config.weights)
        return own_recogniser(config.model, classes, changes, option="model =", weights=given)
    name = config.recogniser
    if config.weights is not None:
        tensors = read_weights(weights_path("models", name, config.weights), ema=None)
        return load_recogniser(name, weights=tensors, **changes)
    made = load_recogniser(name, weights="random", **changes)
    if isinstance(made.network, nn.Module):
        for module in made.network.modules():
            begin = getattr(module, "reset_parameters", None)
            if begin is not None:
                begin()
    return made


def _tuples(changes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in changes.items()}


def fit_head(network: nn.Module, head: str, classes: int) -> None:
    """Begin the layer that makes scores anew if it tells another number of classes apart.

    Args:
        head: its name; if empty, it is the last linear one.

    Raises:
        BadValue: if the network has no such layer.
    """
    linear = [name for name, module in network.named_modules() if isinstance(module, nn.Linear)]
    if not head and not linear:
        raise BadValue(f"{type(network).__name__} has no linear layer to tell {classes} classes apart with")
    parent, _, leaf = (head or linear[-1]).rpartition(".")
    last = network.get_submodule(head or linear[-1])
    if isinstance(last, nn.Linear) and last.out_features != classes:
        new: nn.Module = nn.Linear(last.in_features, classes, bias=last.bias is not None)
    elif isinstance(last, nn.Conv3d) and last.out_channels != classes:
        new = nn.Conv3d(last.in_channels, classes, (1, 1, 1), bias=last.bias is not None)
    else:
        return
    setattr(network.get_submodule(parent), leaf, new)


@torch.inference_mode()
def scored(
    network: nn.Module, showing: Showing, *, precision: str = "float32", steps: tuple[int, ...] | None = None
) -> Scores:
    """(N, classes) logits of clips as they are, from beginning to end or at some steps."""
    view = plain_view(showing.clips.frames.shape[2], showing.spec.frames) if steps is None else View(0, steps)
    network.eval()
    made = []
    for lo in range(0, len(showing.clips), AT_ONCE):
        rows = range(lo, min(lo + AT_ONCE, len(showing.clips)))
        with half_on_gpu(precision, showing.device):
            made.append(network(prepared(showing.show(rows, [view] * len(rows)), showing.spec)).float())
    logits: Scores = torch.cat(made).cpu().numpy()
    return logits
