"""Training of recognisers: clips, clean or augmented, and a loss of their classes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from jostle.core.environment import cache_folder
from jostle.core.formatting import join_names
from jostle.core.random import key_for
from jostle.errors import BadValue, DataError
from jostle.models.checkpoints import read_weights
from jostle.models.devices import half_on_gpu
from jostle.models.input_spec import InputSpec
from jostle.models.loading.recognisers import load_recogniser
from jostle.models.recognition.recogniser import Recogniser, Scores, find_kind, load_user_recogniser
from jostle.models.weights.resolve import weights_path
from jostle.parallel.workers import available_cpus
from jostle.training.clip_augmentation import ClipLoader, View, draw_patterns, draw_view, plain_view, prepare_batch
from jostle.training.clips import PixelClips, Preparation, VideoClip, list_videos, load_clips
from jostle.training.distributed import Processes
from jostle.training.held_out import split
from jostle.training.learner import Learner, Losses, steps_in, with_average
from jostle.training.loss import losses
from jostle.training.optimisation import Average
from jostle.training.recognition_config import ClipsConfig, CorruptionsConfig, RecognitionConfig

AT_ONCE = 64  # batch size of scoring


class RecognitionLearner(Learner):
    """A recogniser and its training clips."""

    chosen_by = "accuracy"

    def __init__(self, config: RecognitionConfig, processes: Processes) -> None:
        self.config, self.processes, self.name = config, processes, config.trained
        self.loss = losses[config.loss]
        self.classes, learn, choose = load_split(config)
        self.spec, self.model = self._build_model()
        self.steps = self._steps(learn)
        self.learn = ClipLoader(learn, self.spec, processes.device)
        self.choose = None if choose is None else ClipLoader(choose, self.spec, processes.device)
        self.steps_an_epoch = steps_in(len(learn), "clips", config.optimiser, processes)
        self.counts = {"learn": len(learn), "choose": len(choose) if choose else 0}
        self.patterns_bank: Tensor | None = None
        if config.patterns.share:
            self.patterns_bank = draw_patterns(config.patterns, self.spec.size, config.seed).to(processes.device)

    def ready(self) -> None:
        """Put the model into training mode; frozen batch norms stay in evaluation mode."""
        super().ready()
        if self.config.frozen_norms:
            for module in self.model.modules():
                if isinstance(module, nn.modules.batchnorm._BatchNorm):
                    module.eval()

    def losses(self, epoch: int, step: int) -> Iterator[Losses]:
        """Yield the loss of each batch of a step."""
        for rows in self.batch_rows(len(self.learn.clips), epoch, step):
            loss = self.loss_of(rows, epoch)
            # Gradients are summed over processes, each of which has its share of the batch.
            yield {"total": loss * len(rows) / self.config.optimiser.batch}

    def loss_of(self, rows: list[int], epoch: int) -> Tensor:
        """Return the loss of some clips with the augmentation of an epoch."""
        config, clips, device = self.config, self.learn.clips, self.processes.device
        shape = clips.frames.shape[1:5]
        views = [
            draw_view(
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
        patterns = None if self.patterns_bank is None else (config.patterns, self.patterns_bank)
        frames = self.learn.load(rows, views)
        if self.steps is not None:
            frames = frames.flatten(0, 1)[:, None]  # frames of a set are separate inputs
        ready = prepare_batch(frames, self.spec, noise=config.noise, patterns=patterns)
        labels = torch.from_numpy(clips.labels[rows]).to(device)
        with half_on_gpu(config.precision, device):
            logits = self.model(ready)
        return self.loss(logits.float().unflatten(0, (len(rows), -1)), labels, config)

    def score(self, average: Average) -> float | None:
        """Return the accuracy on the held-out clips."""
        if self.choose is None:
            return None
        middle = None if self.steps is None else (self.config.data.k,)
        with with_average(self.model, average):
            logits = predict_logits(self.model, self.choose, precision=self.config.precision, steps=middle)
        return float((logits.argmax(1) == self.choose.clips.labels).mean())

    def metadata(self) -> dict[str, str]:
        """Return the recogniser, its input settings and its classes."""
        return {
            "recogniser": self.config.trained,
            "input": json.dumps({**self.config.input, **({"resize": self.spec.resize} if self.config.input else {})}),
            "classes": json.dumps(self.classes if self.steps is None else ()),  # frames have classes by number
            "outputs": str(len(self.classes)),
            "seed": str(self.config.seed),
        }

    def fingerprint_parts(self) -> Iterator[bytes]:
        """Yield the clips, their classes and a few pixels of each."""
        for loader in (self.learn, self.choose):
            if loader is not None:
                clips = loader.clips
                yield json.dumps([*clips.names, *clips.labels.tolist(), *clips.frames.shape]).encode()
                few = clips.frames[:, :, 0, ::17, ::13][clips.where]
                yield hashlib.sha256(few.tobytes()).digest()

    def _steps(self, learn: PixelClips) -> tuple[int, ...] | None:
        """Return the frames of a set to learn from; None for clips, whose frames are drawn."""
        config, frames, available = self.config, self.spec.frames, learn.frames.shape[2]
        if not learn.are_sets:
            if self.loss.whole_sets:
                raise BadValue(f"loss = {config.loss!r} is for sets of frames, and {config.data.dataset} is of clips")
            return None
        if frames != 1:
            raise BadValue(f"{self.name} takes {frames} frames, and {config.data.dataset} consists of single ones")
        return tuple(range(available)) if self.loss.whole_sets else (config.data.k,)

    def _build_model(self) -> tuple[InputSpec, nn.Module]:
        config = self.config
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(key_for(config.seed, "first weights") % 2**63)
            recogniser = start_from(config, len(self.classes))
            if recogniser.spec is None or not isinstance(recogniser.network, nn.Module):
                raise BadValue(
                    f"{self.name} cannot be trained: it is not a torch module, or has no input specification"
                )
            fit_head(recogniser.network, recogniser.head, len(self.classes))
        return recogniser.spec, recogniser.network.to(self.processes.device)


def load_split(config: RecognitionConfig) -> tuple[tuple[str, ...], PixelClips, PixelClips | None]:
    """Load class names, training clips, and held-out clips."""
    data = config.data
    if config.model is None:
        find_kind(config.recogniser)  # reports a wrong name before videos are read
    classes, videos = _select_classes(data, *list_videos(data, data.train, seeds=data.seeds))
    spec = load_spec(config, len(classes))
    cache = (cache_folder() / "clips") if data.cache is None else Path(data.cache)
    jobs = data.jobs or available_cpus()
    learn = load_clips(videos, Preparation.of(data, config.corruptions, spec), cache=cache, jobs=jobs)
    clean = Preparation.of(data, CorruptionsConfig(), spec)
    if isinstance(data.select, str):
        names, others = _select_classes(data, *list_videos(data, data.select, seeds=data.seeds[:1]))
        unknown = sorted(set(names) - set(classes))
        if unknown:
            raise DataError(f"{data.dataset}: {data.select!r} has classes that are not learned: {join_names(unknown)}")
        others = [_renumber(video, names, classes) for video in others]
        return classes, learn, load_clips(others, clean, cache=cache, jobs=jobs)
    if not data.select:
        return classes, learn, None
    training, held = split(learn.names, data.select, config.seed)
    return classes, learn.of(training), learn.of(held)


def _select_classes(
    data: ClipsConfig, names: tuple[str, ...], videos: list[VideoClip]
) -> tuple[tuple[str, ...], list[VideoClip]]:
    """Keep only the classes of the settings, in their order."""
    if not data.classes:
        return names, videos
    unknown = [name for name in data.classes if name not in names]
    if unknown:
        raise DataError(f"{data.dataset}: data.classes has {join_names(unknown)}, and it knows {join_names(names)}")
    selected = [_renumber(video, names, data.classes) for video in videos if names[video.label] in data.classes]
    if not selected:
        raise DataError(f"{data.dataset}: no clip shows one of data.classes: {join_names(data.classes)}")
    return data.classes, selected


def _renumber(video: VideoClip, names: tuple[str, ...], classes: tuple[str, ...]) -> VideoClip:
    return replace(video, label=classes.index(names[video.label]))


def load_spec(config: RecognitionConfig, classes: int) -> InputSpec:
    """Return the input specification of the recogniser, with the changes of the settings."""
    if config.model is None and find_kind(config.recogniser).spec is not None:
        return find_kind(config.recogniser).input_spec(config.input)
    spec = start_from(config, classes).spec
    if spec is None:
        raise BadValue(f"{config.trained} has no input specification, so clips cannot be prepared for it")
    return spec


def start_from(config: RecognitionConfig, classes: int) -> Recogniser:
    """Create the recogniser to train, with the weights of a file or randomly initialised.

    A user's own network starts as its factory made it, possibly with weights.
    """
    changes: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in config.input.items()
    }
    if config.model is not None:
        weights = None if config.weights is None else read_weights(config.weights)
        return load_user_recogniser(config.model, classes, changes, option="model =", weights=weights)
    name = config.recogniser
    if config.weights is not None:
        tensors = read_weights(weights_path("models", name, config.weights), ema=None)
        return load_recogniser(name, weights=tensors, **changes)
    recogniser = load_recogniser(name, weights="random", **changes)
    if isinstance(recogniser.network, nn.Module):
        for module in recogniser.network.modules():
            begin = getattr(module, "reset_parameters", None)
            if begin is not None:
                begin()
    return recogniser


def fit_head(network: nn.Module, head: str, classes: int) -> None:
    """Replace the classification layer if its number of classes differs.

    Args:
        head: name of the layer; empty for the last linear one.
    """
    linear = [name for name, module in network.named_modules() if isinstance(module, nn.Linear)]
    if not head and not linear:
        raise BadValue(f"{type(network).__name__} has no linear layer to replace for {classes} classes")
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
def predict_logits(
    network: nn.Module, loader: ClipLoader, *, precision: str = "float32", steps: tuple[int, ...] | None = None
) -> Scores:
    """Return (N, classes) logits of unaugmented clips, over their whole length or at some steps."""
    view = plain_view(loader.clips.frames.shape[2], loader.spec.frames) if steps is None else View(0, steps)
    network.eval()
    parts = []
    for lo in range(0, len(loader.clips), AT_ONCE):
        rows = range(lo, min(lo + AT_ONCE, len(loader.clips)))
        with half_on_gpu(precision, loader.device):
            parts.append(network(prepare_batch(loader.load(rows, [view] * len(rows)), loader.spec)).float())
    logits: Scores = torch.cat(parts).cpu().numpy()
    return logits
