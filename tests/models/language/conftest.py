"""Fixture that provides the torchvision and num2words that processors of transformers need."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

import pytest


@pytest.fixture
def torchvision_processors(torchvision_video: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the processors of transformers importable; SmolVLM's also needs num2words, which is replaced if missing."""
    pytest.importorskip("transformers")
    if importlib.util.find_spec("num2words") is None:
        module = importlib.import_module("transformers.models.smolvlm.processing_smolvlm")
        monkeypatch.setattr(module, "num2words", lambda number: f"number {number}")
