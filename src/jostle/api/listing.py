"""What there is: names, and the state of the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from jostle.errors import BadValue, UnknownName

if TYPE_CHECKING:
    from pathlib import Path

    from jostle.doctor import Health
    from jostle.loading.described import Described
    from jostle.papers.table import PublishedTable


def names(kind: str, *, profile: str | None = None, level: str | None = None) -> list[str]:
    """The registered names of one kind, sorted.

    Args:
        kind: `corruptions`, `profiles`, `placements`, `protocols`, `metrics`, `formats`, `styles`, `detectors`,
            `extractors`, `models`, `objectdetectors`, `datasets`, `benchmarks`, `published` or `trackers`.
        profile: list the names of this profile's table instead of jostle's own.
        level: only corruptions of this level: frame, clip, codec or time.

    >>> names("corruptions", level="time")[:3]
    ['box_jumble', 'frame_rate', 'freeze']
    """
    if kind not in KINDS:
        raise UnknownName("kind of name", kind, KINDS)
    if kind != "corruptions":
        return list(KINDS[kind]())
    from jostle.corrupting.corruption import corruptions
    from jostle.corrupting.profile import own_entry, profiles

    table = profiles[profile].entries if profile else {name: own_entry(name) for name in corruptions}
    return sorted(n for n, entry in table.items() if level in (None, corruptions[entry.corruption].level))


def published(name: str) -> PublishedTable:
    """A table of a paper, as data; `names("published")` lists them.

    >>> table = published("thumos14-c/table-1")
    >>> table.source, dict(table.rows[0].values)["clean"]
    ('Zeng et al. 2024, table 1', 59.17)
    """
    from jostle.papers.table import published as tables

    return tables[name]


def origins(kind: str, *, profile: str | None = None, level: str | None = None) -> dict[str, str]:
    """Where each part that `names` lists comes from: `jostle`, or the package or module that brings it.

    >>> set(origins("placements").values())
    {'jostle'}
    """
    from jostle.plugins import part

    listed = names(kind, profile=profile, level=level)
    found = {name: part("profiles", profile) if profile else part(kind, name) for name in listed}
    return {name: "jostle" if one is None else str(one.origin) for name, one in found.items()}


def describe(kind: str) -> list[Described]:
    """What each of `models`, `extractors`, `detectors` or `objectdetectors` wants to see, and where its weights are.

    >>> [one.weights for one in describe("models") if one.name == "puppet_frames"]
    ['clean or robust: with jostle']
    """
    from jostle.loading.described import DESCRIBED, described

    if kind not in DESCRIBED:
        raise UnknownName("shelf of networks", kind, DESCRIBED)
    return described(kind)


def fetch_weights(
    kind: str, name: str, weights: str = "public", *, progress: Callable[[int, int], None] | None = None
) -> Path:
    """Have weights fetched now, to be used later: the file or folder is then in the cache, where names find it.

    Args:
        kind: `models`, `extractors`, `detectors` or `objectdetectors`.
        name: of the network.
        weights: `public`, or `hf:ORG/NAME[/file]`.
        progress: called with (mebibytes there, mebibytes in all).

    Raises:
        ResourceError: if they cannot be had; the message says what to fetch by hand, and where to put it.
    """
    from jostle.fetching.weights import weights_path
    from jostle.loading.installed import need_torch
    from jostle.loading.names import check_extractor, check_known, names_of
    from jostle.progress import shown_progress
    from jostle.shipped.places import is_fetched

    if not is_fetched(weights):
        raise BadValue(f"weights are fetched by public or hf:ORG/NAME[/file], not by {weights!r}")
    need_torch("weights")
    if kind == "extractors":
        check_extractor(name)
        kind = kind if name in names_of(kind) else "models"  # every recogniser is an extractor as well
    else:
        check_known(kind, name)
    with shown_progress(f"fetching weights of {name}, MiB", progress) as told:
        return weights_path(kind, name, weights, progress=told)


def doctor() -> Health:
    """What is installed and working here."""
    from jostle.doctor import examine

    return examine()


def _profiles() -> Iterable[str]:
    from jostle.corrupting.profile import profiles

    return profiles


def _placements() -> Iterable[str]:
    from jostle.corrupting.placement import placements

    return placements


def _corruptions() -> Iterable[str]:
    return names("corruptions")


def _protocols() -> Iterable[str]:
    from jostle.metrics.protocol import protocols

    return protocols


def _metrics() -> Iterable[str]:
    from jostle.metrics.metric import metrics

    return metrics


def _formats() -> Iterable[str]:
    from jostle.filing.format import formats

    return formats


def _detectors() -> Iterable[str]:
    from jostle.detectors.detector import detectors

    return detectors


def _extractors() -> Iterable[str]:
    from jostle.models.extractor import extractors

    return extractors


def _models() -> Iterable[str]:
    from jostle.models.recogniser import recognisers

    return recognisers


def _object_detectors() -> Iterable[str]:
    from jostle.models.object_detector import object_detectors

    return object_detectors


def _datasets() -> Iterable[str]:
    from jostle.datasets.dataset import datasets

    return datasets


def _benchmarks() -> Iterable[str]:
    from jostle.benchmarks.recipe import benchmarks

    return benchmarks


def _trackers() -> Iterable[str]:
    from jostle.trackers.tracker import trackers

    return trackers


def _styles() -> Iterable[str]:
    from jostle.diagnosis.style import styles

    return styles


def _published() -> Iterable[str]:
    from jostle.papers.table import published as tables

    return tables


KINDS: dict[str, Callable[[], Iterable[str]]] = {
    "corruptions": _corruptions,
    "profiles": _profiles,
    "placements": _placements,
    "protocols": _protocols,
    "metrics": _metrics,
    "formats": _formats,
    "styles": _styles,
    "detectors": _detectors,
    "extractors": _extractors,
    "models": _models,
    "objectdetectors": _object_detectors,
    "datasets": _datasets,
    "benchmarks": _benchmarks,
    "published": _published,
    "trackers": _trackers,
}
