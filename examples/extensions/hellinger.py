"""A divergence of one's own: jostle train robust.toml consistency.divergence=hellinger --import hellinger -o run."""

from jostle.extend import divergence


@divergence("hellinger")
def hellinger(p, q, epsilon):
    """Squared Hellinger distance of errors for clean and corrupted input."""
    return 0.5 * (p.clamp(min=epsilon).sqrt() - q.clamp(min=epsilon).sqrt()).square().sum()
