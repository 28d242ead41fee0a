"""Clips that are struck where the model is: the bytes that the cores would have sent, and the same scores."""

from __future__ import annotations

import pickle
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

import numpy as np
import pytest

import jostle
from helpers.numpy_extractor import TwoParts
from helpers.small_recognition import SAMPLING, Weigher, write_videos
from jostle.core.types.clip import Clip
from jostle.core.types.language import MomentItem, QuestionItem
from jostle.core.types.segments import Segments
from jostle.datasets.class_matching import ClassMatch
from jostle.evaluation.inference import remote
from jostle.evaluation.inference.footage import open_footage
from jostle.evaluation.inference.jobs import VideoJob
from jostle.evaluation.inference.language import MomentPredictor, QuestionPredictor
from jostle.evaluation.inference.recognition import RecognitionPredictor
from jostle.evaluation.recipes.recipe import CLEAN_CELL, Cell
from jostle.features.deferred_corruption import (
    DeferredCorruption,
    DeferredCorruptions,
    can_corrupt_on_device,
    corrupt_on_device,
    corrupt_to_host,
)
from jostle.features.engine import VideoFeatures
from jostle.models.language.interface import Answer, Windows
from jostle.parallel.serving.client import batching_of

torch = pytest.importorskip("torch")

NO_CORRUPTIONS = DeferredCorruptions()
THREE = ClassMatch("by number", 3)
# Drawn for each frame, for the clip, moving over its time, placed by an action, and order, which has no form.
SPECS = ("gaussian_noise:3", "imagenet-c/frost:2", "fog:2", "motion_blur:1", "thumos14-c/overexposure:3", "freeze:3")


def cell_of(spec: str, placement: str | None = None) -> Cell:
    return Cell(spec if placement is None else f"{spec}@{placement}", (spec,), placement, "main", True)


CELLS = (CLEAN_CELL, *map(cell_of, SPECS), cell_of("contrast:2", "frames:9-30"))


@pytest.fixture(scope="module")
def order(tmp_path_factory: pytest.TempPathFactory) -> VideoJob:
    video = write_videos(tmp_path_factory.mktemp("videos"))["a"]
    return VideoJob("a", video, CELLS, 3, segments=Segments.from_pairs(np.array([[0.2, 1.2]])))


@dataclass
class Striking(Weigher):
    """Strikes where the model is, as a GPU does by programs: here by the compiled kernels, frame by frame."""

    corrupted: list[str] = field(default_factory=list)
    sent: int = 0  # clips
    most: int = 8  # per batch

    def can_corrupt(self, spec: str) -> bool:
        from jostle.corruptions.engine.spec import Spec
        from jostle.corruptions.gpu.batch import gpu_kernel

        return gpu_kernel(Spec.parse(spec)) is not None

    def submit(self, frames: np.ndarray, corruptions: DeferredCorruptions) -> Any:
        self.sent += len(frames)
        clean, copies = torch.from_numpy(frames), [frames]
        if corruptions:
            self.corrupted += [one.spec for one in corruptions]
            copies = [corrupt_on_device(clean, one).numpy() for one in pickle.loads(pickle.dumps(corruptions))]
        given = self(np.concatenate(copies))
        return lambda: given


@pytest.mark.parametrize("cell", CELLS[1:], ids=lambda cell: cell.name)
def test_bytes_are_those_of_the_cores(cell: Cell, order: VideoJob) -> None:
    row = np.array([0, 9, 9, 16, 17, 20, 21, 30, 47])
    with open_footage(order) as footage:
        clean = np.concatenate([footage.clean.block(t, t + 1) for t in row.tolist()])
        wanted = np.concatenate([footage.under(cell).block(t, t + 1) for t in row.tolist()])
        if not Striking().can_corrupt(cell.specs[0]):
            pytest.skip("order of frames is the cores' business")
        made = corrupt_on_device(torch.from_numpy(clean)[None], footage.deferred(cell)(row[None]))
    assert np.array_equal(made[0].numpy(), wanted)
    assert not np.array_equal(wanted, clean)


@pytest.mark.parametrize("spec", ["fog:2", "motion_blur:1"])
def test_time_counts_from_the_first_frame_of_a_video_that_starts_late(spec: str) -> None:
    frames = np.random.default_rng(0).integers(0, 256, (20, 32, 40, 3), np.uint8)
    clip = Clip.at_rate(frames, 10)
    late = replace(clip, pts=clip.pts + 3)
    wanted = jostle.corrupt(late, spec, seed=3, video_id="a").frames[9:12]
    everywhere, rows = np.ones(len(frames), np.bool_), np.arange(9, 12)
    deferred = DeferredCorruption.on(spec, late, everywhere, 3, "a", rows)  # type: ignore[arg-type]  # its times and rate
    assert np.array_equal(corrupt_on_device(torch.from_numpy(frames[rows]), deferred).numpy(), wanted)
    assert not np.array_equal(jostle.corrupt(clip, spec, seed=4, video_id="a").frames[9:12], wanted)


