"""A data set for data loaders whose workers are processes of their own, which import it from here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class RepeatedClip:
    """One clip, several times, through a transform."""

    clip: Any
    transform: Any
    length: int

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> Any:
        if index >= self.length:
            raise IndexError(index)
        return self.transform(self.clip)
