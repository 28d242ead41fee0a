"""An extractor of one's own: jostle extract FOLDER --extractor mean_features --weights random --import mean_features"""

from torch import nn

from jostle.extend import InputSpec, extractor

SPEC = InputSpec(frames=8, stride=4, resize=40, size=32)


class MeanFeatures(nn.Module):
    """Eight mixtures of the mean colours of frames, averaged over a window."""

    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(3, 8)

    def see(self, frames):
        """Return encodings (N, 8) of frames (N, 3, H, W); a frame is seen once, however many windows hold it."""
        return self.mix(frames.mean((2, 3)))

    def join(self, encodings):
        """Return features (B, 8) of windows of encodings (B, T, 8)."""
        return encodings.mean(1)


@extractor("mean_features", spec=SPEC, dim=8, frame_dim=8, source="train it")
def mean_features():
    """Mean colours, mixed."""
    return MeanFeatures()
