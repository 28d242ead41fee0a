"""Models in separate processes: replies, failures of processes, and clean-up."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers import small_serving
from helpers.refusals import refused
from helpers.small_serving import (
    FakeStreams,
    add,
    asking,
    die,
    die_once,
    dying_while_asking,
    fail,
    how_many_together,
    worker_id,
    worker_id_slowly,
)
from jostle.errors import BadValue, CheckpointError, ResourceError, SourceChanged
from jostle.parallel.serving import client as client_module
from jostle.parallel.serving import server as server_module
from jostle.parallel.serving.client import SocketClient
from jostle.parallel.serving.processes import serving, serving_here
from jostle.parallel.serving.server import is_foreign
from jostle.parallel.workers import map_unordered

PICTURE = np.full((1, 200, 400, 3), 5, np.uint8)


def serve_adder(count: int = 1, load: Callable[[], object] = small_serving.adder):
    return serving(load, FakeStreams(), [{} for _ in range(count)])


@pytest.fixture(scope="module")
def served() -> Iterator[SocketClient]:
    with serve_adder() as served:
        yield served


def test_replies_can_be_awaited_in_any_order(served: SocketClient) -> None:
    """Large arrays go through shared memory; small ones and other values are part of the request."""
    answers = [served.submit(add, np.full((1, n, 400, 3), n, np.uint8)) for n in (1, 200, 3, 150)]
    for n, answer in reversed(list(zip((1, 200, 3, 150), answers, strict=True))):
        assert (answer() == n + 1).all()


def test_threads_of_this_process_serve_models_that_cannot_be_pickled() -> None:
    before = threading.active_count()
    model = small_serving.adder()
    model.lock = threading.Lock()  # type: ignore[attr-defined]
    with serving_here(model, FakeStreams(2), foreign=False) as served:
        assert (served(add, PICTURE) == 6).all()
        assert served(worker_id) == os.getpid()
        with pytest.raises(SourceChanged, match="gone"):
            served(fail, "gone")
    deadline = time.monotonic() + 30
    while threading.active_count() > before:  # the connection thread ends once it is closed
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("copied", [True, False])
def test_models_may_keep_copied_inputs(copied: bool) -> None:
    """Memory is reused for the next request unless inputs are copied."""
    inputs: list[np.ndarray] = []
    with serving_here(inputs, FakeStreams(), foreign=copied) as served:
        for value in range(4):
            served(small_serving.keep, np.full_like(PICTURE, value))
        assert ([int(array[0, 0, 0, 0]) for array in inputs] == [0, 1, 2, 3]) is copied
        served(small_serving.keep, np.zeros(3, np.uint8))  # small arrays are part of the request
        assert inputs[-1].flags.writeable is copied
        inputs.clear()  # while the memory is mapped


@pytest.mark.fault("F70")
def test_a_failing_thread_answers_all_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker waiting for a reply would wait for ever."""
    monkeypatch.setattr(threading, "excepthook", lambda arguments: None)
    with serving_here(None, FakeStreams(), foreign=False) as served:
        monkeypatch.setattr(server_module, "_compute_replies", lambda model, batch: 1 / 0)
        waiting = [served.submit(worker_id), served.submit(worker_id)]
        for answer in (*waiting, served.submit(worker_id)):
            with pytest.raises(ResourceError, match=r"the model server failed \(ZeroDivisionError"):
                answer()


def test_requests_share_a_bounded_number_of_segments(served: SocketClient) -> None:
    pictures = [np.full((1, 200 + n, 400, 3), n, np.uint8) for n in range(3 * client_module.MAX_SEGMENTS)]
    answers = [served.submit(add, picture) for picture in pictures]
    for n, answer in enumerate(answers):
        assert answer().shape == (1, 200 + n, 400, 3)
        assert len(client_module._session(served)._segments) <= client_module.MAX_SEGMENTS


def test_similar_requests_are_batched() -> None:
    with serve_adder() as served:
        answers = [served.submit(add, PICTURE + np.uint8(n), together=4) for n in range(12)]
        assert [int(answer()[0, 0, 0, 0]) for answer in answers] == [6 + n for n in range(12)]
        together = served(how_many_together)
        assert sum(together) == 12
        assert 1 < max(together) <= 4


def test_a_failing_request_does_not_affect_its_batch(served: SocketClient) -> None:
    shades = [1, 2, 255, 4, 5, 6, 7]
    answers = [served.submit(add, np.full((1, 8, 8, 3), shade, np.uint8), together=8) for shade in shades]
    assert [int(answer()[0, 0, 0, 0]) for answer in answers] == [2, 3, 0, 5, 6, 7, 8]


