"""Damage as a benchmark knows it."""

from __future__ import annotations

import numpy as np

from jostle.core.types.video import VideoSource
from jostle.corruptions.engine.context import Mask
from jostle.corruptions.engine.damage_finder import Indices
from jostle.mending.damage_finders import damage_finder


@damage_finder("known")
class KnownDamage:
    """Oracle for studies: every frame that is not the original of its index."""

    name, fingerprint = "known", None

    def finder_for(self, clean: VideoSource, /) -> KnownDamage:
        """Return the finder for one video; it needs none of its frames."""
        return self

    def find_damaged(self, state: VideoSource, origin: Indices, /) -> Mask:
        return np.asarray(origin != np.arange(len(origin)))
