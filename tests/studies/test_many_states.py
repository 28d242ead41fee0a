"""Detection in many states of a film at once equals detection in each state."""

from __future__ import annotations

import numpy as np
import pytest
from studies.feature_states import find_in_states
from studies.mending import DETECTORS

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("name", DETECTORS)
def test_batched_detection_equals_single_detection(name: str) -> None:
    from jostle.models.checkpoints import read_note
    from jostle.models.detection.detector import load_detector
    from jostle.models.weights.shipped import trained_weights

    weights = trained_weights(f"{name}_puppets", "clean")
    classes: list[str] = read_note(weights, "classes", [])
    detector = load_detector(f"{name}_puppets", weights=weights, class_names=tuple(classes))
    rows = np.random.default_rng(0).normal(0, 1, (3, 300, detector.config.input_dim)).astype(np.float32)
    facts = {"fps": 24.0, "duration": 51.0}
    together = find_in_states(detector, list(rows), **facts)
    for segments, state in zip(together, rows, strict=True):
        expected = detector.detect(state, **facts)
        assert len(expected.start)
        assert segments.classes == expected.classes
        best = 50  # equal scores may swap, and the lowest ones may differ
        np.testing.assert_allclose(segments.score[:best], expected.score[:best], rtol=1e-3)
        np.testing.assert_allclose(np.sort(segments.start[:best]), np.sort(expected.start[:best]), atol=1e-2)
