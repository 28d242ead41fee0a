"""Base of sets of annotations that belong to videos, several each: questions, sentences."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Generic, Self, TypeVar

from jostle.errors import BadValue

Item = TypeVar("Item", bound=Any)  # a dataclass with `id` and `video`


@dataclass(frozen=True)
class VideoItems(Generic[Item]):
    """Annotations about the videos of a data set, in the order of the file."""

    noun: ClassVar[str] = "item"  # what one is called

    items: tuple[Item, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", tuple(self.items))
        if len(self.by_id) < len(self.items):
            ids = [item.id for item in self.items]
            twice = next(one for one in self.by_id if ids.count(one) > 1)
            raise BadValue(f"{self.noun} {twice!r} appears twice")

    @cached_property
    def by_id(self) -> dict[str, Item]:
        """The items by their ids."""
        return {item.id: item for item in self.items}

    @cached_property
    def by_video(self) -> dict[str, tuple[Item, ...]]:
        """The items of each video."""
        groups: dict[str, list[Item]] = {}
        for item in self.items:
            groups.setdefault(item.video, []).append(item)
        return {video: tuple(group) for video, group in groups.items()}

    @property
    def videos(self) -> tuple[str, ...]:
        """Ids of the videos, in the order of their first items."""
        return tuple(self.by_video)

    def of_videos(self, names: Collection[str]) -> Self:
        """Return the items about the named videos."""
        selected = set(names)
        return type(self)(tuple(item for item in self.items if item.video in selected))

    def renamed(self, ids: Mapping[str, str]) -> Self:
        """Return the set with other video ids."""
        return type(self)(tuple(replace(item, video=ids.get(item.video, item.video)) for item in self.items))

    @property
    def fingerprint(self) -> str:
        """`sha256:` and a hash of all items, whatever their order."""
        rows = sorted((asdict(item) for item in self.items), key=lambda row: str(row["id"]))
        return f"sha256:{hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()}"

    def __len__(self) -> int:
        return len(self.items)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} {self.noun}s about {len(self.videos)} videos)"
