"""Menders: the registry of what makes a frame to stand in for a damaged one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from jostle.core.plugins import import_object, is_import_path
from jostle.core.registry import Registry
from jostle.core.types.clip import Frame
from jostle.errors import BadValue

Repair = Callable[[Callable[[int], Frame], int, int, int], Frame]
Mender = Callable[..., Any]  # a `Repair`, or a class of such
M = TypeVar("M", bound=Mender)

menders: Registry[Mender] = Registry("mender", "jostle.mending.menders")


def mender(name: str) -> Callable[[M], M]:
    """Register a function `(frame, before, t, after)` that makes frame `t` anew from intact frames of its video.

    `frame(index)` gives a frame, (H, W, 3) uint8, which must not be changed. `before` and `after` are the nearest
    intact frames on both sides; at an end of a video, where one side has none, both are the same frame. What is
    returned has the size of the others. A class is made once for each video and its object called, so that it can keep
    what it computed for the frame before.
    """

    def register(repair: M) -> M:
        menders.add(name, repair)
        return repair

    return register


def find_mender(how: str | Mender) -> Mender:
    """Return a mender by its name or import path; a function or class is returned as it is.

    Raises:
        UnknownName: if there is none of this name.
        BadValue: if it cannot be imported or called.
    """
    repair: Any = how
    if isinstance(how, str):
        repair = import_object(how, "--how") if is_import_path(how) else menders[how]
    if not callable(repair):
        raise BadValue(f"how is the name of a mender, or a function (frame, before, t, after), not {how!r}")
    own: Mender = repair
    return own


def mender_name(how: str | Mender) -> str:
    """Return the name of a mender for records.

    >>> mender_name("hold"), mender_name(max)
    ('hold', 'max')
    """
    return how if isinstance(how, str) else getattr(how, "__name__", type(how).__name__)


def for_one_video(repair: Mender) -> Repair:
    """Return a mender for one video: an own object, where it is a class."""
    own: Any = repair() if inspect.isclass(repair) else repair
    one: Repair = own
    return one
