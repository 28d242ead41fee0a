"""Classification head over sliding-window means of a feature map."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from jostle.models.networks.frame_convolution import Triple

DROPPED = 0.5  # share of the features that is left out in training


def window_means(x: Tensor, window: Triple) -> Tensor:
    """Return (B, C, t, h, w) means of a window that slides by single places; of a smaller map, its mean.

    The window is the map of a training crop. Larger test crops are seen through it place by place, and one mean over
    all of their map would weigh the edges otherwise.
    """
    size = [min(side, there) for side, there in zip(window, x.shape[2:], strict=True)]
    if size == list(x.shape[2:]):
        return x.mean((2, 3, 4), keepdim=True)
    return F.avg_pool3d(x, size, stride=1)


class PooledHead(nn.Module):
    """Sliding-window means, and a linear classifier of their mean."""

    def __init__(self, channels: int, classes: int, window: Triple) -> None:
        super().__init__()
        self.window = window
        self.drop = nn.Dropout(DROPPED)
        self.proj = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, classes) logits of (B, C, T, H, W)."""
        output: Tensor = self.proj(self.drop(window_means(x, self.window).mean((2, 3, 4))))
        return output
