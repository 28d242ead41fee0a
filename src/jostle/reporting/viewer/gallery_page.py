"""Data of the gallery page: every corruption at every severity, on a few seconds of any video."""

from __future__ import annotations

from functools import cache
from typing import Any

from jostle.corruptions.engine.corruption import corruptions
from jostle.corruptions.engine.profile import Entry, own_entry, profiles
from jostle.corruptions.engine.spec import Spec
from jostle.reporting.analysis.grid import short_name
from jostle.reporting.analysis.run_analysis import processed_videos
from jostle.reporting.viewer.run_pages import heading
from jostle.reporting.viewer.runs import Snapshot
from jostle.reporting.viewer.urls import cell_key

OWN = "jostle"  # what jostle's own table is called among the profiles
VIDEOS = 1000  # that are offered
CLEAN_EXCERPT = "clean"


def gallery_page(snapshot: Snapshot) -> dict[str, Any]:
    """Return the videos and corruptions to choose from."""
    videos = processed_videos(snapshot.record)
    return {
        "format": 1,
        "page": "gallery",
        "title": "Gallery of corruptions",
        "run": heading(snapshot),
        "videos": [{"key": snapshot.videos.of(name), "id": name} for name in videos[:VIDEOS]],
        "of": len(videos),
        "profiles": gallery_profiles(),
        "clean": CLEAN_EXCERPT,
        "media": f"/excerpts/{snapshot.key}",
    }


@cache
def gallery_profiles() -> list[dict[str, Any]]:
    """Every table of corruptions, jostle's own first."""
    own = {name: own_entry(name) for name in corruptions}
    profiles_listed = [_profile(OWN, "jostle's own table", None, own)]
    for name in profiles:
        profiles_listed.append(_profile(name, profiles[name].summary, name, dict(profiles[name].entries)))
    return profiles_listed


@cache
def spec_of(key: str) -> Spec | None:
    """The spec of a key of the gallery, `<corruption>:<severity>` by its key; None if there is no such."""
    return _specs().get(key)


@cache
def _specs() -> dict[str, Spec]:
    specs = {}
    for profile in gallery_profiles():
        for entry in profile["corruptions"]:
            for severity in range(1, entry["severities"] + 1):
                specs[f"{entry['key']}-{severity}"] = Spec.parse(f"{entry['spec']}:{severity}")
    return specs


def _profile(key: str, summary: str, prefix: str | None, entries: dict[str, Entry]) -> dict[str, Any]:
    listed = []
    for name, entry in sorted(entries.items()):
        spec = f"{prefix}/{name}" if prefix else name
        corruption = corruptions[entry.corruption]
        listed.append(
            {
                "key": cell_key(spec),
                "spec": spec,
                "title": short_name(name),
                "family": corruption.family,
                "level": corruption.level,
                "summary": corruption.summary,
                "severities": len(entry.values),
                "placements": None if entry.placements is None else list(entry.placements),
            }
        )
    return {"key": key, "summary": summary, "corruptions": listed}
