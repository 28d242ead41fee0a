"""The bundled look-ahead inspector: small, quiet on a clean film, and sure of plain damage."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.core.types.clip import Frames
from jostle.datasets.puppets.film import untrimmed
from jostle.datasets.puppets.parameters import CASTS
from jostle.mending.descriptor import describe_frames
from jostle.mending.descriptor_stream import BUNDLED, DescriptorStream, FramePrediction, bundled_lookahead_inspector
from jostle.mending.lookahead_network import DAMAGE_KINDS, LOOKAHEADS
from jostle.models.weights.shipped import FOLDER, shipped_names, weights_file

pytestmark = pytest.mark.skipif(BUNDLED not in shipped_names(), reason="no look-ahead inspector is bundled")
FIRST, STOP = 60, 85  # damaged frames
LIMIT = 2_000_000  # bytes of all weights of inspectors


@pytest.fixture(scope="module")
def film() -> Frames:
    return untrimmed(7, "look-ahead weights", cast=tuple(CASTS["validation"])).draw(100, 220)


def predict(frames: Frames, lookahead: int) -> list[FramePrediction]:
    stream = DescriptorStream(bundled_lookahead_inspector(), lookahead=lookahead)
    return stream.push(describe_frames(frames)) + stream.flush()


def test_weights_of_inspectors_are_small() -> None:
    assert sum(weights_file(name).stat().st_size for name in ("inspector", BUNDLED)) < LIMIT
    assert FOLDER.is_dir()


@pytest.mark.parametrize("lookahead", LOOKAHEADS)
def test_plain_damage_is_found_and_a_clean_film_is_not_reported(film: Frames, lookahead: int) -> None:
    threshold = bundled_lookahead_inspector().calibrations[lookahead].threshold
    clean = np.array([one.probability for one in predict(film, lookahead)])
    assert (clean >= threshold).mean() < 0.05
    rng = np.random.default_rng(0)
    part = film[FIRST:STOP].astype(np.float32)
    height, width = film.shape[1:3]
    y, x = np.mgrid[:height, :width]
    hidden = np.hypot((y - height / 2) / (0.4 * height), (x - width / 2) / (0.4 * width)) < 1
    half = part.copy()
    half[:, height // 2 :] = 128
    damages = {
        "noisy": part + rng.normal(0, 50, part.shape),
        "missing_part": half,
        "covered": np.where(hidden[..., None], 15, part),
        "overexposed": part * 3 + 60,
    }
    for kind, damaged in damages.items():
        frames = film.copy()
        frames[FIRST:STOP] = np.clip(damaged, 0, 255)
        found = predict(frames, lookahead)[FIRST:STOP]
        assert np.mean([one.probability >= threshold for one in found]) > 0.75, kind
        named = [int(one.kinds[1:-1].argmax()) for one in found]
        assert np.mean([DAMAGE_KINDS[number] == kind for number in named]) > 0.5, kind
