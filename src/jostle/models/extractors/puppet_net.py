"""PuppetNet, a small network for puppet videos: a stem per frame, and a head over 16 frames.

A network that sees windows whole computes every frame four times at a stride of 4. Here a frame is computed once, and
a corrupted frame costs one frame and the cheap heads of the windows around it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from jostle.models.extractors.extractor import extractor
from jostle.models.input_spec import InputSpec

SPEC = InputSpec(
    frames=16, stride=4, resize=(112, 112), size=112, crops="centre", mean=(0.45, 0.45, 0.45), std=(0.25, 0.25, 0.25)
)
FRAME_DIM = 160
DIM = 128
SOURCE = "made by python -m studies.detection weights, and installed with jostle"
STEP = 4  # frames that the head takes together first


class PuppetNetConvolution(nn.Module):
    """3x3 convolution, batch norm and ReLU; `halved` takes every second pixel."""

    def __init__(self, channels: int, out: int, *, halved: bool = False) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, out, 3, stride=2 if halved else 1, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(out)

    def forward(self, x: Tensor) -> Tensor:
        if self.training or self.norm.training:  # the norm alone is in training mode while its statistics adapt
            return F.relu(self.norm(self.conv(x)))
        # The norm is a fixed scale and shift now, which the weights can carry: one pass over the pixels instead of two.
        assert self.norm.running_mean is not None
        assert self.norm.running_var is not None
        scale = self.norm.weight * torch.rsqrt(self.norm.running_var + self.norm.eps)
        weight, bias = self.conv.weight * scale[:, None, None, None], self.norm.bias - self.norm.running_mean * scale
        return F.relu(F.conv2d(x, weight, bias, self.conv.stride, 1), inplace=True)


class PuppetNetResidual(nn.Module):
    """Residual block of one convolution."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.inner = PuppetNetConvolution(channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = x + self.inner(x)
        return output


class PuppetNet(nn.Module):
    """Stem, head and, for training, a classifier of windows.

    Args:
        classes: of the classifier; the last one is background.
    """

    replayable = True

    def __init__(self, classes: int = 17) -> None:
        super().__init__()
        self.trunk = nn.Sequential(
            PuppetNetConvolution(3, 16, halved=True),  # (N, 16, 56, 56)
            PuppetNetConvolution(16, 32, halved=True),
            PuppetNetResidual(32),  # (N, 32, 28, 28)
            PuppetNetConvolution(32, 64, halved=True),
            PuppetNetResidual(64),  # (N, 64, 14, 14)
            PuppetNetConvolution(64, 128, halved=True),  # (N, 128, 7, 7)
        )
        self.where = nn.Conv2d(128, 16, 1)  # pooling alone would forget where in the frame a thing is
        self.seen = nn.Linear(2 * 128 + 16 * 49, FRAME_DIM)
        self.still, self.moving = nn.BatchNorm1d(FRAME_DIM), nn.BatchNorm1d(FRAME_DIM)
        self.first = nn.Conv1d(2 * FRAME_DIM, 256, STEP, stride=STEP)
        self.later = nn.ModuleList([nn.Conv1d(256, 256, 2) for _ in range(SPEC.frames // STEP - 1)])
        self.last = nn.Linear(256, DIM)
        self.classifier = nn.Linear(DIM, classes)

    def see(self, frames: Tensor) -> Tensor:
        """Return (N, FRAME_DIM) of frames (N, 3, 112, 112), each by itself."""
        x = self.trunk(frames.contiguous(memory_format=torch.channels_last))
        pooled = torch.cat([x.mean((2, 3)), x.amax((2, 3)), self.where(x).flatten(1)], dim=1)
        output: Tensor = self.seen(pooled)
        return output

    def join(self, encodings: Tensor) -> Tensor:
        """Return (B, DIM) of what was seen in windows of 16 frames (B, 16, FRAME_DIM)."""
        x = encodings.transpose(1, 2)
        # Neighbouring frames differ by little, and this little tells up from down: it gets a scale of its own.
        motion = F.pad(self.moving(x[..., 1:] - x[..., :-1]), (1, 0))
        x = F.relu(self.first(torch.cat([self.still(x), motion], dim=1)))  # (B, 256, 4)
        for layer in self.later:
            x = F.relu(layer(x))
        output: Tensor = self.last(x[..., 0])
        return output

    def forward(self, encodings: Tensor) -> Tensor:
        """Return (B, classes) logits of windows."""
        output: Tensor = self.classifier(F.relu(self.join(encodings)))
        return output


@extractor("puppet_net", spec=SPEC, dim=DIM, frame_dim=FRAME_DIM, least_frames=SPEC.frames, source=SOURCE)
def puppet_net() -> PuppetNet:
    """For films of puppets; its weights come with jostle."""
    return PuppetNet()
