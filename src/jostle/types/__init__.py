"""The nouns of the house; numpy only."""

from jostle.types.clip import Clip
from jostle.types.segments import Segments

__all__ = ["Clip", "Segments"]
