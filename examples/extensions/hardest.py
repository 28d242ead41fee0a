"""A loss of one's own: jostle train recogniser.toml loss=hardest --import hardest -o run."""

from torch.nn.functional import cross_entropy

from jostle.extend import loss


@loss("hardest")
def hardest(logits, labels, config):
    """Cross-entropy of the clip of a batch that is recognised worst; logits (B, S, K), labels (B,)."""
    each = cross_entropy(logits[:, 0], labels, label_smoothing=config.smoothing, reduction="none")
    return each.amax()
