"""A recipe: a benchmark as data. Which videos, struck how and where, looked at how, and scored by which rules."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Literal

from jostle.core.registry import Registry
from jostle.corruptions.engine.placement import Rules
from jostle.corruptions.engine.placement import parse as parse_placement
from jostle.corruptions.engine.spec import Spec
from jostle.errors import BadValue, UnknownName
from jostle.evaluation.recipes.sampling import Sampling
from jostle.metrics.metric import metrics
from jostle.metrics.protocol import checked_tious, protocols
from jostle.metrics.robustness import split_cell

CLEAN = "clean"  # the first cell of every benchmark
_NAME = re.compile(r"[a-z0-9]+([._-][a-z0-9]+)*")

Task = Literal["detection", "recognition", "frames", "objects"]


@dataclass(frozen=True)
class Cell:
    """One square of a benchmark.

    Attributes:
        name: as it is written: the specs joined by `+`, then `@` and the placement where the recipe asks for one.
        specs: what is done to a video, in order; nothing for the clean cell.
        placement: which frames are struck; None leaves that to the specs.
        group: the group of the recipe that it stands in; empty for the clean cell.
        counted: whether the means over all cells include it.
    """

    name: str
    specs: tuple[str, ...]
    placement: str | None
    group: str
    counted: bool

    @property
    def parsed(self) -> list[Spec]:
        """The specs, ready to be applied."""
        return [Spec.parse(spec) for spec in self.specs]

    @property
    def slug(self) -> str:
        """The name as part of a file name, on any system.

        >>> benchmarks["thumos14-c"]["thumos14-c/black_frame:1@at:10%x5"].slug
        'thumos14-c-black_frame-1@at-10pct-x5'
        """
        return safe(self.name)


def safe(text: str) -> str:
    """Text of specs and placements without what some file systems refuse."""
    return text.replace("%x", "pct-x").replace("%", "pct").replace("/", "-").replace(":", "-")


CLEAN_CELL = Cell(CLEAN, (), None, "", False)


@dataclass(frozen=True)
class Group:
    """Cells that belong together: what is named, at every severity asked for, at every placement asked for.

    Attributes:
        name: what `--cells group:NAME` is given.
        corruptions: written without severity, as `kinetics-c/fog`; each stands for its severities.
        severities: which; empty for all there are.
        cells: single ones, written out: `fog:3`, or `fog:3+shot_noise:2` for one after the other.
        placements: where all of them strike, each a cell of its own; empty where the specs say it themselves.
        beside: a study beside the benchmark: run only when it is asked for, and in no mean over all cells.
    """

    name: str
    corruptions: tuple[str, ...] = ()
    severities: tuple[int, ...] = ()
    cells: tuple[str, ...] = ()
    placements: tuple[str, ...] = ()
    beside: bool = False

    def made(self, rounding: Rules) -> list[Cell]:
        """The cells of the group."""
        written = [*self._severities(), *self.cells]
        if not written:
            raise BadValue(f"group {self.name}: no cells; give corruptions, or cells, or both")
        return [self._cell(text, place, rounding) for text in written for place in self.placements or (None,)]

    def _severities(self) -> Iterable[str]:
        for corruption in self.corruptions:
            spec = Spec.parse(corruption)
            plain = str(spec).rpartition(":")[0]
            if ":" in corruption:
                raise BadValue(f"group {self.name}: {corruption} has a severity; write {plain}, or put it into cells")
            for severity in self.severities or range(1, len(spec.entry.values) + 1):
                yield f"{plain}:{severity}"

    def _cell(self, text: str, place: str | None, rounding: Rules) -> Cell:
        if "@" in text:
            raise BadValue(f"group {self.name}: {text}: where cells strike is said by the group's placements")
        specs = [Spec.parse(part.strip()) for part in text.split("+")]
        if any(spec.severity == 0 for spec in specs):
            raise BadValue(f"group {self.name}: {text}: severity 0 is the clean cell, which is always there")
        name = "+".join(map(str, specs)) + (f"@{place}" if place else "")
        if place is None and rounding == "activitynet":
            own = {spec.placement for spec in specs}
            if len(own) > 1:
                raise BadValue(f"group {self.name}: {text}: the specs strike in different places; give a placement")
            place = own.pop()
        if place is not None:
            place = _rounded(place, rounding)
            parse_placement(place)  # before any work is done
        return Cell(name, tuple(map(str, specs)), place, self.name, not self.beside)


def _rounded(place: str, rounding: Rules) -> str:
    """A placement in the middle of actions under the recipe's rule; `thumos14` is what it means by itself."""
    plain = place.startswith("centre:") and "@" not in place
    return f"{place}@{rounding}" if plain and rounding != "thumos14" else place


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A benchmark.

    Attributes:
        name: in lower case, as commands and folders have it.
        version: goes up when the recipe changes, so that numbers can say which one they are of.
        dataset: the name of a data set, of `jostle names datasets`.
        subset: the part of it that is tested on; by default the one that results are given for, of a folder without
            subsets all.
        task: `detection` (of actions in long videos), `recognition` (one label a video), `frames` (one a frame) or
            `objects` (boxes in frames).
        metric: what a cell is measured by, of `jostle names metrics`.
        groups: the cells besides the clean one, in the order of the tables.
        title: the name as papers print it; by default `name`.
        k: how many guesses a recogniser has, or the radius of pm-k in frames.
        labels_of: what pm-k holds a neighbour to: its `own` labels, or its `anchor`'s.
        protocol: whose rules detections are scored by.
        tious: thresholds of overlap, whose mean is the value of a cell; by default the protocol's own.
        sampling: which frames a recogniser is shown; None for what the model says.
        rounding: whose rule turns a share of an action into frames.
        items: how many videos, or anchors, the publication counts.
        cites: keys of the references.
        notes: what the publication leaves open or does otherwise.
        summary: in a sentence.
        base: the recipe that this one puts on other data, if it does; see `on`.

    >>> found = benchmarks["thumos14-c"]
    >>> found.cells[0].name, found.cells[1].name, sum(cell.counted for cell in found.cells)
    ('clean', 'thumos14-c/black_frame:1', 15)
    """

    name: str
    version: int
    dataset: str
    subset: str = ""
    task: Task
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
        if (self.protocol is not None) != (self.task == "detection"):
            raise BadValue(f"{self.name}: a protocol is for detection and must be given there; the task is {self.task}")
        if (self.k is None) != (self.task == "detection") or (self.k or 1) < 1:
            raise BadValue(f"{self.name}: k is for recognition, frames and objects, and at least 1; got {self.k}")
        if (self.labels_of is None) != (self.task != "frames"):
            raise BadValue(f"{self.name}: labels_of is for frames and must be given there; the task is {self.task}")
        if self.sampling is not None and self.task != "recognition":
            raise BadValue(f"{self.name}: sampling is for recognition; the task is {self.task}")
        if self.tious and self.task != "detection":
            raise BadValue(f"{self.name}: tious are for detection; the task is {self.task}")
        if self.protocol is not None:
            chosen = self.tious or protocols[self.protocol].tious
            object.__setattr__(self, "tious", tuple(checked_tious(chosen).tolist()))
        if not self.title:
            object.__setattr__(self, "title", self.name)

    def on(self, dataset: str, subset: str, called: str) -> Recipe:
        """The same done to other data; its name says so, and nobody takes it for the benchmark.

        Args:
            called: the other data, in words.

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
        """The clean cell, then those of every group; made on first use, as that loads the corruptions.

        Raises:
            BadValue: if two are the same, or a group holds none.
        """
        made = [CLEAN_CELL]
        names = [group.name for group in self.groups]
        for name in names:
            if not _NAME.fullmatch(name) or names.count(name) > 1:
                raise BadValue(f"{self.name}: groups have different names in a-z, 0-9 and '-', got {name!r}")
        for group in self.groups:
            made += group.made(self.rounding)
        for key in ("name", "slug"):
            seen: dict[str, str] = {}
            for cell in made:
                value = getattr(cell, key).casefold()
                if value in seen:
                    raise BadValue(
                        f"{self.name}: {cell.name} stands in {seen[value]} and in {cell.group}; take one out"
                    )
                seen[value] = cell.group
        return tuple(made)

    def __getitem__(self, name: str) -> Cell:
        """The cell of a name."""
        for cell in self.cells:
            if cell.name == name:
                return cell
        raise UnknownName(f"cell of {self.name}", name, [cell.name for cell in self.cells])

    def check(self) -> None:
        """Raise unless every name it uses exists, and its metric is one for its task."""
        known = metrics[self.metric]
        if known.task != self.task:
            raise BadValue(f"{self.name}: {self.metric} measures {known.task}, and the task is {self.task}")
        if len(self.cells) == 1 and self.task not in ("frames", "objects"):
            raise BadValue(f"{self.name}: nothing but clean video; give a group of cells")

    @property
    def measure(self) -> str:
        """What the value of a cell is called, as in `mAP@0.5`."""
        if self.task == "detection":
            ends = sorted({self.tious[0], self.tious[-1]})
            return "mAP@" + ":".join(f"{tiou:g}" for tiou in ends)
        return {"pm_k": f"pm-{self.k}", "pm_k_map": f"pm-{self.k} mAP", "top_k_accuracy": f"top-{self.k} accuracy"}.get(
            self.metric, self.metric
        )

    @property
    def families(self) -> dict[str, str]:
        """The group of each counted corruption, for `robustness`; one that stands in two groups is in no family."""
        groups: dict[str, set[str]] = {}
        for cell in self.cells:
            if cell.counted:
                groups.setdefault(split_cell(cell.name)[0], set()).add(cell.group)
        return {corruption: found.pop() for corruption, found in groups.items() if len(found) == 1}

    def content(self) -> dict[str, Any]:
        """All that decides results, as plain values: also what each spec stands for today."""
        plain = asdict(replace(self, groups=(), title="", items=None, cites=(), notes=(), summary=""))
        for word in ("groups", "title", "items", "cites", "notes", "summary", "rounding", "base"):
            del plain[word]
        return {"format": 1, **plain, "cells": [_resolved(cell) for cell in self.cells]}

    @cached_property
    def fingerprint(self) -> str:
        """`sha256:` and the hash of `content`: two runs with one fingerprint are runs of one benchmark."""
        text = json.dumps(self.content(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _resolved(cell: Cell) -> dict[str, Any]:
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
    """Register a recipe: its facts are given to the decorator, and its groups by the decorated function."""

    def register(groups: Callable[[], tuple[Group, ...]]) -> None:
        summary = " ".join((groups.__doc__ or "").strip().split("\n\n")[0].split())
        benchmarks.add(name, Recipe(name=name, groups=groups(), summary=summary, **facts))

    return register


def profile_names(profile: str, *names: str) -> tuple[str, ...]:
    """Names of a profile as specs without severity.

    >>> profile_names("kinetics-c", "rain", "fog")
    ('kinetics-c/rain', 'kinetics-c/fog')
    """
    return tuple(f"{profile}/{name}" for name in names)
