"""Videos rendered for a browser: the frames that the model received, at their timestamps."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

import jostle
from jostle.corruptions.engine.spec import Spec
from jostle.errors import JostleError
from jostle.evaluation.results.record import RunRecord
from jostle.io.video.encode import Writer
from jostle.reporting.analysis.replay import corrupted_mask, screened
from jostle.reporting.viewer.rendering import Cancelled, Excerpt, RenderedVideo, Showing, _even, _film


def render(job: Showing | Excerpt, out: Path) -> RenderedVideo:
    shares: list[float] = []
    film = job.render(out, shares.append, lambda: None)
    assert shares == sorted(shares)
    assert film.original or shares[-1] == 1.0
    return film


def blocks(frames: np.ndarray) -> np.ndarray:
    count, height, width, _ = frames.shape
    return frames.reshape(count, height // 8, 8, width // 8, 8, 3).mean(axis=(2, 4, 5))


def showing(run: Path, video: str, cell: str) -> Showing:
    record = RunRecord.read(run)
    return Showing(record, video, cell, record.sources[video])


def test_rendered_video_has_the_frames_of_the_model(runs: dict[str, Path], tmp_path: Path) -> None:
    cell = "thumos14-c/black_frame:3"
    job = showing(runs["detection"], "b", cell)
    film = render(job, tmp_path / "b.mp4")
    clip = jostle.read(tmp_path / "b.mp4")
    with screened(job.record, "b", cell) as (footage, order):
        model_frames = footage.under(order).block(0, len(footage.clean))
        mask = corrupted_mask(job.record, "b", cell, footage.clean.pts, footage.clean.fps)
        np.testing.assert_allclose(clip.pts, footage.clean.pts, atol=1e-3)
    assert film.frames == len(clip) == len(model_frames)
    # 4:2:0 halves the chroma resolution, and these films are noise, so luma is compared, block by block.
    grey, expected = (blocks(frames) for frames in (clip.frames, model_frames))
    assert np.abs(grey - expected).mean() < 3 < np.abs(grey[1:] - expected[:-1]).mean()
    assert (clip.frames[mask].mean(axis=(1, 2, 3)) < 8).all()
    assert (clip.frames[~mask].mean(axis=(1, 2, 3)) > 30).all()
    assert film.struck is not None
    inside = [any(a <= t < b for a, b in film.struck) for t in clip.pts]
    assert inside == mask.tolist()


def test_the_clean_video_is_rendered_only_if_browsers_do_not_play_it(runs: dict[str, Path], tmp_path: Path) -> None:
    job = showing(runs["detection"], "a", "clean")
    film = render(job, tmp_path / "a.mp4")
    assert not film.original  # it is Matroska
    assert (tmp_path / "a.mp4").exists()
    assert film.struck == ()
    played = Showing(job.record, "a", "clean", tmp_path / "a.mp4")
    again = render(played, tmp_path / "again.mp4")
    assert again.original
    assert not (tmp_path / "again.mp4").exists()


def test_odd_frame_sizes_are_padded_to_even() -> None:
    frames = np.arange(2 * 3 * 5 * 3, dtype=np.uint8).reshape(2, 3, 5, 3)
    padded = _even(frames, 6, 4)
    assert padded.shape == (2, 4, 6, 3)
    np.testing.assert_array_equal(padded[:, :3, :5], frames)
    np.testing.assert_array_equal(padded[:, 3, :5], frames[:, 2])
    assert _even(padded, 6, 4) is padded


def test_odd_video_is_rendered_in_a_browser_compatible_format(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    with Writer(tmp_path / "odd.mp4", size=(31, 45), fps=25) as writer:
        for _ in range(10):
            writer.write(rng.integers(0, 255, (31, 45, 3), np.uint8))
    film = render(Excerpt("odd", Spec.parse("brightness:2"), 0, tmp_path / "odd.mp4"), tmp_path / "out.mp4")
    assert film.size == (46, 32)
    from jostle.io.video.source import probe

    info = probe(tmp_path / "out.mp4")
    assert (info.width, info.height, info.pixel_format, info.codec) == (46, 32, "yuv420p", "h264")


def test_rendered_video_is_seekable(tmp_path: Path) -> None:
    with Writer(tmp_path / "still.mkv", size=(32, 48), fps=10) as writer:
        for _ in range(35):
            writer.write(np.full((32, 48, 3), 90, np.uint8))
    render(Excerpt("still", None, 0, tmp_path / "still.mkv"), tmp_path / "out.mp4")
    with av.open(str(tmp_path / "out.mp4")) as film:
        keys = [number for number, frame in enumerate(film.decode(video=0)) if frame.key_frame]
    assert keys == [0, 10, 20, 30]  # one a second
    data = (tmp_path / "out.mp4").read_bytes()
    assert data.index(b"moov") < data.index(b"mdat")  # the index comes first


def test_uneven_timestamps_are_listed_per_frame() -> None:
    class Uneven:
        size, fps, pts = (4, 4), Fraction(10), np.array([0.0, 0.1, 0.25, 0.3])

        def __len__(self) -> int:
            return 4

        def block(self, lo: int, hi: int) -> np.ndarray:
            return np.zeros((hi - lo, 4, 4, 3), np.uint8)

    mask = np.array([False, True, True, False])
    film = _film(Uneven(), mask, 0.4)
    assert film.times == (0.0, 0.1, 0.25, 0.3)
    assert film.struck == ((0.1, 0.3),)
    assert _film(Uneven(), np.ones(4, np.bool_), 0.4).struck is None


@pytest.mark.parametrize("spec", ["imagenet-c/fog:3", "freeze:4", "kinetics-c/h265_crf:3", "kinetics-c/packet_loss:2"])
def test_excerpts_of_every_corruption_level(runs: dict[str, Path], tmp_path: Path, spec: str) -> None:
    source = RunRecord.read(runs["detection"]).sources["a"]
    film = render(Excerpt("a", Spec.parse(spec), 0, source), tmp_path / "out.mp4")
    assert film.frames == len(jostle.read(tmp_path / "out.mp4")) > 1


def test_seed_cell_and_source_are_part_of_the_key(runs: dict[str, Path], tmp_path: Path) -> None:
    job = showing(runs["detection"], "a", "freeze:3")
    copy = tmp_path / "copy.mkv"
    copy.write_bytes(job.path.read_bytes())
    other = RunRecord(job.record.folder, replace(job.record.about, seed=1), job.record.scores)
    keys = {
        job.key,
        Showing(job.record, "a", "clean", job.path).key,
        Showing(job.record, "b", "freeze:3", job.path).key,
        Showing(job.record, "a", "freeze:3", copy).key,
        Showing(other, "a", "freeze:3", job.path).key,
    }
    assert len(keys) == 5
    assert job.key == showing(runs["detection"], "a", "freeze:3").key


def test_missing_source_is_reported(runs: dict[str, Path], tmp_path: Path) -> None:
    job = showing(runs["detection"], "a", "freeze:3")
    with pytest.raises(JostleError, match="the video is no longer there"):
        _ = Showing(job.record, "a", "freeze:3", tmp_path / "gone.mp4").key


def test_rendering_can_be_cancelled(runs: dict[str, Path], tmp_path: Path) -> None:
    def check() -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        showing(runs["detection"], "a", "freeze:3").render(tmp_path / "a.mp4", lambda _: None, check)
    assert not list(tmp_path.iterdir())


def test_cell_that_affects_part_of_a_recognition_clip(runs: dict[str, Path], tmp_path: Path) -> None:
    cell = "thumos14-c/black_frame:1"
    job = showing(runs["recognition"], "a", cell)
    film = render(job, tmp_path / "a.mp4")
    assert film.struck is not None
    ((start, end),) = film.struck
    assert 0 < start < end < film.end_s
    clip = jostle.read(tmp_path / "a.mp4")
    dark = clip.frames.mean(axis=(1, 2, 3)) < 8
    assert dark.tolist() == [start <= t < end for t in clip.pts]
    moved = tmp_path / "moved"
    shutil.copytree(runs["recognition"], moved)
    truth = json.loads((moved / "truth.json").read_text())
    (moved / "truth.json").write_text(json.dumps(truth | {"actions": {"a": [[0.1, 0.5]]}}))
    other = showing(moved, "a", cell)
    assert other.key != job.key
    assert render(other, tmp_path / "other.mp4").struck != film.struck
