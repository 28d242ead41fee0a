"""How well an inspector does: what it finds of each strike by itself, and what it takes for damage in clean films."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from jostle.mending.blank_frames import are_blank, lost_in_video
from jostle.training.descriptor_bank import FilmBank

ALARMS = 1 / 200  # clean frames that may be taken for struck ones
WHOLE = "whole "  # what the kind of a strike begins with that is looked at as a video by itself
LEAST, MOST = 0.02, 0.995  # a threshold lies between

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Answer:
    """What was said of one film that was clean, or struck once.

    Attributes:
        kind: what struck it, empty where nothing did.
        struck: probabilities of the frames that were, as far as it can be seen.
        beside: of the other frames of that film.
        clean: of the frames of a film that nothing struck.
    """

    kind: str
    struck: Floats
    beside: Floats
    clean: Floats


@torch.inference_mode()
def answers(network: nn.Module, bank: FilmBank, device: torch.device, *, blank_rule: bool = False) -> list[Answer]:
    """What a network says of each film of a bank, clean, and then with each of its strikes alone.

    Args:
        blank_rule: whether the rule for frames that show nothing stands beside the network, as in an `Inspector`.
    """
    network.eval()
    none = np.zeros(0, np.float32)
    made = []

    def said(rows: npt.NDArray[np.int64]) -> Floats:
        glances = bank.frames[rows]
        told: Floats = network(torch.from_numpy(glances)[None].to(device))[0].float().sigmoid().cpu().numpy()
        if blank_rule:
            told[lost_in_video(are_blank(glances), lambda a, b: glances[a:b])] = 1.0
        return told

    for film in bank.films:
        rows = film.first + np.arange(film.count)
        made.append(Answer("", none, none, said(rows)))
        for strike in film.strikes:
            here = strike.first + np.arange(strike.count)
            kind = strike.kind.rpartition("/")[2].partition(":")[0]
            if strike.kind.startswith(WHOLE):
                made.append(Answer(WHOLE + kind.removeprefix(WHOLE), said(here), none, none))
                continue
            changed = rows.copy()
            changed[strike.at : strike.at + strike.count] = here
            told = said(changed)
            hit = np.zeros(film.count, np.bool_)
            hit[strike.at : strike.at + strike.count] = True
            beside = told[~hit]
            made.append(Answer(kind, told[hit][bank.visible[here]], beside, none))
    return made


def threshold_at(told: Sequence[Answer], alarms: float) -> float:
    """The lowest threshold at which no more than so many of the clean frames are taken for struck ones.

    >>> clean = np.linspace(0, 0.5, 1001, dtype=np.float32)
    >>> none = np.zeros(0, np.float32)
    >>> round(threshold_at([Answer("", none, none, clean)], 0.01), 3)
    0.495
    """
    clean = np.sort(np.concatenate([one.clean for one in told]))[::-1]
    if not len(clean):
        return 0.5
    allowed = min(int(alarms * len(clean)), len(clean) - 1)
    return float(np.clip(np.nextafter(clean[allowed], np.float32(1)), LEAST, MOST))


def false_alarms(told: Sequence[Answer], threshold: float) -> float:
    """The share of frames of clean films that are taken for struck ones."""
    clean = np.concatenate([one.clean for one in told])
    return float((clean >= threshold).mean()) if len(clean) else 0.0


def found(told: Sequence[Answer], threshold: float) -> float:
    """The share of struck frames that is found, each strike counted alike."""
    shares = [float((one.struck >= threshold).mean()) for one in told if len(one.struck)]
    return float(np.mean(shares)) if shares else 0.0
