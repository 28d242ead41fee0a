"""Corruption on the device of the model: bytes and scores equal those of corruption on the CPU."""

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
from jostle.features.video import VideoFeatures
from jostle.models.language.interface import Answer, Windows
from jostle.parallel.serving.client import batching_of

torch = pytest.importorskip("torch")

NO_CORRUPTIONS = DeferredCorruptions()
THREE = ClassMatch("by number", 3)
# Random per frame, random per clip, varying over time, placed by an action, and frame order (no GPU kernel).
SPECS = ("gaussian_noise:3", "imagenet-c/frost:2", "fog:2", "motion_blur:1", "thumos14-c/overexposure:3", "freeze:3")


def cell_of(spec: str, placement: str | None = None) -> Cell:
    return Cell(spec if placement is None else f"{spec}@{placement}", (spec,), placement, "main", True)


CELLS = (CLEAN_CELL, *map(cell_of, SPECS), cell_of("contrast:2", "frames:9-30"))


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> VideoJob:
    video = write_videos(tmp_path_factory.mktemp("videos"))["a"]
    return VideoJob("a", video, CELLS, 3, segments=Segments.from_pairs(np.array([[0.2, 1.2]])))


def corrupted_copies(frames: np.ndarray, corruptions: DeferredCorruptions, specs: list[str]) -> np.ndarray:
    """Return the frames under every corruption, as another process would make them, and note the specs."""
    specs += [corruption.spec for corruption in corruptions]
    sent = pickle.loads(pickle.dumps(corruptions))
    return np.concatenate([corrupt_on_device(torch.from_numpy(frames), one).numpy() for one in sent] or [frames])


@dataclass
class CorruptingModel(Weigher):
    """Model that corrupts its input as a GPU would, here by the compiled kernels and frame by frame."""

    corrupted: list[str] = field(default_factory=list)
    sent: int = 0  # clips
    most: int = 8  # per batch

    def can_corrupt(self, spec: str) -> bool:
        from jostle.corruptions.engine.spec import Spec
        from jostle.corruptions.gpu.batch import gpu_kernel

        return gpu_kernel(Spec.parse(spec)) is not None

    def submit(self, frames: np.ndarray, corruptions: DeferredCorruptions) -> Any:
        self.sent += len(frames)
        scores = self(corrupted_copies(frames, corruptions, self.corrupted))
        return lambda: scores


@pytest.mark.parametrize("cell", CELLS[1:], ids=lambda cell: cell.name)
def test_corruption_on_device_equals_corruption_on_the_cpu(cell: Cell, job: VideoJob) -> None:
    row = np.array([0, 9, 9, 16, 17, 20, 21, 30, 47])
    with open_footage(job) as footage:
        clean = np.concatenate([footage.clean.block(t, t + 1) for t in row.tolist()])
        expected = np.concatenate([footage.under(cell).block(t, t + 1) for t in row.tolist()])
        if not CorruptingModel().can_corrupt(cell.specs[0]):
            pytest.skip("order of frames is the cores' business")
        corrupted = corrupt_on_device(torch.from_numpy(clean)[None], footage.deferred(cell)(row[None]))
    assert np.array_equal(corrupted[0].numpy(), expected)
    assert not np.array_equal(expected, clean)


@pytest.mark.parametrize("spec", ["fog:2", "motion_blur:1"])
def test_time_counts_from_the_first_frame_of_a_video_that_starts_late(spec: str) -> None:
    frames = np.random.default_rng(0).integers(0, 256, (20, 32, 40, 3), np.uint8)
    clip = Clip.at_rate(frames, 10)
    late = replace(clip, pts=clip.pts + 3)
    expected = jostle.corrupt(late, spec, seed=3, video_id="a").frames[9:12]
    everywhere, rows = np.ones(len(frames), np.bool_), np.arange(9, 12)
    deferred = DeferredCorruption.on(spec, late, everywhere, 3, "a", rows)  # type: ignore[arg-type]  # only times and rate are used
    assert np.array_equal(corrupt_on_device(torch.from_numpy(frames[rows]), deferred).numpy(), expected)
    assert not np.array_equal(jostle.corrupt(clip, spec, seed=4, video_id="a").frames[9:12], expected)