def test_replies_that_are_not_awaited_are_discarded(served: SocketClient) -> None:
    for _ in range(40):
        served.submit(add, PICTURE)
    assert (served(add, PICTURE) == 6).all()
    with pytest.raises(SourceChanged):
        served.submit(fail, "gone")()
    while client_module._session(served)._pending:
        served(worker_id)
    assert not client_module._session(served)._replies


def test_shared_memory_is_released_at_the_end() -> None:
    before = len(os.listdir("/proc/self/fd"))
    with serve_adder() as served:
        answers = [served.submit(add, PICTURE) for _ in range(5)]
        assert all((answer() == 6).all() for answer in answers)
        assert len(os.listdir("/proc/self/fd")) > before + 2
    assert len(os.listdir("/proc/self/fd")) <= before
    assert served not in client_module._sessions


def test_streams_work_in_parallel() -> None:
    with serving(small_serving.adder, FakeStreams(2), [{}]) as served:
        begin = time.monotonic()
        answers = [served.submit(small_serving.sleep, np.full((1, 4), n)) for n in range(6)]
        assert [answer() for answer in answers] == list(range(6))
        assert time.monotonic() - begin < 6 * small_serving.NAP_S


@pytest.mark.fault("F192")
def test_F192_code_of_a_users_own_is_called_by_one_thread_with_copies() -> None:
    with serving(small_serving.Foreign, FakeStreams(3), [{}]) as served:
        answers = [served.submit(small_serving.overlap, np.zeros(3, np.uint8)) for _ in range(6)]
        assert {answer() for answer in answers} == {(1, True)}


@pytest.mark.fault("F192")
def test_F192_code_of_a_users_own_is_recognised() -> None:
    from helpers.own_models import SPEC
    from jostle.datasets.class_matching import ClassMatch
    from jostle.evaluation.inference.detection import CallableDetector, FeatureDetectionPredictor
    from jostle.evaluation.inference.language import QuestionPredictor
    from jostle.evaluation.inference.recognition import RecognitionPredictor
    from jostle.evaluation.inference.single_frames import NamedObjectModel
    from jostle.evaluation.recipes.sampling import Sampling
    from jostle.models.language.callables import callable_model
    from jostle.models.loading.detectors import load_detector
    from jostle.models.loading.extractors import load_extractor
    from jostle.models.recognition.recogniser import Recogniser

    torch = pytest.importorskip("torch")
    extractor, detector = load_extractor("puppet_net"), load_detector("temporalmaxer_puppets", weights="clean")
    own = Recogniser(torch.nn.Identity(), SPEC)

    def recognition(model: Any) -> RecognitionPredictor:
        return RecognitionPredictor(model, Sampling(clips=1), ClassMatch("by number", None))

    assert not is_foreign(FeatureDetectionPredictor(extractor, detector))
    assert not is_foreign(recognition(own))
    assert is_foreign(recognition(Recogniser(len)))
    assert is_foreign(QuestionPredictor(callable_model(lambda *asked: "A")))
    assert is_foreign(FeatureDetectionPredictor(extractor, CallableDetector(len)))
    assert is_foreign(FeatureDetectionPredictor(small_serving.adder(), detector))
    assert NamedObjectModel(len, "len").foreign


def test_a_model_may_write_into_its_input(served: SocketClient) -> None:
    frames = PICTURE.copy()
    assert served(small_serving.write_into, frames) == 7 * frames.size
    assert (frames == 5).all()


def test_errors_are_raised_in_the_client(served: SocketClient) -> None:
    with refused("F9", SourceChanged, match="gone"):
        served(fail, "gone")
    with pytest.raises(CheckpointError, match="no such weights"), serve_adder(load=small_serving.unreadable):
        pass


def test_functions_that_cannot_be_pickled_are_refused(served: SocketClient) -> None:
    with pytest.raises(BadValue, match="--model-processes 0"):
        served(lambda thing: thing)


def test_several_processes_share_the_work() -> None:
    with serve_adder(2) as served:
        answers = [served.submit(worker_id_slowly, PICTURE) for _ in range(8)]
        assert len({answer() for answer in answers}) == 2


@pytest.mark.parametrize("jobs", [1, 3])
def test_workers_send_requests(served: SocketClient, jobs: int) -> None:
    results = dict(map_unordered(partial(asking, served), range(7), jobs))
    assert results == {n: n + 1 for n in range(7)}


