"""Value types: Clip, Segments, Truth, Predictions, VideoLabels, Inspection. Needs only NumPy."""

from jostle.core.types.clip import Clip
from jostle.core.types.predictions import Predictions
from jostle.core.types.segments import Segments
from jostle.core.types.truth import Spans, Truth
from jostle.core.types.video_labels import VideoLabels

__all__ = ["Clip", "Predictions", "Segments", "Spans", "Truth", "VideoLabels"]