class CorruptingExtractor(TwoParts):
    """Extractor of single frames that corrupts its input."""

    def __init__(self) -> None:
        super().__init__()
        self.corrupted: list[str] = []
        self.sent = 0  # frames

    def can_corrupt(self, spec: str) -> bool:
        return CorruptingModel().can_corrupt(spec)

    def submit(self, method: str, *inputs: np.ndarray, corruptions: DeferredCorruptions = NO_CORRUPTIONS) -> Any:
        self.sent += len(inputs[0]) if method == "see" else 0
        if corruptions:
            inputs = (corrupted_copies(inputs[0], corruptions, self.corrupted),)
        scores = getattr(self, method or "__call__")(*inputs)
        return lambda: scores


@pytest.mark.parametrize("cell", CELLS[1:], ids=lambda cell: cell.name)
def test_features_do_not_depend_on_where_frames_are_corrupted(cell: Cell, job: VideoJob) -> None:
    with open_footage(job) as footage:
        options = {"seed": job.seed, "video_id": job.name, "segments": job.segments}
        local = VideoFeatures(footage.clean, TwoParts(), **options).under(cell.parsed, cell.placement)
        extractor = CorruptingExtractor()
        on_device = VideoFeatures(footage.clean, extractor, **options).under(cell.parsed, cell.placement)
    assert on_device.features.tobytes() == local.features.tobytes()
    assert on_device.seen.tobytes() == local.seen.tobytes()
    assert {*extractor.corrupted} == ({cell.specs[0]} if extractor.can_corrupt(cell.specs[0]) else set())


def test_clean_frames_are_sent_once_for_several_cells(job: VideoJob) -> None:
    cells = {
        spec: (cell_of(spec).parsed, None) for spec in ("fog:1", "fog:2", "contrast:3", "freeze:3", "brightness:1")
    }
    with open_footage(job) as footage:
        options = {"seed": job.seed, "video_id": job.name}
        extractor = CorruptingExtractor()
        video = VideoFeatures(footage.clean, extractor, **options)
        count = len(footage.clean)
        video.clean()
        on_device = dict(video.sweep(cells))
        local = dict(VideoFeatures(footage.clean, TwoParts(), **options).sweep(cells))
    assert list(on_device) == list(local) == list(cells)
    assert all(on_device[name].features.tobytes() == local[name].features.tobytes() for name in cells)
    assert [on_device[name].cost.seen for name in cells] == [count, count, count, 0, count]
    assert extractor.sent == 3 * count  # clean, then three cells together, and one after a cell without new frames


@pytest.mark.parametrize("batch", [1, 4])
def test_scores_do_not_depend_on_where_clips_are_corrupted(batch: int, job: VideoJob) -> None:
    local = RecognitionPredictor(Weigher(), SAMPLING, THREE, batch)(job)
    model = CorruptingModel()
    on_device = RecognitionPredictor(model, SAMPLING, THREE, batch)(job)
    assert {name: scores.tolist() for name, scores in on_device.outputs.items()} == {
        name: scores.tolist() for name, scores in local.outputs.items()
    }
    assert {*model.corrupted} == {*SPECS[:-1], "contrast:2"}
    assert (on_device.clean.joined, on_device.cells.joined) == (local.clean.joined, local.cells.joined)
    assert model.sent < (on_device.clean + on_device.cells).joined  # clips are sent once for several cells


class LanguageModel:
    """Language model that answers questions and locates sentences by the sum of its input."""

    frames = 24

    def answer(self, questions: Any) -> list[Answer]:
        return [Answer((-1.0, -float(one.frames.mean()) / 100), None, 0) for one in questions]

    def locate(self, sentences: Any) -> list[Windows]:
        return [Windows(((0.0, float(one.frames.sum(dtype=np.int64)), 1.0),)) for one in sentences]


class RemoteLanguageModel:
    """The same model behind a remote interface, which corrupts frames first."""

    def __init__(self) -> None:
        self.frames, self.corrupted = LanguageModel.frames, list[str]()
        self._holder = mock.Mock(language_model=LanguageModel(), guard=nullcontext)
        self._holder.language_model.device = torch.device("cpu")

    def can_corrupt(self, spec: str) -> bool:
        return CorruptingModel().can_corrupt(spec)

    def answer(self, questions: Any, corruption: Any = None) -> Any:
        return self._ask("answer", questions, corruption)

    def locate(self, sentences: Any, corruption: Any = None) -> Any:
        return self._ask("locate", sentences, corruption)

    def _ask(self, method: str, requests: Any, corruption: Any) -> Any:
        self.corrupted += [corruption.spec] if corruption else []
        return remote._ask_about(self._holder, *pickle.loads(pickle.dumps((method, requests, corruption))))


