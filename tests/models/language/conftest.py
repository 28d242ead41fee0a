"""torchvision for processors of transformers, wherever its Python half is enough, and num2words where it is missing."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType

import pytest


@pytest.fixture
def torchvision_processors(torchvision_video: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """The processors of transformers, which need torchvision; SmolVLM's spells numbers by num2words."""
    pytest.importorskip("transformers")
    if importlib.util.find_spec("num2words") is None:
        module = importlib.import_module("transformers.models.smolvlm.processing_smolvlm")
        monkeypatch.setattr(module, "num2words", lambda number: f"number {number}")
