"""Why a detector's score is what it is: kinds of error, sensitivity, misses (DETAD, Alwassel et al. 2018)."""

from __future__ import annotations

from jostle.diagnosis.change import Change, change
from jostle.diagnosis.diagnosis import Diagnosis, diagnose
from jostle.diagnosis.faults import MENDED_FAULTS, MendedFault
from jostle.diagnosis.style import Buckets, Style, styles

__all__ = ["MENDED_FAULTS", "Buckets", "Change", "Diagnosis", "MendedFault", "Style", "change", "diagnose", "styles"]
