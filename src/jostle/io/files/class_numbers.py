"""Conversion between class names and class numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jostle.core.formatting import join_names
from jostle.core.types.predictions import Predictions
from jostle.core.types.truth import Truth
from jostle.errors import BadValue

# The twenty detection classes of THUMOS14, by their numbers among the 101 of UCF101.
THUMOS14_IDS = {
    "BaseballPitch": 7,
    "BasketballDunk": 9,
    "Billiards": 12,
    "CleanAndJerk": 21,
    "CliffDiving": 22,
    "CricketBowling": 23,
    "CricketShot": 24,
    "Diving": 26,
    "FrisbeeCatch": 31,
    "GolfSwing": 33,
    "HammerThrow": 36,
    "HighJump": 40,
    "JavelinThrow": 45,
    "LongJump": 51,
    "PoleVault": 68,
    "Shotput": 79,
    "SoccerPenalty": 85,
    "TennisSwing": 92,
    "ThrowDiscus": 93,
    "VolleyballSpiking": 97,
}


def name_classes(predictions: Predictions, truth: Truth) -> Predictions:
    """Replace class numbers by the names in the ground truth; unknown numbers stay as they are.

    Raises:
        BadValue: if the ground truth gives no numbers.
    """
    if not predictions.numbered:
        return predictions
    if truth.label_ids is None:
        raise BadValue(
            "the predictions have class numbers and the ground truth gives its classes none; use a file of ground "
            "truth that does, such as thumos14.json"
        )
    names = dict(zip(truth.label_ids, truth.classes, strict=True))
    return replace(
        predictions, classes=tuple(names.get(int(number), number) for number in predictions.classes), numbered=False
    )


def name_official_classes(predictions: Predictions) -> Predictions:
    """Replace class numbers by THUMOS14's names, if most of them are official numbers.

    Other numbers stay as they are: the official toolkit skips them, and so do scorers. If fewer than half are official,
    the classes are numbered differently, and only ground truth can name them.
    """
    names = {str(number): name for name, number in THUMOS14_IDS.items()}
    official = sum(number in names for number in predictions.classes)
    if not predictions.numbered or 2 * official <= len(predictions.classes):
        return predictions
    return replace(predictions, classes=tuple(names.get(n, n) for n in predictions.classes), numbered=False)


def class_numbers(predictions: Predictions, known: dict[str, int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the number of each class, for formats without names; raises BadValue if a class has none."""
    if predictions.numbered:
        return np.array([int(number) for number in predictions.classes], np.int64)
    missing = [name for name in predictions.classes if name not in known]
    if missing:
        raise BadValue(
            f"this format holds class numbers, and {join_names(map(repr, missing))} has none; give ground truth with "
            "'label_id', or write a format with names, such as JSON or CSV"
        )
    return np.array([known[name] for name in predictions.classes], np.int64)


def number_classes(predictions: Predictions, known: dict[str, int]) -> Predictions:
    """Replace class names by their numbers; see `class_numbers`."""
    numbers = class_numbers(predictions, known)
    return replace(predictions, classes=tuple(map(str, numbers.tolist())), numbered=True)
