"""Films: bytes independent of the drawn range, smooth motion and valid extremes of difficulty."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.datasets.puppets.film import CLASSES, FPS, SIZE, Difficulty, Film, trimmed, untrimmed
from jostle.datasets.puppets.props import PROPS
from jostle.errors import BadValue

CAST = (3, 5, 8)


@pytest.fixture(scope="module")
def film() -> Film:
    return untrimmed(0, "a film", cast=CAST)


@pytest.fixture(scope="module")
def frames(film: Film) -> np.ndarray:
    return film.draw(0, 240)


def test_frames_have_the_documented_format(film: Film, frames: np.ndarray) -> None:
    assert frames.shape == (240, *SIZE, 3)
    assert frames.dtype == np.uint8
    assert FPS == 24
    assert frames.std() > 15


@settings(max_examples=25)
@given(st.integers(0, 239), st.integers(0, 40))
def test_frames_do_not_depend_on_the_drawn_range(film: Film, frames: np.ndarray, lo: int, count: int) -> None:
    hi = min(lo + count, 240)
    assert np.array_equal(film.draw(lo, hi), frames[lo:hi])


def test_films_are_determined_by_seed_and_name(film: Film, frames: np.ndarray) -> None:
    repeated = untrimmed(0, "a film", cast=CAST)
    assert repeated == film
    assert np.array_equal(repeated.draw(30, 40), frames[30:40])
    assert untrimmed(1, "a film", cast=CAST).actions != film.actions
    assert untrimmed(0, "another film", cast=CAST).actions != film.actions


def test_consecutive_frames_are_similar(frames: np.ndarray) -> None:
    steps = np.abs(np.diff(frames.astype(int), axis=0)).mean(axis=(1, 2, 3))
    assert 0 < steps.max() < 20


@pytest.mark.parametrize("label", CLASSES)
def test_a_trimmed_clip_holds_one_action(label: str) -> None:
    for number in range(6):
        clip = trimmed(0, f"clip {number}", label=label, puppet=number)
        assert [action.label for action in clip.actions] == [label]
        assert 1.5 <= clip.frames / 24 <= 6.1
        assert clip.actions[0].puppet == number
    assert len(clip.draw(0, clip.frames)) == clip.frames


def test_limbs_never_jump() -> None:
    for number in range(6):
        film = untrimmed(0, f"smooth {number}", cast=CAST)
        for part, motion in zip(film.stage.parts, film.scene.motions, strict=True):
            for points in (*motion.body.hands, motion.body.head, motion.body.hip):
                step = np.abs(np.diff(points)) / part.height
                assert step.max() < 0.45, "a limb moves half its owner's height in one frame"
                for one, two in zip(part.events, part.events[1:], strict=False):
                    if one.facing == two.facing:
                        assert step[one.stop - 1] < 0.12, f"{one.kind} {one.label} does not lead to {two.kind}"


def test_the_actor_is_in_the_picture_while_it_acts() -> None:
    inside = []
    for number in range(8):
        film = untrimmed(0, f"seen {number}", cast=CAST)
        lens = film.scene.lens
        for part, motion in zip(film.stage.parts, film.scene.motions, strict=True):
            position = (motion.body.hip - lens.centre).real * lens.zoom + SIZE[1] / 2
            for event in part.events:
                if event.kind == "act":
                    inside.append(
                        (position[event.start : event.stop] > 0) & (position[event.start : event.stop] < SIZE[1])
                    )
    assert np.concatenate(inside).mean() > 0.99


def test_held_reports_the_prop_and_its_pixels() -> None:
    films = [untrimmed(0, f"held {number}", cast=CAST) for number in range(2)]
    areas = []
    for film in films:
        held = film.held()
        areas.append(held.area)
        assert len(held.names) == len(held.area) == film.frames
        assert set(held.names) <= {"", *PROPS}
        empty = np.array([name == "" for name in held.names])
        assert (held.area[empty] == 0).all()
        for event in film.stage.parts[0].events:
            if event.kind == "idle":
                expected = film.stage.props[event.rest.prop].kind if event.rest.prop >= 0 else ""
                assert set(held.names[event.start : event.stop]) == {expected}
    assert np.concatenate(areas).max() > 20


@pytest.mark.parametrize(
    "difficulty",
    [
        Difficulty(0.0, (0.0, 0.0), 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, (20.0, 20.0), 0.0, 0),
        Difficulty(2.0, (1.0, 1.0), 1.0, 2.0, 1.0, 1.0, 1.0, 1.0, (100.0, 100.0), 1.0, 2),
    ],
    ids=["easiest", "hardest"],
)
def test_extreme_difficulties_can_be_drawn(difficulty: Difficulty) -> None:
    film = untrimmed(0, "end of the scale", cast=CAST, difficulty=difficulty)
    assert film.draw(0, 48).std() > 5
    assert film.actions


def test_an_easy_camera_stands_still() -> None:
    calm = Difficulty(camera=0.0, light=0.0, others=0.0)
    film = untrimmed(0, "calm", cast=CAST, difficulty=calm)
    corner = film.draw(0, 48)[:, :8, :8].astype(int)
    shaky = untrimmed(0, "calm", cast=CAST).draw(0, 48)[:, :8, :8].astype(int)
    assert np.ptp(corner, axis=0).mean() <= np.ptp(shaky, axis=0).mean()


def test_bad_values_are_refused(film: Film) -> None:
    with pytest.raises(BadValue, match="not within"):
        film.draw(0, film.frames + 1)
    with pytest.raises(BadValue, match="empty cast"):
        untrimmed(0, "nobody", cast=())
    with pytest.raises(BadValue, match="no action is called 'dance'"):
        trimmed(0, "clip", label="dance", puppet=0)
    with pytest.raises(BadValue, match="near_miss_rate"):
        Difficulty(near_miss_rate=-1)
    with pytest.raises(BadValue, match="run backwards"):
        Difficulty(size=(70.0, 50.0))
