"""What there is: names, the state of the machine, and a demonstration."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.errors import UnknownName

if TYPE_CHECKING:
    from jostle.demo import Demo
    from jostle.doctor import Health

DemoProgress = Callable[[str, int, int], None]


def names(kind: str, *, profile: str | None = None, level: str | None = None) -> list[str]:
    """The registered names of one kind, sorted.

    Args:
        kind: `corruptions`, `profiles`, `placements`, `protocols`, `metrics`, `formats`, `styles`, `detectors`,
            `extractors` or `datasets`.
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


def doctor() -> Health:
    """What is installed and working here."""
    from jostle.doctor import examine

    return examine()


def demo(
    out: str | Path = "demo", *, seed: int = 0, jobs: int | None = None, progress: DemoProgress | None = None
) -> Demo:
    """The whole loop on the embedded data set: films made, corrupted, looked at by two detectors, and scored.

    Args:
        out: folder for predictions, scores and a page that shows every corruption.
        seed: of the films and of all corruptions.
        jobs: processes; by default one a core.
        progress: called with (what is being done, how much is done, how much there is).
    """
    from jostle.api.corrupting import cores
    from jostle.api.data import load_dataset
    from jostle.api.detecting import need_torch

    need_torch("the demo")
    from jostle.demo import write_demo

    many = cores() if jobs is None else jobs
    told = None if progress is None else partial(progress, "making films")
    data = load_dataset("puppets", "test", seed=seed, jobs=many, progress=told)
    return write_demo(Path(out), data, seed=seed, jobs=many, progress=progress)


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
    from jostle.datasets.format import formats

    return formats


def _detectors() -> Iterable[str]:
    from jostle.detectors.detector import detectors

    return detectors


def _extractors() -> Iterable[str]:
    from jostle.models.extractor import extractors

    return extractors


def _datasets() -> Iterable[str]:
    from jostle.datasets.dataset import datasets

    return datasets


def _styles() -> Iterable[str]:
    from jostle.diagnosis.style import styles

    return styles


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
    "datasets": _datasets,
}
