"""Data of the pages on damage of the reader's choice: the gallery of corruptions, and the breaking points of probes."""

from __future__ import annotations

from dataclasses import asdict
from functools import cache
from typing import Any

from jostle.corruptions.engine.corruption import corruptions
from jostle.corruptions.engine.spec import Entry, Spec, own_entry, profiles
from jostle.errors import DataError
from jostle.evaluation.results.run_analysis import processed_videos
from jostle.reporting.analysis.breaking_points import describe_probe, fragile_item, probe_of
from jostle.reporting.analysis.labels import short_name
from jostle.reporting.viewer.pages import heading, page
from jostle.reporting.viewer.runs import Snapshot, cell_key

OWN = "jostle"  # what jostle's own table is called among the profiles
VIDEOS = 1000  # that are offered
CLEAN_EXCERPT = "clean"


def gallery_page(snapshot: Snapshot) -> dict[str, Any]:
    """Return the videos and corruptions to choose from."""
    videos = processed_videos(snapshot.record)
    return page(
        "gallery",
        "Gallery of corruptions",
        run=heading(snapshot),
        videos=[{"key": snapshot.videos.of(name), "id": name} for name in videos[:VIDEOS]],
        of=len(videos),
        profiles=gallery_profiles(),
        clean=CLEAN_EXCERPT,
        media=f"/excerpts/{snapshot.key}",
    )


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


MOST_FRAMES = 1000  # of damage on a page
ITEMS = 1000  # of a probe that are listed, those that break first


def probe_page(snapshot: Snapshot) -> dict[str, Any]:
    """Return the breaking points of a run, the smallest first, each with its frailty curve."""
    record, probe = snapshot.record, probe_of(snapshot.record)
    if probe is None:
        raise DataError("this run was not probed; `jostle probe` finds its breaking points")
    points = sorted(probe.breaking_points, key=lambda one: (one.frames is None, one.frames or 0, one.video, one.item))
    found = [fragile_item(record, point) for point in points[:ITEMS]]
    return page(
        "probe",
        "Breaking points",
        run=heading(snapshot),
        summary=describe_probe(probe),
        rule=probe.full_rule,
        threshold=probe.threshold,
        kinds=[{"key": cell_key(kind), "kind": kind, "title": short_name(kind)} for kind in probe.kinds],
        items=[
            {
                **asdict(one.point),
                "text": one.item.text,
                "key": snapshot.videos.of(one.point.video),
                "fps": one.fps,
                "clean": one.item.score,
                "curve": {"positions": one.curve.positions, "scores": one.curve.scores, "lost": one.curve.lost},
            }
            for one in found
        ],
        of=len(points),
        clean=CLEAN_EXCERPT,
        media=f"/probes/{snapshot.key}",
    )


def trial_of(snapshot: Snapshot, key: str) -> tuple[Spec | None, int, int] | None:
    """Return the damage of a key `<kind>-<severity>-<first>-<frames>` of a probe; None if there is no such."""
    probe, parts = probe_of(snapshot.record), key.rsplit("-", 3)
    if probe is None or len(parts) != 4 or not all(part.isascii() and part.isdecimal() for part in parts[1:]):
        return None
    severity, first, frames = (int(part[:9]) for part in parts[1:])
    if not 1 <= frames <= MOST_FRAMES:
        return None
    if parts[0] == CLEAN_EXCERPT:
        return None, first, frames
    kind = next((kind for kind in probe.kinds if cell_key(kind) == parts[0]), None)
    if kind is None or severity not in probe.kinds[kind]:
        return None
    return Spec.parse(f"{kind}:{severity}"), first, frames
