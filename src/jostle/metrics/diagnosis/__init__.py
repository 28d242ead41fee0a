"""Error diagnosis of temporal action detection (DETAD, Alwassel et al. 2018)."""

from __future__ import annotations

from jostle.metrics.diagnosis.comparison import Change, compare_diagnoses
from jostle.metrics.diagnosis.diagnosis import MENDED_FAULTS, Diagnosis, MendedFault, diagnose
from jostle.metrics.diagnosis.style import Buckets, Style, styles

__all__ = [
    "MENDED_FAULTS",
    "Buckets",
    "Change",
    "Diagnosis",
    "MendedFault",
    "Style",
    "compare_diagnoses",
    "diagnose",
    "styles",
]
