"""What processes on other machines are told, and when they refuse."""

from __future__ import annotations

import os

import pytest

from jostle.core.environment import library_versions
from jostle.errors import BadValue
from jostle.parallel.cluster.pool import WorkerActor, check_library_versions, runtime_environment
from jostle.parallel.serialization import dumps, load_reply


def test_secrets_and_devices_stay_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JOSTLE_CACHE", "HF_HOME", "HF_TOKEN", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, "x")
    told = runtime_environment()["env_vars"]
    assert {"JOSTLE_CACHE", "HF_HOME", "OMP_NUM_THREADS"} <= told.keys()
    assert not {"HF_TOKEN", "CUDA_VISIBLE_DEVICES"} & told.keys()


@pytest.mark.fault("F72")
def test_the_same_builds_are_asked_for() -> None:
    here = library_versions()
    assert {"python", "machine", "jostle", "numpy", "av"} <= here.keys()
    check_library_versions(here, here)
    with pytest.raises(BadValue, match=r"av is 1\.0, not 2\.0; torch is missing, not 9"):
        check_library_versions({"av": "2.0", "torch": "9"}, {"av": "1.0"})


def test_a_slot_begins_and_works() -> None:
    slot = WorkerActor(dumps(dict, ""), os.getcwd(), [], [], library_versions())
    load_reply(slot.begin())
    with pytest.raises(TypeError, match="not callable"):
        load_reply(slot.work(dumps("x", "")))
    with pytest.raises(BadValue, match="library versions differ"):
        load_reply(WorkerActor(dumps(dict, ""), "/nowhere", [], [], {"numpy": "0"}).begin())
