"""A detector of one's own: jostle train detector.toml --import pointwise, then detect and run by --model pointwise"""

from dataclasses import dataclass

from torch import nn

from jostle.extend import PointConfig, PointwiseDetector, detector


@dataclass(frozen=True, kw_only=True)
class PointwiseConfig(PointConfig):
    """Settings, each of which a TOML file may change under [settings]."""

    input_dim: int = 8
    classes: int = 2
    max_length: int = 64
    levels: int = 1


class Pointwise(PointwiseDetector[PointwiseConfig]):
    """One convolution over features."""

    def __init__(self, config):
        super().__init__(config)
        self.net = nn.Conv1d(config.input_dim, config.classes + 2, 3, padding=1)

    def predict(self, features):
        """Return logits (B, T, K) and distances (B, T, 2) of features (B, C, T)."""
        x = self.net(features).transpose(1, 2)
        return x[..., 2:], x[..., :2].exp()


@detector(Pointwise)
def pointwise():
    """One convolution that predicts at every step."""
    return PointwiseConfig()
