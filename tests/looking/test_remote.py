"""Models elsewhere: the same results as with models here, and only what is needed travels."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "running"))

import small_run
from small_run import NAMES, RECIPE, TRUTH

from jostle.benchmarks.selection import select_cells
from jostle.errors import JostleError
from jostle.looking.detecting import DetectingByFeatures, DetectingByFrames
from jostle.looking.remote import look_from_afar
from jostle.looking.work import Attempting, Order
from jostle.parcels import opened, packed, reply_of, unpacked
from jostle.types import Segments
from jostle.workers import worked


def look() -> DetectingByFeatures:
    return small_run.looking()


def released_look() -> DetectingByFeatures:
    return replace(look(), rule="released", released_faults=("early-row",))


def counting_look() -> DetectingByFrames:
    return DetectingByFrames(lit)


def lit(frames: np.ndarray, fps: float) -> Segments:
    """A model of frames, from which nothing is known but that it may be called."""
    return Segments([0.1], [0.2 + fps / 100], [0], [float(frames.mean()) / 255], ("action",))


@dataclass(frozen=True)
class Elsewhere:
    """Asks a look in this process, but all that goes to and fro is packed on the way."""

    load: Callable[[], Any]
    gathers: bool = True

    def __call__(self, function: Callable[..., Any], /, *arguments: object) -> Any:
        question = packed((function, arguments), "")
        asked, given = unpacked(question, "")
        return opened(reply_of(lambda: asked(self.load(), *given)))

    def later(self, function: Callable[..., Any], /, *arguments: object, together: int = 1) -> Callable[[], Any]:
        return partial(self, function, *arguments)


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> list[Order]:
    videos = small_run.write_videos(tmp_path_factory.mktemp("videos"))
    actions, cells = TRUTH.actions, tuple(select_cells(RECIPE))
    return [Order(name, videos[name], cells, 0, actions[name]) for name in NAMES]


def told(results: Any) -> dict[str, Any]:
    """What was found, in plain values to compare."""
    found = {}
    for order, result in results:
        assert not isinstance(result, JostleError), result
        found[order.name] = {
            cell: [np.asarray(getattr(one, part)).tobytes() for part in ("start", "end", "label", "score")]
            for cell, one in result.found.items()
        } | {"cost": (result.clean, result.cells)}
    return found


@pytest.mark.parametrize("load", [look, released_look, counting_look])
def test_stand_ins_find_the_same(orders: list[Order], load: Callable[[], Any]) -> None:
    near = told(worked(Attempting(load), orders, 1))
    far = told(worked(Attempting(partial(look_from_afar, Elsewhere(load))), orders, 1))
    assert near == far


def test_rule_and_faults_go_along() -> None:
    stand_in = look_from_afar(Elsewhere(released_look))
    assert (stand_in.rule, stand_in.released_faults) == ("released", ("early-row",))


class Heavy:
    """A model that cannot travel."""

    spec, dim, frame_dim = look().extractor.spec, 4, None

    def __reduce__(self) -> Any:
        raise AssertionError("the model was to stay where it is")


def heavy_look() -> DetectingByFeatures:
    return replace(look(), extractor=Heavy(), detector=Heavy())


def test_no_model_travels() -> None:
    stand_in = look_from_afar(Elsewhere(heavy_look))
    assert (stand_in.extractor.dim, stand_in.extractor.frame_dim) == (4, None)
    assert stand_in.extractor.spec.stride == look().extractor.spec.stride
