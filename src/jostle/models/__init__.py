"""Networks, their weights and their preprocessing."""

from jostle.models.extractors.extractor import Extractor, extractors, load_extractor
from jostle.models.input_spec import InputSpec
from jostle.models.recognition.recogniser import Recogniser, load_recogniser, recognisers

__all__ = [
    "Extractor",
    "InputSpec",
    "Recogniser",
    "extractors",
    "load_extractor",
    "load_recogniser",
    "recognisers",
]
