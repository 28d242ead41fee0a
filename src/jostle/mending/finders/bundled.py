"""Damage as the inspector of jostle finds it."""

from __future__ import annotations

from jostle.mending.damage_finders import damage_finder
from jostle.mending.inspected_frames import InspectorFinder
from jostle.mending.loading import load_inspector


@damage_finder("jostle")
def bundled() -> InspectorFinder:
    """The inspector that comes with jostle: a network and plain rules."""
    return InspectorFinder(load_inspector())
