"""Clips that are struck where the model is: the bytes that the cores would have sent, and the same scores."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

import numpy as np
import pytest

from helpers.numpy_extractor import TwoParts
from helpers.small_recognition import SAMPLING, Weigher, write_videos
from jostle.core.types.segments import Segments
from jostle.datasets.class_matching import ClassMatch
from jostle.evaluation.inference import deferred_corruption, remote
from jostle.evaluation.inference.deferred_corruption import struck
from jostle.evaluation.inference.footage import footage_of
from jostle.evaluation.inference.jobs import Order
from jostle.evaluation.inference.recognition import Recognising
from jostle.evaluation.recipes.recipe import CLEAN_CELL, Cell
from jostle.features.deferred_corruption import UNTOUCHED, Strike
from jostle.features.engine import VideoFeatures
from jostle.parallel.serving.client import kind_of

torch = pytest.importorskip("torch")

THREE = ClassMatch("by number", 3)
# Drawn for each frame, for the clip, moving over its time, placed by an action, and order, which has no form.
SPECS = ("gaussian_noise:3", "imagenet-c/frost:2", "fog:2", "motion_blur:1", "thumos14-c/overexposure:3", "freeze:3")


def cell_of(spec: str, placement: str | None = None) -> Cell:
    return Cell(spec if placement is None else f"{spec}@{placement}", (spec,), placement, "main", True)


CELLS = (CLEAN_CELL, *map(cell_of, SPECS), cell_of("contrast:2", "frames:9-30"))


@pytest.fixture(scope="module")
def order(tmp_path_factory: pytest.TempPathFactory) -> Order:
    video = write_videos(tmp_path_factory.mktemp("videos"))["a"]
    return Order("a", video, CELLS, 3, segments=Segments.from_pairs(np.array([[0.2, 1.2]])))


@dataclass
class Striking(Weigher):
    """Strikes by the plain forms, as a GPU does by programs."""

    struck: list[str] = field(default_factory=list)

    def strikes(self, spec: str) -> bool:
        from jostle.corruptions.engine.spec import Spec
        from jostle.corruptions.gpu.batch import form_of

        return form_of(Spec.parse(spec)) is not None

    def later(self, frames: np.ndarray, strike: Strike = UNTOUCHED) -> Any:
        if deferred_corruption.spec:
            self.struck.append(deferred_corruption.spec)
            frames = struck(torch.from_numpy(frames), pickle.loads(pickle.dumps(deferred_corruption))).numpy()
        given = self(frames)
        return lambda: given


@pytest.mark.parametrize("cell", CELLS[1:], ids=lambda cell: cell.name)
def test_bytes_are_those_of_the_cores(cell: Cell, order: Order) -> None:
    row = np.array([0, 9, 9, 16, 17, 20, 21, 30, 47])
    with footage_of(order) as footage:
        clean = np.concatenate([footage.clean.block(t, t + 1) for t in row.tolist()])
        wanted = np.concatenate([footage.under(cell).block(t, t + 1) for t in row.tolist()])
        if not Striking().strikes(cell.specs[0]):
            pytest.skip("order of frames is the cores' business")
        made = struck(torch.from_numpy(clean)[None], footage.striking(cell)(row[None]))
    assert np.array_equal(made[0].numpy(), wanted)
    assert not np.array_equal(wanted, clean)


class StrikingExtractor(TwoParts):
    """The same for one that sees each frame by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.struck: list[str] = []

    def strikes(self, spec: str) -> bool:
        return Striking().strikes(spec)

    def later(self, what: str, *shown: np.ndarray, strike: Strike = UNTOUCHED) -> Any:
        if deferred_corruption.spec:
            self.struck.append(deferred_corruption.spec)
            shown = (struck(torch.from_numpy(shown[0]), pickle.loads(pickle.dumps(deferred_corruption))).numpy(),)
        given = self.see(*shown) if what == "see" else self(*shown)
        return lambda: given


