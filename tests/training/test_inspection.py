"""Training of inspectors: banks of corrupted films, windows, thresholds and resuming."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from helpers.stopped_work import assert_resumes
from jostle.api import load_inspector
from jostle.api import train as api_train
from jostle.core.random import rng_for
from jostle.core.settings import make_settings
from jostle.core.types.clip import Clip, Frames
from jostle.corruptions.engine.corruption import corruptions
from jostle.corruptions.engine.spec import Spec
from jostle.errors import BadValue, DataError, SourceChanged, UnknownName
from jostle.io.video.encode import Writer
from jostle.mending.descriptor import describe_frame, describe_frames
from jostle.training.descriptor_bank import (
    CorruptedFilm,
    FilmBank,
    corrupt_film,
    load_footage,
    picture_corruptions,
    read_bank,
    write_bank,
)
from jostle.training.inspection import FilmProbabilities, predict_films, recall, threshold_at
from jostle.training.inspection_config import InspectionConfig
from jostle.training.inspection_windows import draw_windows, flip, mirror, render_windows
from jostle.training.loop import Trainer, train

SPECS = ("thumos14-c/black_frame:2", "gaussian_noise:4")


def film(number: int, frames: int = 48) -> Frames:
    rng = np.random.default_rng(number)
    ground = rng.integers(60, 200, (40, 64, 3), np.uint8)
    return np.stack([np.roll(ground, t // 2, axis=1) for t in range(frames)])


@pytest.fixture(scope="module")
def videos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("videos")
    for number in range(3):
        with Writer(folder / f"v{number}.mp4", size=(40, 64), fps=10) as writer:
            for frame in film(number):
                writer.write(frame)
    return folder


def make_config(videos: Path, cache: Path, **changes: object) -> InspectionConfig:
    defaults = {
        "data": {"videos": str(videos), "select": 0.3, "cache": str(cache), "jobs": 1},
        "strikes": {"specs": list(SPECS), "each": 4, "lengths": [1, 12]},
        "optimiser": {"epochs": 1, "warmup_epochs": 1, "batch": 2, "lr": 3e-3, "average": 0.5},
        "task": "inspection",
        "weights": "random",
        "window": 32,
        "windows": 8,
        "device": "cpu",
    }
    return make_settings(InspectionConfig, {**defaults, **changes}, where="here")


@pytest.fixture(scope="module")
def bank() -> FilmBank:
    films = [
        corrupt_film(Clip.at_rate(film(n), 10), SPECS, name=f"v{n}@0", kind="video", count=4, lengths=(8, 24), seed=3)
        for n in range(3)
    ]
    return FilmBank.of(films)


def test_corrupted_spans_equal_corrupting_those_frames(bank: FilmBank) -> None:
    from jostle.core.random import key_for
    from jostle.corruptions.engine.apply import corrupted_frames

    assert {span.kind for corrupted_film in bank.films for span in corrupted_film.spans} == set(SPECS)
    for number, corrupted_film in enumerate(bank.films):
        assert (
            bank.frames[corrupted_film.first : corrupted_film.first + corrupted_film.count]
            == describe_frames(film(number))
        ).all()
        for index, span in enumerate(corrupted_film.spans):
            corrupted = corrupted_frames(
                Clip.at_rate(film(number), 10),
                [Spec.parse(SPECS[0])],
                seed=key_for(3, corrupted_film.name, index),
                video_id=corrupted_film.name,
                placement=f"frames:{span.at}-{span.at + span.count}",
            )
            descriptors = bank.frames[span.first : span.first + span.count]
            expected = describe_frames(corrupted[span.at : span.at + span.count])
            assert (descriptors == expected).all() == (span.kind == SPECS[0])
            assert bank.visible[span.first : span.first + span.count].all()


def test_picture_corruptions_exclude_time_level_corruptions() -> None:
    specs = picture_corruptions()
    assert {"fog", "thumos14-c/packet_loss", "kinetics-c/bit_error", "imagenet-c/frost"} <= set(specs)
    assert all(Spec.parse(spec).corruption.level != "time" for spec in specs)
    assert len({spec for spec in specs if "/" not in spec}) == sum(
        corruptions[name].level != "time" for name in corruptions
    )


def test_written_bank_is_read_unchanged(bank: FilmBank, tmp_path: Path) -> None:
    write_bank(bank, tmp_path / "films.bank")
    loaded = read_bank(tmp_path / "films.bank")
    assert (loaded.frames == bank.frames).all()
    assert (loaded.visible == bank.visible).all()
    assert loaded.films == bank.films


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "other"])
def test_damaged_bank_is_refused(bank: FilmBank, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "films.bank"
    write_bank(bank, path)
    content = path.read_bytes()
    path.unlink()
    if damage != "missing":
        path.write_bytes({"empty": b"", "cut": content[:-400], "other": b"glances " * 40}[damage])
    with pytest.raises(DataError, match=r"films\.bank"):
        read_bank(path)


def test_invisible_changes_have_no_weight(bank: FilmBank) -> None:
    clean = describe_frames(film(0))
    nearly_clean = clean[5:9].copy()
    nearly_clean[:, 0] += 1
    bank_of_one = FilmBank.of(
        [CorruptedFilm("a@0", "video", clean, (("fog:1", 5, nearly_clean), ("black_frame:1", 5, 0 * nearly_clean)))]
    )
    assert not bank_of_one.visible[48:52].any()
    assert bank_of_one.visible[52:56].all()
    for number in range(30):
        windows = draw_windows(bank_of_one, rng_for(0, number), 2, 40)
        invisible = (windows.damaged > 0) & np.isin(windows.rows, range(48, 52))
        assert (windows.weight[invisible] == 0).all()
        assert (windows.weight[windows.damaged == 0] == 1).all()


def test_windows_mark_exactly_the_corrupted_rows(bank: FilmBank) -> None:
    corrupted_rows = np.zeros(len(bank.frames), np.bool_)
    for corrupted_film in bank.films:
        for span in corrupted_film.spans:
            corrupted_rows[span.first : span.first + span.count] = True
    corrupted_count, clean_count, fully_corrupted = 0, 0, 0
    for number in range(60):
        windows = draw_windows(bank, rng_for(1, number), 2, 50)
        assert ((windows.damaged > 0) == corrupted_rows[windows.rows]).all()
        corrupted_count += int(windows.damaged.sum())
        clean_count += int((windows.damaged == 0).sum())
        fully_corrupted += int(windows.damaged.all(1).sum())
        again = draw_windows(bank, rng_for(1, number), 2, 50)
        assert (again.rows == windows.rows).all()
    assert 0.05 < corrupted_count / (corrupted_count + clean_count) < 0.6
    assert fully_corrupted


def test_rendered_windows_follow_the_drawn_light_changes(bank: FilmBank) -> None:
    windows = draw_windows(bank, rng_for(2), 2, 24)
    plain = replace(
        windows,
        share=0 * windows.share,
        gain=np.ones_like(windows.gain),
        flash=0 * windows.flash,
        sharper=0 * windows.sharper,
        mirrored=np.array([False, True]),
        turned=np.array([False, False]),
    )
    frames = torch.from_numpy(bank.frames)
    unchanged = render_windows(frames, plain.to(torch.device("cpu"))).numpy()
    assert np.abs(unchanged[0].astype(int) - bank.frames[windows.rows[0]]).max() <= 1
    result = render_windows(frames, replace(plain, mirrored=np.array([True, True])).to(torch.device("cpu"))).numpy()[0]
    flat = np.random.default_rng(0).integers(0, 256, (24, 24, 3), np.uint8)
    one, other = (torch.from_numpy(describe_frame(image))[None, None] for image in (flat, flat[:, ::-1]))
    assert (mirror(one)[..., :4, :, :] == other[..., :4, :, :]).all()
    assert (flip(one)[..., :4, :, :] == torch.from_numpy(describe_frame(flat[::-1]))[None, None, :4]).all()
    assert (result[:, 6:] == unchanged[0][:, 6:, :, ::-1]).all()
    dark = replace(plain, gain=np.zeros_like(windows.gain))
    black = render_windows(frames, dark.to(torch.device("cpu"))).numpy()
    assert not black[:, :, :4].any()
    assert not black[:, :, 6:].any()
    half = replace(plain, gain=np.full_like(windows.gain, 0.5))
    assert (
        np.abs(render_windows(frames, half.to(torch.device("cpu"))).numpy()[0, :, :4] * 2.0 - unchanged[0, :, :4]).max()
        <= 2
    )


def test_threshold_keeps_the_allowed_rate_of_false_alarms() -> None:
    rng = np.random.default_rng(0)
    empty = np.zeros(0, np.float32)
    clean = rng.random(2000, np.float32) * np.float32(0.8)
    predictions = [
        FilmProbabilities("", empty, empty, clean),
        FilmProbabilities("x", np.array([0.9, 0.1], np.float32), empty, empty),
    ]
    threshold = threshold_at(predictions, 1 / 200)
    assert 0 < (clean >= threshold).mean() <= 1 / 200
    assert recall(predictions, threshold) == 0.5


def test_training_reduces_the_loss_and_writes_an_inspector(videos: Path, tmp_path: Path) -> None:
    config = make_config(
        videos,
        tmp_path,
        windows=24,
        optimiser={"epochs": 5, "warmup_epochs": 1, "batch": 4, "lr": 3e-3, "average": 0.8},
    )
    messages: list[str] = []
    result = api_train(config, tmp_path / "run", watch=lambda event: messages.append(event.sentence))
    assert "preparing films" in messages
    assert result.first_loss is not None
    assert result.last_loss is not None
    assert result.last_loss < 0.9 * result.first_loss
    assert result.chosen_by == "found"
    inspector = load_inspector(result.weights)
    assert len(list(inspector.inspect(film(0)))) == 48
    assert len(list((tmp_path).glob("films-*.bank"))) == 1


def test_resumed_run_gives_the_same_weights(videos: Path, tmp_path: Path) -> None:
    config = make_config(videos, tmp_path, save_every=0.0)
    assert_resumes(config, tmp_path, 3)
    with pytest.raises(SourceChanged):
        train(replace(config, window=40), tmp_path / "parts")


def test_pieces_of_one_video_stay_in_one_split(videos: Path, tmp_path: Path) -> None:
    data = {"videos": str(videos), "select": 0.3, "cache": str(tmp_path), "jobs": 1, "piece": 16, "pieces": 3}
    learner = Trainer(make_config(videos, tmp_path, data=data), tmp_path).learner
    assert learner.counts == {"learn": 6, "choose": 3}
    assert len({film.name.partition("@")[0] for film in learner.choose.films}) == 1  # type: ignore[attr-defined]


def test_predict_films_groups_probabilities_by_corruption(bank: FilmBank) -> None:
    class DarknessDetector(torch.nn.Module):
        """Network that predicts damage for dark frames."""

        def forward(self, descriptors: torch.Tensor) -> torch.Tensor:
            return 20 - descriptors[:, :, :4].float().mean((2, 3, 4))

    predictions = predict_films(DarknessDetector(), bank, torch.device("cpu"))
    assert sum(len(prediction.clean) for prediction in predictions) == 3 * 48
    black = [prediction for prediction in predictions if prediction.kind == "black_frame"]
    assert all((prediction.damaged > 0.5).all() and (prediction.beside < 0.5).all() for prediction in black)
    assert all((prediction.damaged < 0.5).all() for prediction in predictions if prediction.kind == "gaussian_noise")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"window": 4}, "window is 16 frames at least"),
        ({"alarms": 1.5}, "alarms is a share"),
        ({"strikes": {"lengths": [9, 2]}}, "lengths is two numbers, the least first"),
        ({"strikes": {"severities": []}}, "severities must hold at least one"),
        ({"data": {"videos": "x", "select": 1.0}}, "select is a share"),
        ({"data": {"videos": "x", "piece": 2}}, "piece must be at least 16 frames"),
    ],
)
def test_invalid_settings_are_refused(changes: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(BadValue, match=message):
        make_config(tmp_path, tmp_path, **changes)


def test_invalid_footage_is_refused(videos: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(DataError, match="contains no videos to learn from"):
        load_footage(make_config(empty, tmp_path))
    with pytest.raises(DataError, match="no such folder"):
        load_footage(make_config(tmp_path / "gone", tmp_path))
    with pytest.raises(UnknownName, match="fogg"):
        load_footage(make_config(videos, tmp_path, strikes={"specs": ["fogg"]}))
    with pytest.raises(BadValue, match="has severities 1 to 3"):
        load_footage(make_config(videos, tmp_path, strikes={"specs": ["thumos14-c/occlusion"], "severities": [4]}))
