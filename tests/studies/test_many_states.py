"""Many states of a film that are looked at together give what each gives alone."""

from __future__ import annotations

import numpy as np
import pytest
from studies.feature_states import find_in_states
from studies.mending import DETECTORS

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("name", DETECTORS)
def test_states_together_are_found_in_as_alone(name: str) -> None:
    from jostle.models.checkpoints import read_note
    from jostle.models.detection.detector import load_detector
    from jostle.models.weights.shipped import trained_weights

    weights = trained_weights(f"{name}_puppets", "clean")
    classes: list[str] = read_note(weights, "classes", [])
    detector = load_detector(f"{name}_puppets", weights=weights, class_names=tuple(classes))
    rows = np.random.default_rng(0).normal(0, 1, (3, 300, detector.config.input_dim)).astype(np.float32)
    facts = {"fps": 24.0, "duration": 51.0}
    together = find_in_states(detector, list(rows), **facts)
    for found, state in zip(together, rows, strict=True):
        alone = detector.detect(state, **facts)
        assert len(alone.start)
        assert found.classes == alone.classes
        best = 50  # those of one score may change places, and the last ones fall in and out
        np.testing.assert_allclose(found.score[:best], alone.score[:best], rtol=1e-3)
        np.testing.assert_allclose(np.sort(found.start[:best]), np.sort(alone.start[:best]), atol=1e-2)
