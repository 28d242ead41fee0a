"""Small detectors with large random weights, and features for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("torch")

from helpers import detector_forms


@pytest.fixture
def small() -> Callable[..., Any]:
    return detector_forms.small


@pytest.fixture
def rows() -> Callable[..., Any]:
    return detector_forms.rows
