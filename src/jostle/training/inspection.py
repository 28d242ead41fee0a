"""Training of inspectors on windows of films with corrupted frames, and their scores: recall and false alarms."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional as F

from jostle.core.random import key_for, rng_for
from jostle.core.state_dict import describe_mismatch
from jostle.errors import CheckpointError
from jostle.mending.blank_frames import find_blank, find_lost_in_video
from jostle.mending.network import SIDES, InspectorNetworks
from jostle.models.checkpoints import read_weights
from jostle.models.weights.packaged import weights_file
from jostle.training.descriptor_bank import FilmBank, load_footage
from jostle.training.distributed import Processes
from jostle.training.events import DataPreparation, Watch
from jostle.training.held_out import split
from jostle.training.inspection_config import RANDOM, InspectionConfig
from jostle.training.inspection_windows import draw_windows, render_windows
from jostle.training.learner import Learner, Losses, steps_in, with_average
from jostle.training.optimisation import Average

ALARMS = 1 / 200  # false-alarm rate among clean frames
WHOLE = "whole "  # prefix of the kind of a span that is inspected as a video by itself
LEAST, MOST = 0.02, 0.995  # bounds of a threshold

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class FilmProbabilities:
    """Predictions for one film that is clean, or has one corrupted span.

    Attributes:
        kind: the corruption, empty for none.
        damaged: probabilities of the visibly corrupted frames.
        beside: probabilities of the other frames of that film.
        clean: probabilities of the frames of a clean film.
    """

    kind: str
    damaged: Floats
    beside: Floats
    clean: Floats


@torch.inference_mode()
def predict_films(
    network: nn.Module, bank: FilmBank, device: torch.device, *, blank_rule: bool = False
) -> list[FilmProbabilities]:
    """Run a network on each film of a bank: clean, and then with each of its corrupted spans alone.

    Args:
        blank_rule: whether to apply the rule for blank frames as well, as in an `Inspector`.
    """
    network.eval()
    none = np.zeros(0, np.float32)
    results = []

    def predict(rows: npt.NDArray[np.int64]) -> Floats:
        descriptors = bank.frames[rows]
        probabilities: Floats = (
            network(torch.from_numpy(descriptors)[None].to(device))[0].float().sigmoid().cpu().numpy()
        )
        if blank_rule:
            probabilities[find_lost_in_video(find_blank(descriptors), lambda a, b: descriptors[a:b])] = 1.0
        return probabilities

    for film in bank.films:
        rows = film.first + np.arange(film.count)
        results.append(FilmProbabilities("", none, none, predict(rows)))
        for span in film.spans:
            here = span.first + np.arange(span.count)
            kind = span.kind.rpartition("/")[2].partition(":")[0]
            if span.kind.startswith(WHOLE):
                results.append(FilmProbabilities(WHOLE + kind.removeprefix(WHOLE), predict(here), none, none))
                continue
            changed = rows.copy()
            changed[span.at : span.at + span.count] = here
            probabilities = predict(changed)
            hit = np.zeros(film.count, np.bool_)
            hit[span.at : span.at + span.count] = True
            beside = probabilities[~hit]
            results.append(FilmProbabilities(kind, probabilities[hit][bank.visible[here]], beside, none))
    return results


def threshold_at(films: Sequence[FilmProbabilities], alarms: float) -> float:
    """Return the lowest threshold with at most this share of false alarms among clean frames.

    >>> clean = np.linspace(0, 0.5, 1001, dtype=np.float32)
    >>> none = np.zeros(0, np.float32)
    >>> round(threshold_at([FilmProbabilities("", none, none, clean)], 0.01), 3)
    0.495
    """
    clean = np.sort(np.concatenate([one.clean for one in films]))[::-1]
    if not len(clean):
        return 0.5
    allowed = min(int(alarms * len(clean)), len(clean) - 1)
    return float(np.clip(np.nextafter(clean[allowed], np.float32(1)), LEAST, MOST))


def false_alarms(films: Sequence[FilmProbabilities], threshold: float) -> float:
    """Return the share of frames of clean films that are classified as damaged."""
    clean = np.concatenate([one.clean for one in films])
    return float((clean >= threshold).mean()) if len(clean) else 0.0


def recall(films: Sequence[FilmProbabilities], threshold: float) -> float:
    """Return the share of damaged frames that are found, averaged over spans."""
    shares = [float((one.damaged >= threshold).mean()) for one in films if len(one.damaged)]
    return float(np.mean(shares)) if shares else 0.0


class InspectionLearner(Learner):
    """The two networks of an inspector and their training films."""

    name, chosen_by = "inspector", "found"

    def __init__(self, config: InspectionConfig, processes: Processes) -> None:
        self.config, self.processes = config, processes
        self.model = _initial_networks(config).to(processes.device)
        self.thresholds = dict.fromkeys(SIDES, 0.5)

    def prepare(self, watch: Watch | None) -> None:
        """Corrupt the films and describe their frames."""

        def report_progress(done: int, total: int) -> None:
            if watch is not None:
                watch(DataPreparation("films", done, total))

        config, processes = self.config, self.processes
        self.bank = load_footage(config, report_progress)
        self.learn, self.choose = _split(self.bank, config)
        self.frames = torch.from_numpy(self.bank.frames).to(processes.device)
        self.steps_an_epoch = steps_in(config.windows, "windows", config.optimiser, processes)
        self.counts = {"learn": len(self.learn.films), "choose": len(self.choose.films)}

    def losses(self, epoch: int, step: int) -> Iterator[Losses]:
        """Yield the loss of both networks for each batch of a step."""
        config, size = self.config, self.config.optimiser.batch
        for i in range(config.optimiser.accumulate):
            rng = rng_for(config.seed, "windows", epoch, step, i)
            drawn = draw_windows(self.learn, rng, size, config.window)
            windows = drawn.shard(self.processes.rank, self.processes.count).to(self.processes.device)
            descriptors = render_windows(self.frames, windows)
            parts: Losses = {}
            for side in SIDES:
                logits = self.model.get_submodule(side)(descriptors)
                wrong = F.binary_cross_entropy_with_logits(
                    logits, windows["damaged"], windows["weight"], reduction="sum"
                )
                parts[side] = wrong / (size * config.window)
            parts["total"] = torch.stack(list(parts.values())).sum()
            yield parts

    def score(self, average: Average) -> float | None:
        """Choose thresholds on the held-out films, and return the recall of damaged frames there."""
        if not self.choose.films:
            return None
        shares = []
        with with_average(self.model, average):
            for side in SIDES:
                films = predict_films(self.model.get_submodule(side), self.choose, self.processes.device)
                self.thresholds[side] = threshold_at(films, self.config.alarms)
                shares.append(recall(films, self.thresholds[side]))
        return sum(shares) / len(shares)

    def metadata(self) -> dict[str, str]:
        """Return the thresholds of the epoch that was scored last."""
        return {"thresholds": json.dumps(self.thresholds), "seed": str(self.config.seed)}

    def fingerprint_parts(self) -> Iterator[bytes]:
        """Yield all descriptors, and the films they belong to."""
        yield json.dumps([[film.name, film.count, len(film.spans)] for film in self.bank.films]).encode()
        yield hashlib.sha256(self.bank.frames.tobytes()).digest()


def _split(bank: FilmBank, config: InspectionConfig) -> tuple[FilmBank, FilmBank]:
    """Split films into training and held-out ones; pieces of one video stay together, and one alone is learned from."""
    videos = [film.name.rpartition("@")[0] for film in bank.films]
    learn, choose = split(videos, config.data.select if len(set(videos)) > 1 else 0.0, config.seed)
    return bank.only([bank.films[row] for row in learn]), bank.only([bank.films[row] for row in choose])


def _initial_networks(config: InspectionConfig) -> InspectorNetworks:
    """Create the networks to start from."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(key_for(config.seed, "first weights") % 2**63)
        networks = InspectorNetworks()
    if config.weights == RANDOM:
        return networks
    path = weights_file("inspector") if config.weights == "jostle" else Path(config.weights)
    tensors = read_weights(path)
    wrong = describe_mismatch({name: tuple(value.shape) for name, value in networks.state_dict().items()}, tensors)
    if wrong:
        raise CheckpointError(f"{path}: not the weights of an inspector: {wrong}")
    networks.load_state_dict(tensors)
    return networks
