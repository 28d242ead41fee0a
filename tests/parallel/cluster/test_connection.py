"""Work on a cluster: the same results and errors as on one machine, also when a machine is lost."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from helpers import small_serving, small_work
from helpers.refusals import refused
from jostle.errors import BadValue, MissingExtra, ResourceError, SourceChanged
from jostle.parallel.cluster import model_actors, pool
from jostle.parallel.cluster.connection import Cluster
from jostle.parallel.serialization import dump_reply
from jostle.parallel.workers import map_unordered

STREAMS = small_serving.FakeStreams()
PICTURE = np.full((1, 200, 400, 3), 5, np.uint8)


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"a cluster needs .* pip install 'jostle\[ray\]'"):
        Cluster()


@pytest.mark.slow
def test_a_cluster_started_by_jostle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Check many properties with one Ray instance, which takes seconds to start."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'jostle[ray]'")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("JOSTLE_SALT", "from here")
    before = signal.getsignal(signal.SIGTERM)
    with Cluster(jobs=2) as cluster:
        assert signal.getsignal(signal.SIGTERM) is before
        assert (cluster.cpus, cluster.gpus) == (2, 0)
        items = list(range(30))
        assert sorted(cluster.map_unordered(small_work.load_square, items)) == sorted(
            map_unordered(small_work.load_square, items, 2)
        )
        assert list(cluster.map_unordered(small_work.load_square, [])) == []

        by_process: dict[int, list[int]] = {}
        for _, (process, count) in cluster.map_unordered(small_work.report_worker, range(20), 2):
            by_process.setdefault(process, []).append(count)
        assert os.getpid() not in by_process
        assert all(counts == list(range(len(counts))) for counts in by_process.values())

        for name in sorted(small_work.ERRORS):
            expected = small_work.ERRORS[name]()
            kind = RuntimeError if name == "odd" else type(expected)
            with pytest.raises(kind) as caught:
                list(cluster.map_unordered(small_work.failing, ["good", name], 1))
            assert str(expected) in str(caught.value)
            assert "small_work.py" in str(caught.value.__cause__)
        with refused("F4", SourceChanged, match="no weights"):
            list(cluster.map_unordered(small_work.failing_to_start, [1, 2, 3]))

        results = cluster.map_unordered(partial(small_work.dying_once, tmp_path), range(6), 2)
        assert sorted(results) == [(item, item) for item in range(6)]
        with refused("F63", ResourceError, match=r"3 processes of the cluster died at kill: .*; if memory"):
            list(cluster.map_unordered(small_work.dying, ["kill"], 1))
        items = ["a", "kill", "b"]
        done = dict(cluster.map_unordered(small_work.dying_of_some, items, 1, lost=lambda item, error: f"{item} lost"))
        assert done == {"a": "A", "b": "B", "kill": "kill lost"}

        (tmp_path / "marks").mkdir()
        with closing(cluster.map_unordered(partial(small_work.marking, tmp_path / "marks"), range(500), 2)) as work:
            for count in range(1, 20):
                next(work)
                time.sleep(0.02)
                assert len(list((tmp_path / "marks").iterdir())) <= count + 4  # a slow caller slows the work

        assert dict(cluster.map_unordered(small_work.report_environment, ["JOSTLE_SALT"])) == {
            "JOSTLE_SALT": "from here"
        }
        with pytest.raises(BadValue, match=r"cannot be sent to another process .*; work on this machine alone"):
            list(cluster.map_unordered(lambda: abs, [1]))
        with pytest.raises(BadValue, match="jobs must be at least 1"):
            list(cluster.map_unordered(small_work.load_square, [1], 0))
        monkeypatch.setattr(pool, "worker_setup", lambda: (os.getcwd(), sys.path, [], {"jostle": "0.0.1"}))
        with pytest.raises(BadValue, match=r"jostle is .*, not 0\.0\.1; .*on all machines"):
            list(cluster.map_unordered(small_work.load_square, [1]))
        with Cluster() as again:  # an existing connection is reused and stays open
            assert again.cpus == 2
        assert cluster.cpus == 2
    assert not sys.modules["ray"].is_initialized()
    assert capfd.readouterr().out == ""


@pytest.mark.fault("F63")
@pytest.mark.slow
def test_results_survive_the_loss_of_a_machine(nodes: Any, tmp_path: Path) -> None:
    """A machine disappears while it processes an item; no result is missing."""
    items = list(range(48))
    with Cluster(nodes.address) as cluster:
        assert cluster.cpus == 2
        pids: set[str] = set()
        results, lost_at, added = [], 0, False
        for number, (item, result) in enumerate(
            cluster.map_unordered(partial(small_work.lingering, tmp_path), items), 1
        ):
            results.append((item, result))
            pids |= {mark.name.partition("-")[2] for mark in tmp_path.iterdir()}
            if not lost_at and number > 5 and len(pids) == 2:  # both machines have started to work
                nodes.remove_node(nodes.workers[0], allow_graceful=False)
                lost_at = number
            if lost_at and not added and number >= lost_at + 7:
                nodes.add_node(num_cpus=1, object_store_memory=80 * 2**20)  # a new machine gets work
                added = True
    assert lost_at
    assert added
    assert sorted(results) == sorted(map_unordered(partial(small_work.lingering, tmp_path), items, 2))


@pytest.mark.fault("F77")
@pytest.mark.slow
def test_a_cluster_without_free_cpus_fails_after_a_timeout(nodes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "TIMEOUT_S", 2.0)
    monkeypatch.setattr(pool, "POLL_S", 0.5)
    for node in nodes.workers:
        nodes.remove_node(node)
    with (
        Cluster(nodes.address) as cluster,
        pytest.raises(ResourceError, match="no CPU of the cluster was free for 2 s"),
    ):
        list(cluster.map_unordered(small_work.load_square, [1, 2]))


@pytest.mark.slow
def test_models_are_served_by_the_gpus_of_the_cluster(
    nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "TIMEOUT_S", 60.0)
    with Cluster(nodes.address) as cluster:
        with pytest.raises(ResourceError, match="the cluster has 0 GPUs"), cluster.serving(small_work.Counter, STREAMS):
            pass
        nodes.add_node(num_cpus=0, num_gpus=2, object_store_memory=80 * 2**20)  # simulated GPUs
        nodes.wait_for_nodes()
        with cluster.serving(small_work.Counter, STREAMS) as served:
            assert len(served.names) == 2
            results = dict(cluster.map_unordered(partial(small_work.asking, served), range(20), 2))
            assert {item: result for item, (_, result) in results.items()} == {item: item * 10 for item in range(20)}
            assert len({pid for pid, _ in results.values()}) == 2  # both servers get requests, from both machines
            with pytest.raises(SourceChanged, match="changed"):
                served(small_work.fail_at, "plain")
            assert served(small_work.die_once_at, tmp_path) == "alive"  # another server answers, and this one restarts
            assert [served(small_work.ask_counter, k)[1] for k in range(4)] == [0, 10, 20, 30]
        with pytest.raises(ResourceError, match="no model server answers"):
            served(small_work.ask_counter, 1)
        with pytest.raises(SourceChanged, match="no weights"), cluster.serving(small_work.failing_to_start, STREAMS):
            pass


@pytest.mark.slow
def test_local_requests_do_not_go_through_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Frames go through shared memory in batches; when the server dies, Ray finds its successor."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'jostle[ray]'")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    through_ray: list[object] = []
    submit = model_actors.RayClient._submit_to_ray
    monkeypatch.setattr(
        model_actors.RayClient, "_submit_to_ray", lambda *arguments: through_ray.append(1) or submit(*arguments)
    )
    with Cluster(jobs=1) as cluster, cluster.serving(small_serving.adder, STREAMS, count=1, gpus_each=0) as served:
        answers = [served.submit(small_serving.add, PICTURE + np.uint8(n), together=4) for n in range(12)]
        assert [int(answer()[0, 0, 0, 0]) for answer in answers] == [6 + n for n in range(12)]
        assert max(served(small_serving.how_many_together)) > 1
        assert dict(cluster.map_unordered(partial(small_serving.asking, served), range(3), 1)) == {0: 1, 1: 2, 2: 3}
        assert not through_ray
        with pytest.raises(SourceChanged, match="gone"):
            served(small_serving.fail, "gone")

        before = served(small_serving.worker_id)
        waiting = [served.submit(small_serving.add, PICTURE, together=4) for _ in range(3)]
        assert served(small_serving.die_once, PICTURE, tmp_path / "died") == PICTURE.sum()
        assert all((answer() == 6).all() for answer in waiting)
        assert through_ray
        through_ray.clear()
        assert served(small_serving.worker_id) != before  # the new server is on this machine as well
        assert not through_ray


@pytest.mark.parametrize("refused", [20, None])
@pytest.mark.fault("F70")
def test_requests_wait_for_a_restarting_server(refused: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray refuses requests while a server restarts; that does not count as a death until the time is up."""
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'jostle[ray]'")
    requests: list[bytes] = []

    def get(payload: bytes, timeout: float) -> bytes:
        requests.append(payload)
        if refused is None or len(requests) <= refused:
            raise ray.exceptions.ActorUnavailableError("The actor is restarting.", None)
        return dump_reply(lambda: "answer")

    server = SimpleNamespace(work=SimpleNamespace(remote=lambda payload: payload))
    monkeypatch.setattr(ray, "get", get)
    monkeypatch.setattr(model_actors, "_get_actor", lambda name: server)
    monkeypatch.setattr(model_actors, "node_id", lambda: "here")
    monkeypatch.setattr(model_actors, "RETRY_S", 0.001)
    monkeypatch.setattr(pool, "TIMEOUT_S", 0.2 if refused is None else 300.0)
    remote = model_actors.RayClient(("one",), ("elsewhere",), ("",), b"")
    if refused is None:
        with pytest.raises(ResourceError, match=r"no model server answers: .*restarting"):
            remote(small_serving.worker_id)
        assert len(requests) > pool.MAX_DEATHS
    else:
        assert remote(small_serving.worker_id) == "answer"
        assert len(requests) == refused + 1


@pytest.mark.slow
def test_requests_through_ray_are_batched(nodes: Any) -> None:
    nodes.add_node(num_cpus=0, num_gpus=1, object_store_memory=80 * 2**20)  # a machine without workers
    nodes.wait_for_nodes()
    slow = partial(small_serving.adder, nap_s=0.2)  # Ray delivers the next requests meanwhile, on busy cores too
    with Cluster(nodes.address) as cluster, cluster.serving(slow, STREAMS) as served:
        results = dict(cluster.map_unordered(partial(small_serving.asking, served), range(4), 2))
        assert results == {n: n + 1 for n in range(4)}
        assert max(served(small_serving.how_many_together)) > 1


@pytest.mark.slow
def test_a_missing_cluster_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'jostle[ray]'")
    with pytest.raises(ResourceError, match=r"no Ray cluster answers at 127\.0\.0\.1:9 .*leave out --engine ray"):
        Cluster("127.0.0.1:9")
    assert sys.modules["ray._private.worker"].print_to_stdstream.__module__ == "ray._private.worker"
