"""A detector's class names against the ground truth, before the first video is decoded."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from helpers.refusals import refused
from jostle.core.types import Truth
from jostle.errors import BadValue
from jostle.models.loading.detectors import name_classes


@dataclass
class Config:
    class_names: tuple[str, ...]
    classes: int = 16


def detector(known: int) -> Any:
    return SimpleNamespace(config=Config(tuple(f"class {i}" for i in range(known))))


@pytest.mark.fault("F129")
def test_F129_ground_truth_without_most_classes_is_refused_before_decoding() -> None:
    truth = Truth(("v",), tuple(f"class {i}" for i in range(6)), [0], [1.0], [2.0], [0])
    with refused("F129", BadValue, match="16 classes, and the ground truth lacks 10 of them, as 'class 6'"):
        name_classes(detector(16), truth)
    name_classes(detector(12), truth)  # half of them is enough
