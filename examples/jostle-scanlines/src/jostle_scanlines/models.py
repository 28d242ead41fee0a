"""A small recogniser, and a feature extractor made of it."""

from __future__ import annotations

from torch import nn

from jostle.extend import Changes, InputSpec, Recogniser, Weights, changed, recogniser, with_weights

SPEC = InputSpec(frames=4, stride=4, resize=40, size=32)


@recogniser("scanline_colours", source="train it: jostle train", spec=SPEC)
def scanline_colours(weights: Weights, changes: Changes) -> Recogniser:
    """A linear layer on the mean colour of a clip, which scan lines darken."""

    def build(classes: int) -> nn.Module:
        return nn.Sequential(nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(3, classes))

    spec = changed("scanline_colours", SPEC, changes)
    return with_weights("scanline_colours", build, spec, weights, head="2.bias", classes=8)
