"""Scores of an inspector: recall of each corruption, and false alarms in clean films."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from jostle.mending.blank_frames import find_blank, find_lost_in_video
from jostle.training.descriptor_bank import FilmBank

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
