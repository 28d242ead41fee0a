"""Recipes: benchmarks as data, with videos, corruptions, placements, sampling and metric."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Literal

from jostle.core.registry import Registry
from jostle.corruptions.engine.corruption import corruptions
from jostle.corruptions.engine.placement import Rules
from jostle.corruptions.engine.placement import parse_placement as parse_placement
from jostle.corruptions.engine.spec import Spec
from jostle.errors import BadValue, UnknownName
from jostle.evaluation.recipes.sampling import Sampling
from jostle.metrics.metric import find_metric
from jostle.metrics.protocol import check_tious, protocols
from jostle.metrics.robustness import split_cell

CLEAN = "clean"  # the first cell of every benchmark
_NAME = re.compile(r"[a-z0-9]+([._-][a-z0-9]+)*")


@dataclass(frozen=True)
class Cell:
    """One cell of a benchmark: corruptions at severities and a placement."""

    name: str  # the specs joined by `+`, then `@` and the placement if the recipe sets one
    specs: tuple[str, ...]  # corruptions applied to a video, in order; empty for the clean cell
    placement: str | None  # which frames are corrupted; None for the default of the specs
    group: str  # its group in the recipe; empty for the clean cell
    counted: bool  # whether the means over all cells include it

    @property
    def parsed(self) -> list[Spec]:
        """The specs of the cell, parsed."""
        return [Spec.parse(spec) for spec in self.specs]

    @property
    def slug(self) -> str:
        """The name as part of a file name, on any system.

        >>> benchmarks["thumos14-c"]["thumos14-c/black_frame:1@at:10%x5"].slug
        'thumos14-c-black_frame-1@at-10pct-x5'
        """
        return slugify(self.name)


def slugify(text: str) -> str:
    """Replace characters in specs and placements that some file systems refuse."""
    return text.replace("%x", "pct-x").replace("%", "pct").replace("/", "-").replace(":", "-")


CLEAN_CELL = Cell(CLEAN, (), None, "", False)


@dataclass(frozen=True)
class Group:
    """Group of cells: the product of corruptions, severities and placements.

    Attributes:
        name: name for `--cells group:NAME`.
        corruptions: specs without severity, as `kinetics-c/fog`; each expands to its severities.
        severities: which severities; empty for all.
        cells: single cells: `fog:3`, or `fog:3+shot_noise:2` for one corruption after the other.
        placements: placements of all cells, each a cell of its own; empty for the defaults of the specs.
        beside: an additional study: run only when requested, and excluded from the mean over all cells.
    """

    name: str
    corruptions: tuple[str, ...] = ()
    severities: tuple[int, ...] = ()
    cells: tuple[str, ...] = ()
    placements: tuple[str, ...] = ()
    beside: bool = False

    def cells_for(self, rounding: Rules) -> list[Cell]:
        """Return the cells of the group."""
        written = [*self._severities(), *self.cells]
        if not written:
            raise BadValue(f"group {self.name}: it has no cells; give corruptions, or cells, or both")
        return [self._cell(text, placement, rounding) for text in written for placement in self.placements or (None,)]

    def _severities(self) -> Iterable[str]:
        for corruption in self.corruptions:
            spec = Spec.parse(corruption)
            plain = str(spec).rpartition(":")[0]
            if ":" in corruption:
                raise BadValue(f"group {self.name}: {corruption} has a severity; write {plain}, or put it into cells")
            for severity in self.severities or range(1, len(spec.entry.values) + 1):
                yield f"{plain}:{severity}"

    def _cell(self, text: str, placement: str | None, rounding: Rules) -> Cell:
        if "@" in text:
            raise BadValue(
                f"group {self.name}: {text}: a cell takes its placement from the group; move it to placements"
            )
        specs = [Spec.parse(part.strip()) for part in text.split("+")]
        if any(spec.severity == 0 for spec in specs):
            raise BadValue(f"group {self.name}: {text}: severity 0 is the clean cell, which is always there")
        name = "+".join(map(str, specs)) + (f"@{placement}" if placement else "")
        if placement is None and rounding == "activitynet":
            own = {spec.placement for spec in specs}
            if len(own) > 1:
                raise BadValue(f"group {self.name}: {text}: the specs have different placements; give one placement")
            placement = own.pop()
        if placement is not None:
            placement = _add_rounding(placement, rounding)
            parse_placement(placement)  # fails before any work is done
        return Cell(name, tuple(map(str, specs)), placement, self.name, not self.beside)


def _add_rounding(placement: str, rounding: Rules) -> str:
    """Add the recipe's rounding rule to a placement in the middle of actions; `thumos14` is the default rule."""
    plain = placement.startswith("centre:") and "@" not in placement
    return f"{placement}@{rounding}" if plain and rounding != "thumos14" else placement


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Definition of a benchmark as data.

    Attributes:
        name: lower-case name for commands and folders.
        version: incremented when the recipe changes, so that results can cite it.
        dataset: the name of a data set, of `jostle names datasets`.
        subset: part of it that is evaluated; by default that of the data set; everything in a folder without subsets.
        task: `detection` (of actions in long videos), `recognition` (one label a video), `frames` (one a frame),
            `objects` (boxes in frames), `questions` (with options), `moments` (that sentences describe), or one of a
            plugin.
        metric: metric of a cell, of `jostle names metrics`.
        groups: groups of cells besides the clean one, in the order of the tables.
        title: name as papers print it; by default `name`.
        k: number of guesses of a recogniser, or the radius of pm-k in frames.
        labels_of: labels that pm-k compares a neighbour with: its `own`, or its `anchor`'s.
        protocol: evaluation protocol of detections.
        tious: overlap thresholds, over which the value of a cell is averaged; by default the protocol's.
        sampling: selection of frames for a recogniser; None for the model's own.
        rounding: rule that converts a share of an action to frames.
        items: number of videos, or anchors, in the publication.
        cites: keys of the references.
        notes: what the publication leaves open or does differently.
        summary: one sentence.
        base: recipe that this one applies to other data, if any; see `on`.

    >>> found = benchmarks["thumos14-c"]
    >>> found.cells[0].name, found.cells[1].name, sum(cell.counted for cell in found.cells)
    ('clean', 'thumos14-c/black_frame:1', 15)
    """

    name: str
    version: int
    dataset: str
    subset: str = ""
    task: str
    metric: str
    groups: tuple[Group, ...] = ()
    title: str = ""
    k: int | None = None
    labels_of: Literal["own", "anchor"] | None = None
    protocol: str | None = None
    tious: tuple[float, ...] = ()
    sampling: Sampling | None = None
    rounding: Rules = "thumos14"
    items: int | None = None
    cites: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    summary: str = ""
    base: str = ""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.base or self.name) or (self.base and not self.name.startswith(f"{self.base} on ")):
            raise BadValue(f"a benchmark is named in a-z, 0-9, '-', '_' and '.', got {self.name!r}")
        if self.version < 1:
            raise BadValue(f"{self.name}: version must be at least 1, got {self.version}")
        if self.k is not None and self.k < 1:
            raise BadValue(f"{self.name}: k must be at least 1, got {self.k}")
        if self.protocol is not None:
            chosen = self.tious or protocols[self.protocol].tious
            object.__setattr__(self, "tious", tuple(check_tious(chosen).tolist()))
        if not self.title:
            object.__setattr__(self, "title", self.name)

    def on(self, dataset: str, subset: str, called: str) -> Recipe:
        """Return the recipe applied to other data, under a name that distinguishes it from the benchmark.

        Args:
            called: name of the other data.

        >>> moved = benchmarks["thumos14-c"].on("folder", "", "folder kitchen")
        >>> moved.name, moved.title, moved.base
        ('thumos14-c on folder kitchen', 'THUMOS14-C on folder kitchen', 'thumos14-c')
        """
        return replace(
            self,
            name=f"{self.name} on {called}",
            title=f"{self.title} on {called}",
            dataset=dataset,
            subset=subset,
            items=None,
            base=self.name,
        )

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The clean cell, then those of every group; computed on first use, as that loads the corruptions."""
        cells = [CLEAN_CELL]
        names = [group.name for group in self.groups]
        for name in names:
            if not _NAME.fullmatch(name) or names.count(name) > 1:
                raise BadValue(f"{self.name}: groups have different names in a-z, 0-9 and '-', got {name!r}")
        for group in self.groups:
            cells += group.cells_for(self.rounding)
        for key in ("name", "slug"):
            groups: dict[str, str] = {}
            for cell in cells:
                value = getattr(cell, key).casefold()
                if value in groups:
                    raise BadValue(f"{self.name}: {cell.name} is in {groups[value]} and in {cell.group}; remove one")
                groups[value] = cell.group
        return tuple(cells)

    def __getitem__(self, name: str) -> Cell:
        """Return the cell of a name."""
        for cell in self.cells:
            if cell.name == name:
                return cell
        raise UnknownName(f"cell of {self.name}", name, [cell.name for cell in self.cells])

    @property
    def measure(self) -> str:
        """Name of the value of a cell, as in `mAP@0.5`."""
        return find_metric(self.metric).label(self)

    @property
    def corruption_groups(self) -> dict[str, str]:
        """Group of each counted corruption, for `robustness`; a corruption in two groups is left out."""
        return self._only_one(lambda cell: {cell.group})

    @property
    def families(self) -> dict[str, str]:
        """Family (noise, blur, ...) of each counted corruption, for `robustness`; chains of several are left out."""
        return self._only_one(lambda cell: {corruptions[spec.entry.corruption].family for spec in cell.parsed})

    def _only_one(self, names_of: Callable[[Cell], set[str]]) -> dict[str, str]:
        names: dict[str, set[str]] = {}
        for cell in self.cells:
            if cell.counted:
                names.setdefault(split_cell(cell.name)[0], set()).update(names_of(cell))
        return {corruption: own.pop() for corruption, own in names.items() if len(own) == 1}

    def content(self) -> dict[str, Any]:
        """Return everything that decides results as plain values, with the parameters of each spec."""
        plain = asdict(replace(self, groups=(), title="", items=None, cites=(), notes=(), summary=""))
        for word in ("groups", "title", "items", "cites", "notes", "summary", "rounding", "base"):
            del plain[word]
        return {"format": 1, **plain, "cells": [_resolve_cell(cell) for cell in self.cells]}

    @cached_property
    def fingerprint(self) -> str:
        """Hash of `content`: runs with the same fingerprint are of the same benchmark."""
        return content_fingerprint(self.content())