@pytest.mark.parametrize("cell", CELLS[1:], ids=lambda cell: cell.name)
def test_features_are_the_same_wherever_frames_are_struck(cell: Cell, order: Order) -> None:
    with footage_of(order) as footage:
        facts = {"seed": order.seed, "video_id": order.name, "segments": order.segments}
        here = VideoFeatures(footage.clean, TwoParts(), **facts).under(cell.parsed, cell.placement)
        extractor = StrikingExtractor()
        there = VideoFeatures(footage.clean, extractor, **facts).under(cell.parsed, cell.placement)
    assert there.features.tobytes() == here.features.tobytes()
    assert there.seen is not None
    assert here.seen is not None
    assert there.seen.tobytes() == here.seen.tobytes()
    assert {*extractor.struck} == ({cell.specs[0]} if extractor.strikes(cell.specs[0]) else set())


@pytest.mark.parametrize("batch", [1, 4])
def test_scores_are_the_same_wherever_clips_are_struck(batch: int, order: Order) -> None:
    here = Recognising(Weigher(), SAMPLING, THREE, batch)(order)
    model = Striking()
    there = Recognising(model, SAMPLING, THREE, batch)(order)
    assert {name: scores.tolist() for name, scores in there.found.items()} == {
        name: scores.tolist() for name, scores in here.found.items()
    }
    assert {*model.struck} == {*SPECS[:-1], "contrast:2"}
    assert (there.clean.joined, there.cells.joined) == (here.clean.joined, here.cells.joined)


def test_a_model_strikes_on_a_gpu_only() -> None:
    on_gpu, on_cpu = mock.Mock(device=torch.device("cuda")), mock.Mock(device=torch.device("cpu"))
    with mock.patch("jostle.core.triton.builds", return_value=True):
        assert deferred_corruption.strikes(on_gpu, "fog:2")
        assert not deferred_corruption.strikes(on_gpu, "glass_blur:2")  # has no form
        assert not deferred_corruption.strikes(on_gpu, "thumos14-c-i3d/motion_blur:2")  # has none with JPEG
        assert not deferred_corruption.strikes(on_cpu, "fog:2")
        assert not deferred_corruption.strikes(Weigher(), "fog:2")
    with mock.patch("jostle.core.triton.builds", return_value=False):
        assert not deferred_corruption.strikes(on_gpu, "fog:2")


def test_clips_are_looked_at_together_whatever_is_done_to_each() -> None:
    frames = np.zeros((1, 4, 8, 8, 3), np.uint8)
    row = np.arange(4)[None]
    noisy = Strike("gaussian_noise:3", 1, "a", numbers=row, times=row / 30, struck=row >= 0)
    assert kind_of(remote._show, (frames, noisy), 8) == kind_of(remote._show, (frames, UNTOUCHED), 8)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_recogniser_on_a_gpu_scores_what_it_strikes_as_what_it_is_sent(order: Order) -> None:
    from jostle.models import load_recogniser

    model = load_recogniser("puppet_c3d", weights="random").to("cuda")
    look = Recognising(model, SAMPLING, ClassMatch("by number", None))
    with footage_of(order) as footage:
        row = np.arange(16)
        clean = footage.clean.block(0, 16)[None].copy()
        for cell in CELLS[1:-2]:
            assert deferred_corruption.strikes(model, cell.specs[0])
            struck = footage.under(cell).block(0, 16)[None].copy()
            parts = [(clean, footage.striking(cell)(row[None])), (struck, UNTOUCHED)]
            there, here = remote._show_together(look, parts)
            assert there.tolist() == here.tolist()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_an_extractor_on_a_gpu_sees_what_it_strikes_as_what_it_is_sent(order: Order) -> None:
    from jostle.models.loading.extractor import load_extractor

    look = remote.Extracting(load_extractor("puppet_net", device="cuda"))
    with footage_of(order) as footage:
        numbers = np.arange(40)
        clean = footage.clean.block(0, 40).copy()
        for cell in CELLS[1:-2]:
            assert deferred_corruption.strikes(look.extractor, cell.specs[0])
            sent = footage.under(cell).block(0, 40).copy()
            parts = [(clean, footage.striking(cell)(numbers)), (sent, UNTOUCHED)]
            there, here = remote._see_together(look, parts)
            assert there.tobytes() == here.tobytes()