QUESTIONS = (
    QuestionItem("a0", "a", "What?", ("one", "two"), 0, "what"),
    QuestionItem("a1", "a", "Where?", ("one", "two"), 0, "where", start=0.3, end=0.6),
)
MOMENTS = (MomentItem("a0", "a", "A wave.", ((0.2, 1.2),)),)


@pytest.mark.parametrize(("predictor", "items"), [(QuestionPredictor, QUESTIONS), (MomentPredictor, MOMENTS)])
def test_answers_do_not_depend_on_where_frames_are_corrupted(job: VideoJob, predictor: Any, items: Any) -> None:
    model = RemoteLanguageModel()
    local, on_device = (predictor(candidate)(replace(job, items=items)) for candidate in (LanguageModel(), model))
    assert on_device.outputs == local.outputs
    assert {*model.corrupted} == {*SPECS[:-1], "contrast:2"}
    assert len({answers.answers for answers in local.outputs.values()}) == len(CELLS)


def test_models_corrupt_on_a_gpu_only() -> None:
    on_gpu, on_cpu = mock.Mock(device=torch.device("cuda")), mock.Mock(device=torch.device("cpu"))
    with mock.patch("jostle.core.triton_support.can_compile", return_value=True):
        assert can_corrupt_on_device(on_gpu, "fog:2")
        assert not can_corrupt_on_device(on_gpu, "glass_blur:2")  # has no GPU kernel
        assert not can_corrupt_on_device(on_gpu, "thumos14-c-i3d/motion_blur:2")  # has none with JPEG
        assert not can_corrupt_on_device(on_cpu, "fog:2")
        assert not can_corrupt_on_device(Weigher(), "fog:2")
    with mock.patch("jostle.core.triton_support.can_compile", return_value=False):
        assert not can_corrupt_on_device(on_gpu, "fog:2")


def test_clips_with_different_corruptions_share_a_batch() -> None:
    frames = np.zeros((1, 4, 8, 8, 3), np.uint8)
    row = np.arange(4)[None]
    noisy = DeferredCorruption("gaussian_noise:3", 1, "a", numbers=row, times=row / 30, affected=row >= 0)
    plain, one, two = (batching_of(remote._predict, (frames, DeferredCorruptions([noisy] * n)), 8) for n in range(3))
    assert plain == one
    assert two == (one[0], 2, 8)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_recogniser_on_a_gpu_scores_deferred_and_sent_corruptions_alike(job: VideoJob) -> None:
    from jostle.models.loading.recognisers import load_recogniser

    model = load_recogniser("puppet_c3d", weights="random").to("cuda")
    predictor = RecognitionPredictor(model, SAMPLING, ClassMatch("by number", None))
    with open_footage(job) as footage:
        row = np.arange(16)
        clean = footage.clean.block(0, 16)[None].copy()
        for cell in CELLS[1:-2]:
            assert can_corrupt_on_device(model, cell.specs[0])
            corrupted = footage.under(cell).block(0, 16)[None].copy()
            corruption = footage.deferred(cell)(row[None])
            parts = [(clean, DeferredCorruptions([corruption, corruption])), (corrupted, DeferredCorruptions())]
            deferred, sent = remote._predict_together(predictor, parts)
            assert deferred.tolist() == [*sent.tolist(), *sent.tolist()]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_an_extractor_on_a_gpu_encodes_deferred_and_sent_corruptions_alike(job: VideoJob) -> None:
    from jostle.models.loading.extractors import load_extractor

    extractor = remote.LoadedExtractor(load_extractor("puppet_net", device="cuda"))
    with open_footage(job) as footage:
        numbers = np.arange(40)
        clean = footage.clean.block(0, 40).copy()
        for cell in CELLS[1:-2]:
            assert can_corrupt_on_device(extractor.extractor, cell.specs[0])
            corrupted = footage.under(cell).block(0, 40).copy()
            corruption = footage.deferred(cell)(numbers)
            parts = [(clean, DeferredCorruptions([corruption, corruption])), (corrupted, NO_CORRUPTIONS)]
            deferred, sent = remote._see_together(extractor, parts)
            assert deferred.tobytes() == 2 * sent.tobytes()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_frames_corrupted_on_a_gpu_return_to_the_cpu_unchanged(job: VideoJob) -> None:
    with open_footage(job) as footage:
        rows = np.arange(0, 48, 3)
        clean = footage.clean.block(0, 48)[rows].copy()
        for cell in CELLS[1:-2]:
            corrupted = corrupt_to_host(torch.device("cuda"), clean, footage.deferred(cell)(rows))
            assert np.array_equal(corrupted, footage.under(cell).block(0, 48)[rows])
