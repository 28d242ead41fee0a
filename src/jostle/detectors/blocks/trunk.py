"""I3D as the trunk of a detector of frames."""

from __future__ import annotations

from torch import Tensor

from jostle.detectors.blocks.fixed_norms import FixedNorms
from jostle.models.i3d import MIXED, I3dConfig, InceptionI3d

STAGES = ("Mixed_4f", "Mixed_5c")


class Trunk(FixedNorms):
    """I3D without its classifier.

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
        """Of the two stages."""
        config = I3dConfig(width=width)
        fine, coarse = (sum(config.narrowed(MIXED[stage][branch]) for branch in (0, 2, 4, 5)) for stage in STAGES)
        return fine, coarse

    def forward(self, clips: Tensor) -> list[Tensor]:
        """(B, 832, T / 4, H / 16, W / 16) and (B, 1024, T / 8, H / 32, W / 32)."""
        return self._model.stages_of(clips, *STAGES)
