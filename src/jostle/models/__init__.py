"""Models that look at frames: what each expects to see is data beside it, so preparation is derived, never retyped."""

from jostle.models.extractor import Extractor, extractors, load_extractor
from jostle.models.input_spec import InputSpec
from jostle.models.recogniser import Recogniser, load_recogniser, recognisers

__all__ = [
    "Extractor",
    "InputSpec",
    "Recogniser",
    "extractors",
    "load_extractor",
    "load_recogniser",
    "recognisers",
]
