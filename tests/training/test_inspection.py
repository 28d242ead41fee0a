"""Training inspectors: films are struck where they say, windows hold what they claim, a stopped run goes on alike."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from jostle.api import load_inspector
from jostle.api import train as api_train
from jostle.core.config import make_settings
from jostle.core.random import rng_for
from jostle.core.types.clip import Clip, Frames
from jostle.corruptions.engine.corruption import corruptions
from jostle.corruptions.engine.spec import Spec
from jostle.errors import BadValue, DataError, SourceChanged, UnknownName
from jostle.io.video.encode import Writer
from jostle.mending.descriptor import describe_frame, describe_frames
from jostle.models.checkpoints import read_weights
from jostle.training.config_loading import read_training
from jostle.training.descriptor_bank import (
    CorruptedFilm,
    FilmBank,
    corrupt_film,
    draw_spec,
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


def made_config(videos: Path, cache: Path, **changes: object) -> InspectionConfig:
    usual = {
        "data": {"videos": str(videos), "select": 0.3, "cache": str(cache), "jobs": 1},
        "strikes": {"specs": list(SPECS), "each": 4, "lengths": [1, 12]},
        "optimiser": {"epochs": 1, "warmup_epochs": 1, "batch": 2, "lr": 3e-3, "average": 0.5},
        "task": "inspection",
        "weights": "random",
        "window": 32,
        "windows": 8,
        "device": "cpu",
    }
    return make_settings(InspectionConfig, {**usual, **changes}, where="here")


@pytest.fixture(scope="module")
def bank() -> FilmBank:
    struck = [
        corrupt_film(Clip.at_rate(film(n), 10), SPECS, name=f"v{n}@0", kind="video", count=4, lengths=(8, 24), seed=3)
        for n in range(3)
    ]
    return FilmBank.of(struck)


def test_strikes_are_what_corrupting_those_frames_gives(bank: FilmBank) -> None:
    from jostle.core.random import key_for
    from jostle.corruptions.engine.apply import corrupted_frames

    assert {strike.kind for one in bank.films for strike in one.spans} == set(SPECS)
    for number, one in enumerate(bank.films):
        assert (bank.frames[one.first : one.first + one.count] == describe_frames(film(number))).all()
        for which, strike in enumerate(one.spans):
            whole = corrupted_frames(
                Clip.at_rate(film(number), 10),
                [Spec.parse(SPECS[0])],
                seed=key_for(3, one.name, which),
                video_id=one.name,
                placement=f"frames:{strike.at}-{strike.at + strike.count}",
            )
            made = bank.frames[strike.first : strike.first + strike.count]
            black = describe_frames(whole[strike.at : strike.at + strike.count])
            assert (made == black).all() == (strike.kind == SPECS[0])
            assert bank.visible[strike.first : strike.first + strike.count].all()


def test_every_corruption_of_pictures_is_drawn_from_and_none_of_time() -> None:
    specs = picture_corruptions()
    assert {"fog", "thumos14-c/packet_loss", "kinetics-c/bit_error", "imagenet-c/frost"} <= set(specs)
    assert all(Spec.parse(spec).corruption.level != "time" for spec in specs)
    assert len({spec for spec in specs if "/" not in spec}) == sum(
        corruptions[name].level != "time" for name in corruptions
    )


def test_a_bank_on_disk_is_the_same(bank: FilmBank, tmp_path: Path) -> None:
    write_bank(bank, tmp_path / "films.bank")
    again = read_bank(tmp_path / "films.bank")
    assert (again.frames == bank.frames).all()
    assert (again.visible == bank.visible).all()
    assert again.films == bank.films


@pytest.mark.parametrize("damage", ["missing", "empty", "cut", "other"])
def test_a_damaged_bank_is_refused(bank: FilmBank, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "films.bank"
    write_bank(bank, path)
    whole = path.read_bytes()
    path.unlink()
    if damage != "missing":
        path.write_bytes({"empty": b"", "cut": whole[:-400], "other": b"glances " * 40}[damage])
    with pytest.raises(DataError, match=r"films\.bank"):
        read_bank(path)


def test_a_change_that_cannot_be_seen_counts_neither_way(bank: FilmBank) -> None:
    clean = describe_frames(film(0))
    nearly = clean[5:9].copy()
    nearly[:, 0] += 1
    one = FilmBank.of([CorruptedFilm("a@0", "video", clean, (("fog:1", 5, nearly), ("black_frame:1", 5, 0 * nearly)))])
    assert not one.visible[48:52].any()
    assert one.visible[52:56].all()
    for number in range(30):
        windows = draw_windows(one, rng_for(0, number), 2, 40)
        unseen = (windows.damaged > 0) & np.isin(windows.rows, range(48, 52))
        assert (windows.weight[unseen] == 0).all()
        assert (windows.weight[windows.damaged == 0] == 1).all()


def test_windows_hold_struck_rows_exactly_where_they_say(bank: FilmBank) -> None:
    struck_rows = np.zeros(len(bank.frames), np.bool_)
    for one in bank.films:
        for strike in one.spans:
            struck_rows[strike.first : strike.first + strike.count] = True
    seen, clean, throughout = 0, 0, 0
    for number in range(60):
        windows = draw_windows(bank, rng_for(1, number), 2, 50)
        assert ((windows.damaged > 0) == struck_rows[windows.rows]).all()
        seen += int(windows.damaged.sum())
        clean += int((windows.damaged == 0).sum())
        throughout += int(windows.damaged.all(1).sum())
        again = draw_windows(bank, rng_for(1, number), 2, 50)
        assert (again.rows == windows.rows).all()
    assert 0.05 < seen / (seen + clean) < 0.6
    assert throughout


def test_light_is_changed_as_drawn(bank: FilmBank) -> None:
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
    as_is = render_windows(frames, plain.to(torch.device("cpu"))).numpy()
    assert np.abs(as_is[0].astype(int) - bank.frames[windows.rows[0]]).max() <= 1
    back = render_windows(frames, replace(plain, mirrored=np.array([True, True])).to(torch.device("cpu"))).numpy()[0]
    flat = np.random.default_rng(0).integers(0, 256, (24, 24, 3), np.uint8)
    one, other = (torch.from_numpy(describe_frame(some))[None, None] for some in (flat, flat[:, ::-1]))
    assert (mirror(one)[..., :4, :, :] == other[..., :4, :, :]).all()
    assert (flip(one)[..., :4, :, :] == torch.from_numpy(describe_frame(flat[::-1]))[None, None, :4]).all()
    assert (back[:, 6:] == as_is[0][:, 6:, :, ::-1]).all()
    dark = replace(plain, gain=np.zeros_like(windows.gain))
    black = render_windows(frames, dark.to(torch.device("cpu"))).numpy()
    assert not black[:, :, :4].any()
    assert not black[:, :, 6:].any()
    half = replace(plain, gain=np.full_like(windows.gain, 0.5))
    assert (
        np.abs(render_windows(frames, half.to(torch.device("cpu"))).numpy()[0, :, :4] * 2.0 - as_is[0, :, :4]).max()
        <= 2
    )


def test_thresholds_keep_to_the_alarms_that_are_allowed() -> None:
    rng = np.random.default_rng(0)
    none = np.zeros(0, np.float32)
    clean = rng.random(2000, np.float32) * np.float32(0.8)
    told = [
        FilmProbabilities("", none, none, clean),
        FilmProbabilities("x", np.array([0.9, 0.1], np.float32), none, none),
    ]
    threshold = threshold_at(told, 1 / 200)
    assert 0 < (clean >= threshold).mean() <= 1 / 200
    assert recall(told, threshold) == 0.5


def test_it_learns_and_its_weights_are_an_inspector(videos: Path, tmp_path: Path) -> None:
    config = made_config(
        videos,
        tmp_path,
        windows=24,
        optimiser={"epochs": 5, "warmup_epochs": 1, "batch": 4, "lr": 3e-3, "average": 0.8},
    )
    told: list[str] = []
    done = api_train(config, tmp_path / "run", watch=lambda what: told.append(what.sentence))
    assert "making films" in told
    assert done.first_loss is not None
    assert done.last_loss is not None
    assert done.last_loss < 0.9 * done.first_loss
    assert done.chosen_by == "found"
    inspector = load_inspector(done.weights)
    assert len(list(inspector.inspect(film(0)))) == 48
    assert len(list((tmp_path).glob("films-*.bank"))) == 1


def test_a_stopped_run_goes_on_to_the_same_weights(videos: Path, tmp_path: Path) -> None:
    config = made_config(videos, tmp_path, save_every=0.0)
    whole = train(config, tmp_path / "whole")

    class Stop(Exception):
        pass

    def stop(step: int, total: int) -> None:
        if step == 3:
            raise Stop

    with pytest.raises(Stop):
        train(config, tmp_path / "parts", on_step=stop)
    parts = train(config, tmp_path / "parts")
    one, two = read_weights(whole.weights), read_weights(parts.weights)
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert whole.weights.read_bytes() == parts.weights.read_bytes()
    with pytest.raises(SourceChanged):
        train(replace(config, window=40), tmp_path / "parts")


def test_pieces_of_one_video_are_not_parted(videos: Path, tmp_path: Path) -> None:
    data = {"videos": str(videos), "select": 0.3, "cache": str(tmp_path), "jobs": 1, "piece": 16, "pieces": 3}
    learner = Trainer(made_config(videos, tmp_path, data=data), tmp_path).learner
    assert learner.counts == {"learn": 6, "choose": 3}
    assert len({film.name.partition("@")[0] for film in learner.choose.films}) == 1  # type: ignore[attr-defined]


def test_what_a_network_says_is_told_strike_by_strike(bank: FilmBank) -> None:
    class Dark(torch.nn.Module):
        """Takes what is dark for struck."""

        def forward(self, seen: torch.Tensor) -> torch.Tensor:
            return 20 - seen[:, :, :4].float().mean((2, 3, 4))

    told = predict_films(Dark(), bank, torch.device("cpu"))
    assert sum(len(one.clean) for one in told) == 3 * 48
    black = [one for one in told if one.kind == "black_frame"]
    assert all((one.damaged > 0.5).all() and (one.beside < 0.5).all() for one in black)
    assert all((one.damaged < 0.5).all() for one in told if one.kind == "gaussian_noise")


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
def test_settings_that_make_no_sense_are_refused(changes: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(BadValue, match=message):
        made_config(tmp_path, tmp_path, **changes)


def test_wrong_footage_is_told(videos: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(DataError, match="contains no videos to learn from"):
        load_footage(made_config(empty, tmp_path))
    with pytest.raises(DataError, match="no such folder"):
        load_footage(made_config(tmp_path / "gone", tmp_path))
    with pytest.raises(UnknownName, match="fogg"):
        load_footage(made_config(videos, tmp_path, strikes={"specs": ["fogg"]}))
    with pytest.raises(BadValue, match="has severities 1 to 3"):
        load_footage(made_config(videos, tmp_path, strikes={"specs": ["thumos14-c/occlusion"], "severities": [4]}))


def test_the_example_is_read_and_its_corruptions_are_known() -> None:
    config = read_training(Path(__file__).parents[2] / "examples" / "inspector.toml")
    assert isinstance(config, InspectionConfig)
    for spec in config.strikes.specs:
        draw_spec([spec], config.strikes.severities, rng_for(0))
