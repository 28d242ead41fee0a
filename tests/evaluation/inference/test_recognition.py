"""Recognition scores over many cells equal those of corrupting and sampling each whole video, at a lower cost."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.small_recognition import CELLS, RECIPE, SAMPLING, Weigher
from jostle.core.random import rng_for
from jostle.corruptions.engine.video import corrupt_video
from jostle.datasets.class_matching import ClassMatch
from jostle.errors import BadValue, DataError, ResourceError
from jostle.evaluation.inference.jobs import VideoJob
from jostle.evaluation.inference.recognition import RecognitionPredictor
from jostle.evaluation.recipes.recipe import CLEAN_CELL, Cell
from jostle.evaluation.recipes.sampling import Sampling, sample_frames
from jostle.io.video.decode import Reader, read
from jostle.io.video.encode import Writer
from jostle.mending.finders.known import KnownDamage

THREE = ClassMatch("by number", 3)


@pytest.fixture(scope="module")
def video(videos: dict[str, Path]) -> Path:
    return videos["a"]


def make_job(video: Path, cells: tuple[Cell, ...] = RECIPE.cells, seed: int = 3) -> VideoJob:
    return VideoJob("a", video, cells, seed)


@pytest.mark.parametrize("cell", RECIPE.cells, ids=lambda cell: cell.name)
def test_a_cell_is_the_corrupted_file_sampled(video: Path, cell: Cell, tmp_path: Path) -> None:
    scores = RecognitionPredictor(Weigher(), SAMPLING, THREE)(make_job(video)).outputs[cell.name]
    out = tmp_path / "bad.mkv"
    corrupt_video(video, cell.parsed, out, seed=3, video_id="a", lossless=True)
    clip = read(out)
    rows = sample_frames(SAMPLING, Weigher().spec, clip.pts, clip.fps, rng_for(3, "clips", "a"))
    assert rows.shape == (3, 6)
    expected = Weigher()(clip.frames[rows]).astype(np.float64).mean(0).astype(np.float32)
    assert scores.dtype == np.float32
    assert scores.tolist() == expected.tolist()


def test_cells_differ_and_a_video_is_decoded_once(video: Path) -> None:
    model = Weigher()
    result = RecognitionPredictor(model, SAMPLING, THREE)(make_job(video))
    assert len({scores.tobytes() for scores in result.outputs.values()}) == len(CELLS) + 1
    assert result.clean.joined == 3
    assert result.clean.decoded + result.cells.decoded <= 48
    assert result.clean.joined + result.cells.joined == sum(model.given)
    assert result.cells.joined < 3 * len(CELLS)  # clips without black frames are reused


def test_thirty_views_decode_a_video_once(video: Path) -> None:
    torch = pytest.importorskip("torch")
    from jostle.models.loading.recognisers import load_recogniser

    tensors = load_recogniser("x3d_xs", weights="random").network.state_dict()
    tensors |= {name: tensors[name][:3] for name in ("blocks.5.proj.weight", "blocks.5.proj.bias")}
    model = load_recogniser("x3d_xs", weights=tensors, views="published", step=3, size=32)
    result = RecognitionPredictor(model, Sampling(), THREE)(make_job(video, (CLEAN_CELL,)))
    assert (result.clean.joined, result.clean.seen) == (10, 40)
    assert result.clean.decoded <= 48
    clip = read(video)
    rows = sample_frames(Sampling(), model.spec, clip.pts, clip.fps, rng_for(0))
    with torch.inference_mode():
        crops = torch.cat([model.spec.prepare(clip.frames[row]) for row in rows])
        expected = torch.cat([model.network(crop[None]) for crop in crops]).softmax(1).mean(0)
    assert crops.shape == (30, 3, 4, 32, 32)
    assert np.allclose(result.outputs["clean"], expected.numpy(), atol=1e-5)


@given(
    batch=st.integers(1, 7),
    chosen=st.sets(st.sampled_from(range(len(RECIPE.cells))), min_size=1),
)
@settings(max_examples=12, deadline=None)
def test_scores_do_not_depend_on_batches_or_other_cells(batch: int, chosen: set[int], video: Path) -> None:
    cells = tuple(RECIPE.cells[i] for i in sorted(chosen))
    expected = RecognitionPredictor(Weigher(), SAMPLING, THREE)(make_job(video)).outputs
    outputs = RecognitionPredictor(Weigher(), SAMPLING, THREE, batch)(make_job(video, cells)).outputs
    assert list(outputs) == [cell.name for cell in cells]
    assert all((outputs[name] == expected[name]).all() for name in outputs)


def test_memory_does_not_grow_with_cells(video: Path) -> None:
    """Clips are held in batches only, whatever the number of cells."""
    model = Weigher()
    many = tuple(
        Cell(f"gaussian_noise:{s}@{i}", (f"gaussian_noise:{s}",), None, "", True) for s in (1, 2) for i in (1, 2)
    )
    RecognitionPredictor(model, SAMPLING, THREE, batch=2)(make_job(video, (CLEAN_CELL, *many)))
    assert max(model.given) == 2


def test_sampled_frame_indices() -> None:
    pts = np.arange(60) / 30.0
    rng = rng_for(0)
    spec = Weigher(4, 3).spec
    assert sample_frames(Sampling(), spec, pts, Fraction(30), rng).tolist() == [[25, 28, 31, 34]]
    slow = Weigher(4, 3, fps=15.0).spec
    assert sample_frames(Sampling(), slow, pts, Fraction(30), rng).tolist() == [[20, 26, 32, 38]]
    # A stride of the benchmark is one of the video's frames, and a spread over the whole video has no rate.
    assert sample_frames(Sampling(stride=2), slow, pts, Fraction(30), rng).tolist() == [[26, 28, 30, 32]]
    assert sample_frames(Sampling(spread="even"), slow, pts, Fraction(30), rng).tolist() == [[7, 22, 37, 52]]
    # A model without a specification gets what the benchmark samples, or every frame.
    assert sample_frames(Sampling(frames=2, spread="even"), None, pts, Fraction(30), rng).tolist() == [[15, 45]]
    assert sample_frames(Sampling(clips=5), None, pts, Fraction(30), rng).tolist() == [list(range(60))]


def test_all_cells_share_the_same_random_frames(video: Path) -> None:
    drawn = Sampling(frames=6, spread="drawn")
    with Reader(video) as reader:
        rows = [
            sample_frames(drawn, Weigher().spec, reader.pts, reader.fps, rng_for(seed, "clips", "a")).tolist()
            for seed in range(8)
        ]
    assert len({str(row) for row in rows}) > 1
    model = Weigher()
    expected = RecognitionPredictor(model, drawn, THREE)(make_job(video, (CLEAN_CELL,), 5)).outputs["clean"]
    assert (
        RecognitionPredictor(Weigher(), drawn, THREE)(make_job(video, RECIPE.cells, 5)).outputs["clean"] == expected
    ).all()


def test_a_folder_of_images_is_a_video(video: Path, tmp_path: Path) -> None:
    folder = tmp_path / "a"
    clip = read(video)
    with Writer(folder, size=clip.size, fps=clip.fps) as writer:
        for tick, frame in enumerate(clip.frames):
            writer.write(frame, tick)
    cells = tuple(cell for cell in RECIPE.cells if "bit_error" not in cell.name)  # needs a file's own stream
    expected = RecognitionPredictor(Weigher(), SAMPLING, THREE)(make_job(video, cells)).outputs
    outputs = RecognitionPredictor(Weigher(), SAMPLING, THREE)(make_job(folder, cells)).outputs
    assert all((outputs[name] == expected[name]).all() for name in expected)


class FailingModel(Weigher):
    def __call__(self, clips: np.ndarray) -> np.ndarray:
        raise self.error


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (ZeroDivisionError("by nought"), DataError, "the model failed .ZeroDivisionError: by nought"),
        (MemoryError(), ResourceError, "no memory left"),
    ],
)
def test_a_model_that_fails_is_named(video: Path, error: Exception, kind: type[Exception], message: str) -> None:
    model = FailingModel()
    model.error = error
    with pytest.raises(kind, match=message):
        RecognitionPredictor(model, SAMPLING, THREE)(make_job(video))


def test_another_number_of_classes_is_refused(video: Path) -> None:
    with pytest.raises(BadValue, match="weigher returns 3 scores, and there are 5 classes"):
        RecognitionPredictor(Weigher(), SAMPLING, ClassMatch("by number", 5))(make_job(video))


def test_mended_clips_use_the_nearest_undamaged_frames(video: Path) -> None:
    cells = (
        CLEAN_CELL,
        Cell("black:1", ("thumos14-c/black_frame:1",), "frames:10-20", "", True),
        Cell("noise:2", ("ucf101-p/gaussian_noise:2",), "everywhere", "", True),
    )
    model = Weigher()
    mended = RecognitionPredictor(model, SAMPLING, THREE, mending=KnownDamage())(make_job(video, cells))
    unmended = RecognitionPredictor(Weigher(), SAMPLING, THREE)(make_job(video, cells))
    clip = read(video)
    rows = sample_frames(SAMPLING, Weigher().spec, clip.pts, clip.fps, rng_for(3, "clips", "a"))
    mended_rows = np.where((rows >= 10) & (rows < 15), 9, np.where((rows >= 15) & (rows < 20), 20, rows))
    assert (mended_rows != rows).any()
    expected = Weigher()(clip.frames[mended_rows]).astype(np.float64).mean(0).astype(np.float32)
    assert mended.outputs["black:1"].tolist() == expected.tolist()
    assert mended.outputs["clean"].tolist() == unmended.outputs["clean"].tolist()
    assert mended.outputs["noise:2"].tolist() == unmended.outputs["noise:2"].tolist()  # no undamaged frame to use
    assert [mended.mended[cell.name].left for cell in cells] == [False, False, True]
    assert unmended.mended is None
