"""Models that look at frames: what each expects to see is data beside it, so preparation is derived, never retyped."""

from jostle.models.extractor import Extractor, extractors, load_extractor
from jostle.models.input_spec import InputSpec

__all__ = ["Extractor", "InputSpec", "extractors", "load_extractor"]
