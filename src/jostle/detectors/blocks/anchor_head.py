"""What is said of every anchor: towers of convolutions that all levels share."""

from __future__ import annotations

import torch
from torch import Tensor, nn

GROUPS = 32  # of the norms in the towers
LAYERS = 4  # of a tower


class AnchorHead(nn.Module):
    """For every anchor a logit a class and a box, by towers that all levels share."""

    def __init__(self, dim: int, anchors: int, outputs: int) -> None:
        super().__init__()
        self.outputs = outputs

        def tower() -> nn.Sequential:
            layers = ([nn.Conv1d(dim, dim, 3, padding=1), nn.GroupNorm(GROUPS, dim), nn.ReLU()] for _ in range(LAYERS))
            return nn.Sequential(*(part for layer in layers for part in layer))

        self.cls_tower = tower()
        self.bbox_tower = tower()
        self.cls_logits = nn.Conv1d(dim, anchors * outputs, 3, padding=1)
        self.bbox_pred = nn.Conv1d(dim, anchors * 2, 3, padding=1)

    def forward(self, pyramid: list[Tensor]) -> tuple[Tensor, Tensor]:
        """(B, N, outputs) logits and (B, N, 2) codes, place by place within a level."""
        logits = [self.cls_logits(self.cls_tower(x)) for x in pyramid]
        codes = [self.bbox_pred(self.bbox_tower(x)) for x in pyramid]
        return _by_anchor(logits, self.outputs), _by_anchor(codes, 2)


def _by_anchor(levels: list[Tensor], width: int) -> Tensor:
    return torch.cat([x.transpose(1, 2).reshape(len(x), -1, width) for x in levels], 1).float()
