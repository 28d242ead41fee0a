"""What processes on other machines are told, and when they refuse."""

from __future__ import annotations

import os

import pytest

from jostle.core.versions import builds
from jostle.errors import BadValue
from jostle.parallel.cluster.worker_actors import Slot, environment, refuse_other_builds
from jostle.parallel.serialization import opened, packed


def test_secrets_and_devices_stay_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JOSTLE_CACHE", "HF_HOME", "HF_TOKEN", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, "x")
    told = environment()["env_vars"]
    assert {"JOSTLE_CACHE", "HF_HOME", "OMP_NUM_THREADS"} <= told.keys()
    assert not {"HF_TOKEN", "CUDA_VISIBLE_DEVICES"} & told.keys()


def test_the_same_builds_are_asked_for() -> None:
    here = builds()
    assert {"python", "machine", "jostle", "numpy", "av"} <= here.keys()
    refuse_other_builds(here, here)
    with pytest.raises(BadValue, match=r"av is 1\.0, not 2\.0; torch is missing, not 9"):
        refuse_other_builds({"av": "2.0", "torch": "9"}, {"av": "1.0"})


def test_a_slot_begins_and_works() -> None:
    slot = Slot(packed(dict, ""), os.getcwd(), [], [], builds())
    opened(slot.begin())
    with pytest.raises(TypeError, match="not callable"):
        opened(slot.work(packed("x", "")))
    with pytest.raises(BadValue, match="not like the machine"):
        opened(Slot(packed(dict, ""), "/nowhere", [], [], {"numpy": "0"}).begin())
