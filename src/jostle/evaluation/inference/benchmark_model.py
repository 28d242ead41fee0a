"""Model of a benchmark run, as the runner takes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from jostle.evaluation.inference.jobs import Predictor
from jostle.evaluation.run_folder.metadata import ModelFacts, TreatmentFacts


@dataclass(frozen=True, kw_only=True)
class BenchmarkModel(TreatmentFacts, ModelFacts):
    """Model of a benchmark run: how it is loaded, and what a run records of it."""

    load: Callable[[], Predictor[Any]] = field(kw_only=False)  # predictor factory, called once per process
    requested: tuple[str, ...] = ()  # names or import paths that the caller gave for it and its extractor
    finder: str | None = None  # name or import path that the caller gave for what finds corrupted frames
    apart: bool = False  # whether the model runs in processes of its own, which workers call
    source_statistics: bytes | None = None  # of clean videos, as a file that the run folder keeps; None if not needed
