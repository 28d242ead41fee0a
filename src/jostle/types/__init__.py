"""The nouns of the house; numpy only."""

from jostle.types.clip import Clip
from jostle.types.predictions import Predictions
from jostle.types.segments import Segments
from jostle.types.truth import Spans, Truth
from jostle.types.video_labels import VideoLabels

__all__ = ["Clip", "Predictions", "Segments", "Spans", "Truth", "VideoLabels"]
