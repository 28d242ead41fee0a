"""A pickle that runs what it names as soon as it is loaded without restrictions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class MaliciousObject:
    """Object whose pickle calls `function` when it is read."""

    def __init__(self, function: Callable[..., Any], *arguments: object) -> None:
        self.call = function, arguments

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[object, ...]]:
        return self.call
