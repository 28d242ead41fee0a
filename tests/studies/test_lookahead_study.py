"""The study of the look-ahead inspector: what it measures, and the weights that it puts into the package."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from studies.lookahead import measure, save, ship
from studies.lookahead_windows import CLEAN, KIND_INDEX

from jostle.mending.descriptor_stream import BUNDLED, read_lookahead_inspector
from jostle.mending.lookahead_network import LOOKAHEADS, LookaheadNetworks
from jostle.models.weights import shipped


def test_shipped_weights_have_their_calibrations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)
    networks = LookaheadNetworks()
    for lookahead in LOOKAHEADS:
        calibration = {"scale": 1.0 + lookahead, "bias": -0.5, "threshold": 0.7}
        save(networks.network(lookahead), calibration, {}, tmp_path / f"ahead_{lookahead}.pt")
    ship(tmp_path)
    inspector = read_lookahead_inspector(tmp_path / f"{BUNDLED}.safetensors")
    assert [inspector.calibrations[lookahead].scale for lookahead in LOOKAHEADS] == [1, 6, 16]
    weights = inspector.networks.network(5).cell.weight
    assert np.abs((weights - networks.network(5).cell.weight).detach().numpy()).max() < 1e-3
    assert (tmp_path / f"{BUNDLED}.safetensors").stat().st_size < 1_500_000


def test_found_frames_are_those_above_one_clean_frame_in_a_thousand() -> None:
    rng = np.random.default_rng(0)
    clean = rng.normal(-3, 1, 5000)
    covered = np.concatenate([np.full(60, 9.0), np.full(40, -3.0)])
    logits = np.concatenate([clean, covered])
    kind = np.concatenate([np.full(5000, CLEAN), np.full(100, KIND_INDEX["covered"])])
    damage = np.concatenate([np.zeros(5000), np.ones(100)])
    guessed, weight, filmed = np.full(5100, KIND_INDEX["covered"]), np.ones(5100), np.ones(5100, np.bool_)
    row, calibration = measure(logits, kind, guessed, weight, filmed, damage)
    assert row["found"] == {"covered": 0.6}
    assert row["named"] == {"covered": 1.0}
    assert row["alarms"]["filmed"] == pytest.approx(0.001, abs=5e-4)
    assert 0 < calibration["threshold"] < 1
