"""Inspectors as learners: windows of films, some frames struck, and the cross-entropy of which ones."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import torch
from torch.nn import functional as F

from jostle.core.random import key_for, rng_for
from jostle.core.state_dict import differences
from jostle.errors import CheckpointError
from jostle.mending.inspector import SIDES, BothWays
from jostle.models.checkpoints import read_weights
from jostle.models.weights.shipped import weights_file
from jostle.training.descriptor_bank import FilmBank
from jostle.training.distributed import Processes
from jostle.training.events import Making, Watch
from jostle.training.footage import load_footage
from jostle.training.inspection_config import RANDOM, InspectionConfig
from jostle.training.inspection_scores import answers, found, threshold_at
from jostle.training.inspection_windows import draw_windows, shown
from jostle.training.learner import Learner, Losses, steps_in, with_average
from jostle.training.optimisation import Average


class InspectionLearner(Learner):
    """The two networks of an inspector, and the films they learn from."""

    name, chosen_by = "inspector", "found"

    def __init__(self, config: InspectionConfig, processes: Processes, watch: Watch | None = None) -> None:
        self.config, self.processes = config, processes

        def told(done: int, total: int) -> None:
            if watch is not None:
                watch(Making("films", done, total))

        self.bank = load_footage(config, told)
        self.learn, self.choose = _split(self.bank, config)
        self.model = _begun(config).to(processes.device)
        self.frames = torch.from_numpy(self.bank.frames).to(processes.device)
        self.steps_an_epoch = steps_in(config.windows, "windows", config.optimiser, processes)
        self.counts = {"learn": len(self.learn.films), "choose": len(self.choose.films)}
        self.thresholds = dict.fromkeys(SIDES, 0.5)

    def losses(self, epoch: int, step: int) -> Iterator[Losses]:
        """How wrong both networks are about the windows of each batch of a step."""
        config, size = self.config, self.config.optimiser.batch
        for i in range(config.optimiser.accumulate):
            rng = rng_for(config.seed, "windows", epoch, step, i)
            drawn = draw_windows(self.learn, rng, size, config.window)
            windows = drawn.of(self.processes.rank, self.processes.count).on(self.processes.device)
            glances = shown(self.frames, windows)
            parts: Losses = {}
            for side in SIDES:
                logits = self.model.get_submodule(side)(glances)
                wrong = F.binary_cross_entropy_with_logits(
                    logits, windows["struck"], windows["weight"], reduction="sum"
                )
                parts[side] = wrong / (size * config.window)
            parts["total"] = torch.stack(list(parts.values())).sum()
            yield parts

    def score(self, average: Average) -> float | None:
        """Share of struck frames of the films held out that is found at the thresholds, which are chosen there, too."""
        if not self.choose.films:
            return None
        shares = []
        with with_average(self.model, average):
            for side in SIDES:
                told = answers(self.model.get_submodule(side), self.choose, self.processes.device)
                self.thresholds[side] = threshold_at(told, self.config.alarms)
                shares.append(found(told, self.thresholds[side]))
        return sum(shares) / len(shares)

    def described(self) -> dict[str, str]:
        """The thresholds, of the epoch that was scored last."""
        return {"thresholds": json.dumps(self.thresholds), "seed": str(self.config.seed)}

    def deciding(self) -> Iterator[bytes]:
        """All glances, and whose they are."""
        yield json.dumps([[film.name, film.count, len(film.strikes)] for film in self.bank.films]).encode()
        yield hashlib.sha256(self.bank.frames.tobytes()).digest()


def _split(bank: FilmBank, config: InspectionConfig) -> tuple[FilmBank, FilmBank]:
    """Films to learn from and to choose by; pieces of one video stay together."""
    videos = sorted({film.name.rpartition("@")[0] for film in bank.films})
    order = rng_for(config.seed, "held out", *videos).permutation(len(videos))
    many = max(1, round(config.data.select * len(videos))) if config.data.select and len(videos) > 1 else 0
    held = {videos[i] for i in order[:many]}
    parts = [
        [film for film in bank.films if (film.name.rpartition("@")[0] in held) == chosen] for chosen in (False, True)
    ]
    return bank.only(parts[0]), bank.only(parts[1])


def _begun(config: InspectionConfig) -> BothWays:
    """Networks to start from.

    Raises:
        CheckpointError: if a file is not of an inspector.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(key_for(config.seed, "first weights") % 2**63)
        networks = BothWays()
    if config.weights == RANDOM:
        return networks
    path = weights_file("inspector") if config.weights == "jostle" else Path(config.weights)
    tensors = read_weights(path)
    wrong = differences({name: tuple(value.shape) for name, value in networks.state_dict().items()}, tensors)
    if wrong:
        raise CheckpointError(f"{path}: these are no weights of an inspector: {wrong}")
    networks.load_state_dict(tensors)
    return networks