class StrikingExtractor(TwoParts):
    """The same for one that sees each frame by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.corrupted: list[str] = []
        self.sent = 0  # frames

    def can_corrupt(self, spec: str) -> bool:
        return Striking().can_corrupt(spec)

    def submit(self, method: str, *shown: np.ndarray, corruptions: DeferredCorruptions = NO_CORRUPTIONS) -> Any:
        self.sent += len(shown[0]) if method == "see" else 0
        if corruptions:
            self.corrupted += [one.spec for one in corruptions]
            frames = torch.from_numpy(shown[0])
            copies = [corrupt_on_device(frames, one).numpy() for one in pickle.loads(pickle.dumps(corruptions))]
            shown = (np.concatenate(copies),)
        given = getattr(self, method or "__call__")(*shown)
        return lambda: given


@pytest.mark.parametrize("cell", CELLS[1:], ids=lambda cell: cell.name)
def test_features_are_the_same_wherever_frames_are_struck(cell: Cell, order: VideoJob) -> None:
    with open_footage(order) as footage:
        facts = {"seed": order.seed, "video_id": order.name, "segments": order.segments}
        here = VideoFeatures(footage.clean, TwoParts(), **facts).under(cell.parsed, cell.placement)
        extractor = StrikingExtractor()
        there = VideoFeatures(footage.clean, extractor, **facts).under(cell.parsed, cell.placement)
    assert there.features.tobytes() == here.features.tobytes()
    assert there.seen is not None
    assert here.seen is not None
    assert there.seen.tobytes() == here.seen.tobytes()
    assert {*extractor.corrupted} == ({cell.specs[0]} if extractor.can_corrupt(cell.specs[0]) else set())


def test_clean_frames_are_sent_once_for_several_cells(order: VideoJob) -> None:
    cells = {
        spec: (cell_of(spec).parsed, None) for spec in ("fog:1", "fog:2", "contrast:3", "freeze:3", "brightness:1")
    }
    with open_footage(order) as footage:
        facts = {"seed": order.seed, "video_id": order.name}
        extractor = StrikingExtractor()
        video = VideoFeatures(footage.clean, extractor, **facts)
        count = len(footage.clean)
        video.clean()
        there = dict(video.sweep(cells))
        here = dict(VideoFeatures(footage.clean, TwoParts(), **facts).sweep(cells))
    assert list(there) == list(here) == list(cells)
    assert all(there[name].features.tobytes() == here[name].features.tobytes() for name in cells)
    assert [there[name].cost.seen for name in cells] == [count, count, count, 0, count]
    assert extractor.sent == 3 * count  # clean, then three cells together, and one after a cell without new frames


@pytest.mark.parametrize("batch", [1, 4])
def test_scores_are_the_same_wherever_clips_are_struck(batch: int, order: VideoJob) -> None:
    here = RecognitionPredictor(Weigher(), SAMPLING, THREE, batch)(order)
    model = Striking()
    there = RecognitionPredictor(model, SAMPLING, THREE, batch)(order)
    assert {name: scores.tolist() for name, scores in there.outputs.items()} == {
        name: scores.tolist() for name, scores in here.outputs.items()
    }
    assert {*model.corrupted} == {*SPECS[:-1], "contrast:2"}
    assert (there.clean.joined, there.cells.joined) == (here.clean.joined, here.cells.joined)
    assert model.sent < (there.clean + there.cells).joined  # clips are sent once for several cells


class Answering:
    """Answers questions, and finds sentences, by the sum of what it sees."""

    frames = 24

    def answer(self, questions: Any) -> list[Answer]:
        return [Answer((-1.0, -float(one.frames.mean()) / 100), None, 0) for one in questions]

    def locate(self, sentences: Any) -> list[Windows]:
        return [Windows(((0.0, float(one.frames.sum(dtype=np.int64)), 1.0),)) for one in sentences]


class StrikingAnswers:
    """The same in another process, which strikes frames first."""

    def __init__(self) -> None:
        self.frames, self.corrupted = Answering.frames, list[str]()
        self._holder = mock.Mock(language_model=Answering(), guard=nullcontext)
        self._holder.language_model.device = torch.device("cpu")

    def can_corrupt(self, spec: str) -> bool:
        return Striking().can_corrupt(spec)

    def answer(self, questions: Any, corruption: Any = None) -> Any:
        return self._ask("answer", questions, corruption)

    def locate(self, sentences: Any, corruption: Any = None) -> Any:
        return self._ask("locate", sentences, corruption)

    def _ask(self, method: str, asked: Any, corruption: Any) -> Any:
        self.corrupted += [corruption.spec] if corruption else []
        return remote._ask_about(self._holder, *pickle.loads(pickle.dumps((method, asked, corruption))))


def test_answers_are_the_same_wherever_frames_are_struck(order: VideoJob) -> None:
    items = (
        QuestionItem("a0", "a", "What?", ("one", "two"), 0, "what"),
        QuestionItem("a1", "a", "Where?", ("one", "two"), 0, "where", start=0.3, end=0.6),
    )
    job = replace(order, items=items)
    model = StrikingAnswers()
    here, there = (QuestionPredictor(one)(job) for one in (Answering(), model))
    assert there.outputs == here.outputs
    assert {*model.corrupted} == {*SPECS[:-1], "contrast:2"}
    assert len({answers.answers for answers in here.outputs.values()}) == len(CELLS)


def test_windows_are_the_same_wherever_frames_are_struck(order: VideoJob) -> None:
    job = replace(order, items=(MomentItem("a0", "a", "A wave.", ((0.2, 1.2),)),))
    model = StrikingAnswers()
    here, there = (MomentPredictor(one)(job) for one in (Answering(), model))
    assert there.outputs == here.outputs
    assert {*model.corrupted} == {*SPECS[:-1], "contrast:2"}


def test_a_model_strikes_on_a_gpu_only() -> None:
    on_gpu, on_cpu = mock.Mock(device=torch.device("cuda")), mock.Mock(device=torch.device("cpu"))
    with mock.patch("jostle.core.triton_support.can_compile", return_value=True):
        assert can_corrupt_on_device(on_gpu, "fog:2")
        assert not can_corrupt_on_device(on_gpu, "glass_blur:2")  # has no form
        assert not can_corrupt_on_device(on_gpu, "thumos14-c-i3d/motion_blur:2")  # has none with JPEG
        assert not can_corrupt_on_device(on_cpu, "fog:2")
        assert not can_corrupt_on_device(Weigher(), "fog:2")
    with mock.patch("jostle.core.triton_support.can_compile", return_value=False):
        assert not can_corrupt_on_device(on_gpu, "fog:2")


def test_clips_are_looked_at_together_whatever_is_done_to_each() -> None:
    frames = np.zeros((1, 4, 8, 8, 3), np.uint8)
    row = np.arange(4)[None]
    noisy = DeferredCorruption("gaussian_noise:3", 1, "a", numbers=row, times=row / 30, affected=row >= 0)
    plain, one, two = (batching_of(remote._predict, (frames, DeferredCorruptions([noisy] * n)), 8) for n in range(3))
    assert plain == one
    assert two == (one[0], 2, 8)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_recogniser_on_a_gpu_scores_what_it_strikes_as_what_it_is_sent(order: VideoJob) -> None:
    from jostle.models.recognition.recogniser import load_recogniser

    model = load_recogniser("puppet_c3d", weights="random").to("cuda")
    look = RecognitionPredictor(model, SAMPLING, ClassMatch("by number", None))
    with open_footage(order) as footage:
        row = np.arange(16)
        clean = footage.clean.block(0, 16)[None].copy()
        for cell in CELLS[1:-2]:
            assert can_corrupt_on_device(model, cell.specs[0])
            struck = footage.under(cell).block(0, 16)[None].copy()
            corruption = footage.deferred(cell)(row[None])
            parts = [(clean, DeferredCorruptions([corruption, corruption])), (struck, DeferredCorruptions())]
            there, here = remote._predict_together(look, parts)
            assert there.tolist() == [*here.tolist(), *here.tolist()]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_an_extractor_on_a_gpu_sees_what_it_strikes_as_what_it_is_sent(order: VideoJob) -> None:
    from jostle.models.loading.extractor import load_extractor

    look = remote.LoadedExtractor(load_extractor("puppet_net", device="cuda"))
    with open_footage(order) as footage:
        numbers = np.arange(40)
        clean = footage.clean.block(0, 40).copy()
        for cell in CELLS[1:-2]:
            assert can_corrupt_on_device(look.extractor, cell.specs[0])
            sent = footage.under(cell).block(0, 40).copy()
            corruption = footage.deferred(cell)(numbers)
            parts = [(clean, DeferredCorruptions([corruption, corruption])), (sent, NO_CORRUPTIONS)]
            there, here = remote._see_together(look, parts)
            assert there.tobytes() == 2 * here.tobytes()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_gpu_gives_frames_back_to_models_that_prepare_them_on_the_cpu(order: VideoJob) -> None:
    with open_footage(order) as footage:
        rows = np.arange(0, 48, 3)
        clean = footage.clean.block(0, 48)[rows].copy()
        for cell in CELLS[1:-2]:
            made = corrupt_to_host(torch.device("cuda"), clean, footage.deferred(cell)(rows))
            assert np.array_equal(made, footage.under(cell).block(0, 48)[rows])
