"""Environment and version checks of worker processes on other machines."""

from __future__ import annotations

import os

import pytest

from jostle.core.environment import library_versions
from jostle.errors import BadValue
from jostle.parallel.cluster.pool import WorkerActor, check_library_versions, runtime_environment
from jostle.parallel.serialization import dumps, load_reply


def test_secrets_and_devices_are_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JOSTLE_CACHE", "HF_HOME", "HF_TOKEN", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, "x")
    variables = runtime_environment()["env_vars"]
    assert {"JOSTLE_CACHE", "HF_HOME", "OMP_NUM_THREADS"} <= variables.keys()
    assert not {"HF_TOKEN", "CUDA_VISIBLE_DEVICES"} & variables.keys()


@pytest.mark.fault("F72")
def test_library_versions_must_agree() -> None:
    versions = library_versions()
    assert {"python", "machine", "jostle", "numpy", "av"} <= versions.keys()
    check_library_versions(versions, versions)
    with pytest.raises(BadValue, match=r"av is 1\.0, not 2\.0; torch is missing, not 9"):
        check_library_versions({"av": "2.0", "torch": "9"}, {"av": "1.0"})


def test_a_worker_actor_starts_and_works() -> None:
    actor = WorkerActor(dumps(dict, ""), os.getcwd(), [], [], library_versions())
    load_reply(actor.begin())
    with pytest.raises(TypeError, match="not callable"):
        load_reply(actor.work(dumps("x", "")))
    with pytest.raises(BadValue, match="library versions differ"):
        load_reply(WorkerActor(dumps(dict, ""), "/nowhere", [], [], {"numpy": "0"}).begin())
