"""A first look before the work: whether the model fits, and how long everything may take."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from jostle.core.timing import Spent, spent_on, spent_so_far
from jostle.errors import BadValue, DataError, JostleError
from jostle.evaluation.inference.detection import DetectingByFeatures
from jostle.evaluation.inference.jobs import Look, Order
from jostle.evaluation.recipes.recipe import CLEAN, CLEAN_CELL
from jostle.evaluation.runner.state import Plan, claimed_frames
from jostle.features.windows import WindowGrid
from jostle.io.video.probe import probe

AGAIN_S = 10.0  # what took less is looked at twice, as the first time loads and compiles things
TRIED = 3  # videos, where some cannot be used
OPENED = 1000  # files at most: to open one takes milliseconds, and some data sets have a hundred thousand
FRAMES_TRIED = 16  # of a video of which single frames are wanted
CELLS_TRIED = 6  # in which a video is looked at to see what takes how long


@dataclass(frozen=True)
class FirstLook:
    """What looking at one clean video took.

    Attributes:
        frames: that were looked at.
        seconds: that it took.
        bytes: that what was found takes up, in one cell.
        windows: of all the videos, clean, of which features are made; None where none are, or nobody asked.
        parts: what of the time of one video in all its cells goes to what; None where nobody asked.
    """

    frames: int
    seconds: float
    bytes: int
    windows: int | None = None
    parts: Spent | None = None


def first_look(
    load: Callable[[], Look[Any]],
    orders: tuple[Order, ...],
    *,
    timed: bool = False,
    busy_s: Callable[[], float] | None = None,
) -> FirstLook | None:
    """Look at the first of some videos that can be used, clean; None if none can.

    Args:
        timed: whether what it takes is of interest. Then it is looked at in a few cells too.
        busy_s: where the model is in processes of its own, the seconds that those have computed so far.

    Raises:
        BadValue: if the model does not fit, as when it has other classes.
        DataError: F78 if it fails on every video that is tried.
    """
    failed: JostleError | None = None
    look = load()
    for order in orders[:TRIED]:
        some = replace(order, cells=(CLEAN_CELL,), frames=order.frames[:FRAMES_TRIED])
        try:
            found, seconds = _timed(look, some)
            if timed and seconds < AGAIN_S:
                found, seconds = _timed(look, some)
        except BadValue:
            raise
        except JostleError as error:
            failed = error
            continue
        size = sum(getattr(one, "nbytes", 0) for one in found.values())
        if not timed:
            return FirstLook(_frames(some), seconds, size)
        return FirstLook(_frames(some), seconds, size, _windows(look, orders), _parts(look, order, busy_s))
    if isinstance(failed, DataError) and failed.fault == "F78":
        raise failed
    return None


def estimated(plan: Plan, first: FirstLook | None, jobs: int, processes: int = 0) -> dict[str, Any]:
    """What a plan may cost: seconds for the clean videos and, if every cell took as long, for all of them.

    Codecs take longer than that, and cells that leave most of a video as it was, far less. Codec cells need no room on
    the disk, as what is encoded is decoded again at once. `frames` is what the files claim, those that cannot be opened
    none; where there are many, some are opened and taken for all. `parts` are seconds of a video in its cells, and
    `limit` what of it takes longest with as many workers, and with as many processes that hold the model.
    """
    some = spread(plan.orders)
    all_of = len(plan.orders) / max(len(some), 1)
    claims = [claimed_frames(order.path) for order in some]
    told = plan.to_dict() | {"frames": round(sum(claims) * all_of), "opened": len(some)}
    if first is None or not first.frames:
        return told | {"estimate": None}
    rate = first.frames / max(first.seconds, 1e-9)
    looked = [len(order.frames) or claim for order, claim in zip(some, claims, strict=True)]
    once = sum(looked) * all_of
    in_cells = sum(frames * len(order.cells) for order, frames in zip(some, looked, strict=True)) * all_of
    return told | {
        "estimate": {
            "jobs": jobs,
            "frames_per_s": rate,
            "windows": first.windows,
            "clean_s": once / rate / jobs,
            "all_s": in_cells / rate / jobs,
            "disk_bytes": 2 * told["looks"] * first.bytes,  # of each video, and of each cell
            "parts": None if first.parts is None else asdict(first.parts),
            "limit": None if first.parts is None else _limit(first.parts, jobs, processes),
        }
    }


def _parts(look: Look[Any], order: Order, busy_s: Callable[[], float] | None) -> Spent:
    """What the time of a video goes to in all the cells of an order, by some of them."""
    others = [cell for cell in order.cells if cell.name != CLEAN]
    some = [others[i * len(others) // CELLS_TRIED] for i in range(CELLS_TRIED)] if len(others) > CELLS_TRIED else others
    few = replace(order, cells=(CLEAN_CELL, *some), frames=order.frames[:FRAMES_TRIED])
    taken, model = Spent(), 0.0
    for _ in range(2):  # the first time compiles kernels
        before, busy = spent_so_far(), 0.0 if busy_s is None else busy_s()
        try:
            with spent_on("corrupting"):
                look(few)
        except JostleError:  # one of the cells cannot be made of it, which the run will tell
            return Spent()
        taken = spent_so_far() - before
        model = taken.model if busy_s is None else busy_s() - busy
    more = len(others) / max(len(some), 1)
    more_clean = (1 + len(others)) / (1 + len(some))
    longer = len(order.frames) / len(few.frames) if order.frames else 1.0
    return Spent(taken.decoding * longer, taken.corrupting * more * longer, model * more_clean * longer)


def _limit(parts: Spent, jobs: int, processes: int) -> str | None:
    """What takes longest: of the workers, or of the processes with the model beside them."""
    if processes and parts.model / processes > (parts.decoding + parts.corrupting) / jobs:
        return "model"
    return replace(parts, model=0.0 if processes else parts.model).limit(waited_for=False)


def _timed(look: Look[Any], order: Order) -> tuple[dict[str, Any], float]:
    begin = time.perf_counter()
    return look(order).found, time.perf_counter() - begin


def _windows(look: Look[Any], orders: tuple[Order, ...]) -> int | None:
    """The windows of clean videos, by the frames that the files claim."""
    if not isinstance(look, DetectingByFeatures):
        return None
    spec, counted, some = look.extractor.spec, 0, spread(orders)
    grid = WindowGrid(spec.frames, spec.stride, look.rule)
    for order in some:
        if frames := claimed_frames(order.path):
            counted += grid.count(
                frames if spec.fps is None else max(int(frames / probe(order.path, fps=order.fps).fps * spec.fps), 1)
            )
    return round(counted * len(orders) / len(some))


def spread(orders: tuple[Order, ...]) -> tuple[Order, ...]:
    """As many as are opened for an estimate, evenly spread over all."""
    return orders if len(orders) <= OPENED else tuple(orders[i * len(orders) // OPENED] for i in range(OPENED))


def _frames(order: Order) -> int:
    return len(order.frames) or claimed_frames(order.path)