def test_a_worker_that_is_killed_is_replaced(served: SocketClient, tmp_path: Path) -> None:
    start = partial(dying_while_asking, served, tmp_path / "died")
    results = dict(map_unordered(start, range(6), 2))
    assert results == {n: n + 1 for n in range(6)}
    assert (tmp_path / "died").exists()


def test_a_killed_process_is_restarted(tmp_path: Path) -> None:
    with serve_adder() as served:
        before = served(worker_id)
        assert served(die_once, PICTURE, tmp_path / "died") == PICTURE.sum()
        assert served(worker_id) != before


def test_other_processes_answer_while_one_restarts(tmp_path: Path) -> None:
    with serve_adder(2) as served:
        several = {served.submit(worker_id_slowly, PICTURE) for _ in range(4)}
        first = min(answer() for answer in several)
        answers = [served.submit(add, PICTURE) for _ in range(10)]
        os.kill(first, signal.SIGKILL)
        assert all((answer() == 6).all() for answer in answers)


def test_a_request_that_kills_servers_fails() -> None:
    with (
        serve_adder() as served,
        pytest.raises(ResourceError, match="3 model servers died while processing one request"),
    ):
        served(die)


def test_a_server_that_dies_while_loading_fails_at_once(tmp_path: Path) -> None:
    """The client gets the error at once, not only after the timeout."""
    begin = time.monotonic()
    load = partial(small_serving.die_on_load, tmp_path / "mark")
    with (
        serve_adder(load=load) as served,
        pytest.raises(ResourceError, match="model server died by signal 9 while loading"),
    ):
        served(die)
    assert time.monotonic() - begin < client_module.TIMEOUT_S / 4


def test_missing_weights_at_a_restart_are_a_resource_error(tmp_path: Path) -> None:
    load = partial(small_serving.unreadable_again, tmp_path / "mark")
    with serve_adder(load=load) as served, pytest.raises(ResourceError, match="cannot be restarted: no such weights"):
        served(die)


def test_clients_without_the_key_are_refused(served: SocketClient) -> None:
    """A client without the key is refused, and the server keeps running."""
    from multiprocessing import AuthenticationError
    from multiprocessing.connection import Client

    with pytest.raises(AuthenticationError):
        Client(served.addresses[0], "AF_UNIX", b"some other key")
    assert served(worker_id) > 0


def test_missing_shared_memory_is_an_error(served: SocketClient) -> None:
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, limit[1]))
    try:
        with pytest.raises(ResourceError, match=r"no shared memory left for 12 MiB of frames \(.*\); use fewer jobs"):
            served.submit(add, np.zeros((44, 200, 400, 3), np.uint8))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert (served(add, PICTURE) == 6).all()


PROGRAM = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell in the background has switched off
import numpy as np
from helpers import small_serving
from jostle.parallel.serving.processes import serving, serving_here
from jostle.parallel.serving.server import is_foreign
with serving(small_serving.adder, small_serving.FakeStreams(), [{{}}, {{}}]) as served:
    answers = [served.submit(small_serving.worker_id_slowly, np.zeros((1, 200, 400, 3), np.uint8)) for _ in range(4)]
    print(*{{answer() for answer in answers}}, flush=True)
    print(*(address[1:] for address in served.addresses), flush=True)
    {end}
"""


@pytest.mark.parametrize(
    "end", ["time.sleep(60)", "import os; os.kill(os.getpid(), 9)", "raise KeyboardInterrupt", "sys.exit(3)"]
)
def test_no_process_memory_or_socket_is_left_behind(end: str) -> None:
    """Check every way in which the program may end."""
    before = _named_segments()
    code = PROGRAM.format(end=end)
    program = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert program.stdout is not None
    with program.stdout:
        processes = [int(number) for number in program.stdout.readline().split()]
        sockets = program.stdout.readline().split()
    assert len(processes) == len(sockets) == 2
    if "sleep" in end:
        program.send_signal(signal.SIGINT)
    program.wait(60)
    deadline = time.monotonic() + 60
    while (any(map(_is_alive, processes)) or _listening(sockets)) and time.monotonic() < deadline:
        time.sleep(0.05)  # a killed process takes a moment to close its files
    assert not any(map(_is_alive, processes))
    assert not _listening(sockets)
    assert _named_segments() <= before


def _named_segments() -> set[str]:
    folder = Path("/dev/shm")
    return {path.name for path in folder.iterdir() if "jostle" in path.name} if folder.is_dir() else set()


def _listening(sockets: list[str]) -> bool:
    table = Path("/proc/net/unix")
    return table.exists() and any(name in table.read_text() for name in sockets)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except (ProcessLookupError, FileNotFoundError):
        return False
