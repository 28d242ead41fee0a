"""A recogniser of one's own: jostle run puppets-p --model mean_colour --weights random --import mean_colour"""

from torch import nn

from jostle.extend import InputSpec, changed, recogniser, with_weights

SPEC = InputSpec(frames=4, stride=4, resize=40, size=32)


@recogniser("mean_colour", source="train it", spec=SPEC)
def mean_colour(weights, changes):
    """A linear layer on the mean colour of a clip."""

    def build(classes):
        return nn.Sequential(nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(3, classes))

    return with_weights("mean_colour", build, changed("mean_colour", SPEC, changes), weights, head="2.bias")
