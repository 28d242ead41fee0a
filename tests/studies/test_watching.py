"""The study of watching a stream: its own damage, events, intervals of counts and confidences."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from studies.watching import count_events, poisson_interval
from studies.watching_calibration import fit_tables

from studies import world_damage


def test_the_damage_of_the_evaluation_shares_no_code_with_jostle() -> None:
    tree = ast.parse(Path(world_damage.__file__).read_text(encoding="utf-8"))
    names = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    assert {name.split(".")[0] for name in names} == {"__future__", "av", "collections", "cv2", "fractions", "numpy"}


@pytest.mark.parametrize("kind", world_damage.KINDS)
def test_damage_is_reproducible_and_marks_changed_frames(kind: str) -> None:
    y, x = np.mgrid[:96, :128]
    rng = np.random.default_rng(1)
    scene = 90 + 60 * np.sin(x / 9) + 40 * np.cos(y / 7) + rng.normal(0, 8, (96, 128))
    film = np.stack([np.roll(scene, 3 * t, 1) for t in range(50)])
    clip = np.clip(film, 0, 255).astype(np.uint8)[..., None].repeat(3, -1)
    clip[..., 2] //= 2
    frames, damaged = world_damage.damage_clip(clip, kind, 3)
    repeated, mask = world_damage.damage_clip(clip, kind, 3)
    assert (frames == repeated).all()
    assert (damaged == mask).all()
    assert frames.shape == clip.shape
    assert 5 <= damaged.sum() < len(clip)
    assert not damaged[: world_damage.BEFORE].any()
    if kind not in world_damage.CODECS:
        assert (frames[~damaged] == clip[~damaged]).all() or kind == "frozen"


def test_alarms_close_together_are_one_event() -> None:
    alarms = np.zeros(200, np.bool_)
    assert count_events(alarms) == 0
    alarms[[10, 11, 30, 100]] = True
    assert count_events(alarms) == 2


def test_the_interval_of_a_count_is_exact() -> None:
    assert np.allclose(poisson_interval(3), (0.6187, 8.7673), atol=1e-4)


def test_confidences_are_shares_of_right_verdicts() -> None:
    answers = [("black", 0.2, True)] * 3 + [("black", 0.2, False)]
    answers += [("clean", 0.0, False)] * 9 + [("clean", 0.0, True)] + [("clean", 0.4, False)] * 2
    tables = fit_tables(answers)
    assert tables["kinds"] == {"black": 0.75}
    assert tables["clean"] == [0.9] * 7
