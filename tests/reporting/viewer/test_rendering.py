"""Videos for a browser: the frames that the model saw, at the times it saw them."""

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
from jostle.io.video.encode import Writer
from jostle.reporting.analysis.record import RunRecord
from jostle.reporting.analysis.replay import corrupted_mask, screened
from jostle.reporting.viewer.rendering import Cancelled, Excerpt, RenderedVideo, Showing, _even, _film


def rendered(work: Showing | Excerpt, out: Path) -> RenderedVideo:
    shares: list[float] = []
    film = work.render(out, shares.append, lambda: None)
    assert shares == sorted(shares)
    assert film.original or shares[-1] == 1.0
    return film


def blocks(frames: np.ndarray) -> np.ndarray:
    count, height, width, _ = frames.shape
    return frames.reshape(count, height // 8, 8, width // 8, 8, 3).mean(axis=(2, 4, 5))


def showing(run: Path, video: str, cell: str) -> Showing:
    record = RunRecord.read(run)
    return Showing(record, video, cell, record.sources[video])


def test_what_is_rendered_is_what_the_model_saw(runs: dict[str, Path], tmp_path: Path) -> None:
    cell = "thumos14-c/black_frame:3"
    work = showing(runs["detection"], "b", cell)
    film = rendered(work, tmp_path / "b.mp4")
    clip = jostle.read(tmp_path / "b.mp4")
    with screened(work.record, "b", cell) as (footage, order):
        seen = footage.under(order).block(0, len(footage.clean))
        mask = corrupted_mask(work.record, "b", cell, footage.clean.pts, footage.clean.fps)
        np.testing.assert_allclose(clip.pts, footage.clean.pts, atol=1e-3)
    assert film.frames == len(clip) == len(seen)
    # 4:2:0 halves what it keeps of colour, and these films are noise: brightness is compared, block by block.
    grey, wanted = (blocks(frames) for frames in (clip.frames, seen))
    assert np.abs(grey - wanted).mean() < 3 < np.abs(grey[1:] - wanted[:-1]).mean()
    assert (clip.frames[mask].mean(axis=(1, 2, 3)) < 8).all()
    assert (clip.frames[~mask].mean(axis=(1, 2, 3)) > 30).all()
    assert film.struck is not None
    inside = [any(a <= t < b for a, b in film.struck) for t in clip.pts]
    assert inside == mask.tolist()


def test_the_clean_video_is_rendered_only_if_browsers_do_not_play_it(runs: dict[str, Path], tmp_path: Path) -> None:
    work = showing(runs["detection"], "a", "clean")
    film = rendered(work, tmp_path / "a.mp4")
    assert not film.original  # it is Matroska
    assert (tmp_path / "a.mp4").exists()
    assert film.struck == ()
    played = Showing(work.record, "a", "clean", tmp_path / "a.mp4")
    again = rendered(played, tmp_path / "again.mp4")
    assert again.original
    assert not (tmp_path / "again.mp4").exists()


def test_odd_sides_are_made_even() -> None:
    frames = np.arange(2 * 3 * 5 * 3, dtype=np.uint8).reshape(2, 3, 5, 3)
    made = _even(frames, 6, 4)
    assert made.shape == (2, 4, 6, 3)
    np.testing.assert_array_equal(made[:, :3, :5], frames)
    np.testing.assert_array_equal(made[:, 3, :5], frames[:, 2])
    assert _even(made, 6, 4) is made


def test_an_odd_video_becomes_one_that_every_browser_plays(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    with Writer(tmp_path / "odd.mp4", size=(31, 45), fps=25) as writer:
        for _ in range(10):
            writer.write(rng.integers(0, 255, (31, 45, 3), np.uint8))
    film = rendered(Excerpt("odd", Spec.parse("brightness:2"), 0, tmp_path / "odd.mp4"), tmp_path / "out.mp4")
    assert film.size == (46, 32)
    from jostle.io.video.source import probe

    facts = probe(tmp_path / "out.mp4")
    assert (facts.width, facts.height, facts.pixel_format, facts.codec) == (46, 32, "yuv420p", "h264")


def test_a_player_can_jump(tmp_path: Path) -> None:
    with Writer(tmp_path / "still.mkv", size=(32, 48), fps=10) as writer:
        for _ in range(35):
            writer.write(np.full((32, 48, 3), 90, np.uint8))
    rendered(Excerpt("still", None, 0, tmp_path / "still.mkv"), tmp_path / "out.mp4")
    with av.open(str(tmp_path / "out.mp4")) as film:
        keys = [number for number, frame in enumerate(film.decode(video=0)) if frame.key_frame]
    assert keys == [0, 10, 20, 30]  # one a second
    data = (tmp_path / "out.mp4").read_bytes()
    assert data.index(b"moov") < data.index(b"mdat")  # the index comes first


def test_uneven_times_are_told_one_by_one() -> None:
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
def test_an_excerpt_of_every_level(runs: dict[str, Path], tmp_path: Path, spec: str) -> None:
    source = RunRecord.read(runs["detection"]).sources["a"]
    film = rendered(Excerpt("a", Spec.parse(spec), 0, source), tmp_path / "out.mp4")
    assert film.frames == len(jostle.read(tmp_path / "out.mp4")) > 1


def test_another_seed_cell_or_source_is_another_video(runs: dict[str, Path], tmp_path: Path) -> None:
    work = showing(runs["detection"], "a", "freeze:3")
    copy = tmp_path / "copy.mkv"
    copy.write_bytes(work.path.read_bytes())
    other = RunRecord(work.record.folder, replace(work.record.about, seed=1), work.record.scores)
    keys = {
        work.key,
        Showing(work.record, "a", "clean", work.path).key,
        Showing(work.record, "b", "freeze:3", work.path).key,
        Showing(work.record, "a", "freeze:3", copy).key,
        Showing(other, "a", "freeze:3", work.path).key,
    }
    assert len(keys) == 5
    assert work.key == showing(runs["detection"], "a", "freeze:3").key


def test_a_source_that_is_gone(runs: dict[str, Path], tmp_path: Path) -> None:
    work = showing(runs["detection"], "a", "freeze:3")
    with pytest.raises(JostleError, match="the video is no longer there"):
        _ = Showing(work.record, "a", "freeze:3", tmp_path / "gone.mp4").key


def test_a_rendering_can_be_stopped(runs: dict[str, Path], tmp_path: Path) -> None:
    def check() -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        showing(runs["detection"], "a", "freeze:3").render(tmp_path / "a.mp4", lambda _: None, check)
    assert not list(tmp_path.iterdir())


def test_a_cell_that_strikes_part_of_a_clip_of_recognition(runs: dict[str, Path], tmp_path: Path) -> None:
    cell = "thumos14-c/black_frame:1"
    work = showing(runs["recognition"], "a", cell)
    film = rendered(work, tmp_path / "a.mp4")
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
    assert other.key != work.key
    assert rendered(other, tmp_path / "other.mp4").struck != film.struck
