"""Trunks with frozen batch norms."""

from __future__ import annotations

from typing import Self

from torch import Tensor, nn

from jostle.models.extractors.i3d import MIXED, I3dConfig, InceptionI3d
from jostle.models.networks.video_resnet import EXPANSION, VideoResidual, VideoStage, VideoStem

Norm = nn.BatchNorm2d | nn.BatchNorm3d


class FixedNorms(nn.Module):
    """Trunk whose norms can be frozen in training: statistics and affine parameters.

    So does every trunk that calls `fix_norms` once it is built.
    """

    norms_fixed = False

    def fix_norms(self) -> None:
        """Freeze the parameters of the norms."""
        self.norms_fixed = True
        for norm in self._norms():
            norm.requires_grad_(False)

    def train(self, mode: bool = True) -> Self:
        """Set the training mode, except for frozen norms."""
        super().train(mode)
        if self.norms_fixed:
            for norm in self._norms():
                norm.eval()
        return self

    def _norms(self) -> list[Norm]:
        return [module for module in self.modules() if isinstance(module, Norm)]


STAGES = ("Mixed_4f", "Mixed_5c")


class Trunk(FixedNorms):
    """I3D trunk without its classifier.

    Args:
        channels: of the frames.
        width: share of I3D's channels.
        fixed_norms: leave the norms as they are.
    """

    def __init__(self, channels: int, width: float, *, fixed_norms: bool = True) -> None:
        super().__init__()
        self._model = InceptionI3d(I3dConfig(classes=0, channels=channels, width=width))
        if fixed_norms:
            self.fix_norms()

    @staticmethod
    def channels(width: float) -> tuple[int, int]:
        """Return the numbers of channels of the two output stages."""
        config = I3dConfig(width=width)
        fine, coarse = (sum(config.narrowed(MIXED[stage][branch]) for branch in (0, 2, 4, 5)) for stage in STAGES)
        return fine, coarse

    def forward(self, clips: Tensor) -> list[Tensor]:
        """Return (B, 832, T / 4, H / 16, W / 16) and (B, 1024, T / 8, H / 32, W / 32)."""
        return self._model.stages_of(clips, *STAGES)


DEPTHS = (3, 4, 6, 3)
TIMES = (1, 1, 3, 3)  # steps that the first convolution of a stage's blocks sees
ALONE = 3  # parts, the stem and two stages, that see no other frame
WIDTH = 64  # channels of the stem


class SlowTrunk(FixedNorms):
    """Slow of 50 layers without its classifier.

    Args:
        width: share of Slow's channels.
        stride: frames that are pooled into a step behind it.
        fixed_norms: leave the norms as they are.
    """

    def __init__(self, width: float, stride: int, *, fixed_norms: bool = True) -> None:
        super().__init__()
        channels = base = self.base(width)
        blocks: list[nn.Module] = [VideoStem(3, base, 1)]
        for number, (depth, time) in enumerate(zip(DEPTHS, TIMES, strict=True)):
            out = EXPANSION * base * 2**number
            blocks.append(VideoStage(channels, out, depth, (time,), (1, 2, 2) if number else (1, 1, 1)))
            channels = out
        self.blocks = nn.Sequential(*blocks, nn.MaxPool3d((stride, 1, 1)) if stride > 1 else nn.Identity())
        if fixed_norms:
            self.fix_norms()

    @staticmethod
    def base(width: float) -> int:
        """Return the number of channels of the stem."""
        return max(round(WIDTH * width), 1)

    @classmethod
    def channels(cls, width: float) -> int:
        """Return the number of output channels."""
        return EXPANSION * cls.base(width) << len(DEPTHS) - 1

    def see(self, pictures: Tensor) -> Tensor:
        """Return (N, 512, H / 8, W / 8) of (N, 3, H, W): as far as each frame is seen by itself."""
        output: Tensor = self.blocks[:ALONE](pictures.transpose(0, 1)[None])  # frames as the steps of one clip
        return output[0].transpose(0, 1)

    @property
    def near(self) -> list[VideoResidual]:
        """Blocks of the last two stages, which take a frame and its neighbours."""
        stages = [self.get_submodule(f"blocks.{number}.res_blocks") for number in range(ALONE, ALONE + 2)]
        return [block for stage in stages for block in stage.children() if isinstance(block, VideoResidual)]

    def pooled(self, maps: Tensor) -> Tensor:
        """Return (B, 2048, T / stride, H / 32, W / 32) of (B, T, 2048, H / 32, W / 32) after the last block."""
        done: Tensor = self.blocks[ALONE + 2 :](maps.transpose(1, 2))
        return done

    def join(self, encodings: Tensor) -> Tensor:
        """Return (B, 2048, T / stride, H / 32, W / 32) of (B, T, 512, H / 8, W / 8), sizes of pictures rounded up."""
        output: Tensor = self.blocks[ALONE:](encodings.transpose(1, 2))
        return output