def content_fingerprint(content: Mapping[str, Any]) -> str:
    """Return `sha256:` and the hash of the content of a recipe."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _resolve_cell(cell: Cell) -> dict[str, Any]:
    done = [
        {
            "spec": str(spec),
            "corruption": spec.entry.corruption,
            "value": spec.value,
            "options": dict(spec.entry.options),
            "placement": cell.placement or spec.placement,
        }
        for spec in cell.parsed
    ]
    return {"cell": cell.name, "group": cell.group, "counted": cell.counted, "done": done}


benchmarks: Registry[Recipe] = Registry("benchmark", "jostle.evaluation.recipes")


def benchmark(name: str, **facts: Any) -> Callable[[Callable[[], tuple[Group, ...]]], None]:
    """Register a recipe: the decorator takes its fields, the decorated function returns its groups."""

    def register(groups: Callable[[], tuple[Group, ...]]) -> None:
        summary = " ".join((groups.__doc__ or "").strip().split("\n\n")[0].split())
        benchmarks.add(name, Recipe(name=name, groups=groups(), summary=summary, **facts))

    return register


def profile_names(profile: str, *names: str) -> tuple[str, ...]:
    """Return names of a profile as specs without severity.

    >>> profile_names("kinetics-c", "rain", "fog")
    ('kinetics-c/rain', 'kinetics-c/fog')
    """
    return tuple(f"{profile}/{name}" for name in names)
