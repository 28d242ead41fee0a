"""A data set that is drawn in seconds, for `jostle build --clean` itself."""

from __future__ import annotations

from jostle.datasets.dataset import Dataset, Request, dataset
from jostle.datasets.puppets.trimmed import puppets_trimmed


@dataset("few-clips", subsets=("test",), task="recognition")
def few_clips(request: Request) -> Dataset:
    """One clip a class."""
    return puppets_trimmed(request, counts={"test": 1})
