"""Feeding a device: batching, prefetching, CUDA graphs and streams, with unchanged values."""

from __future__ import annotations

import concurrent.futures
import copy
import itertools
import threading

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from jostle.core.cuda import (
    GraphReplays,
    iter_batches,
    launch_turn,
    network_stream,
    prefetch_one,
    to_device,
    to_host_async,
)
from jostle.models.devices import compute_context, inference_mode
from jostle.models.options import ComputeOptions


@given(st.lists(st.integers(0, 9), max_size=6), st.integers(1, 7))
def test_batches_have_all_items_in_order(sizes: list[int], size: int) -> None:
    ends = np.cumsum([0, *sizes])
    parts = [np.arange(a, b) for a, b in itertools.pairwise(ends)]
    batches = [np.concatenate(pieces) for pieces in iter_batches(parts, size)]
    assert all(len(batch) == size for batch in batches[:-1])
    assert np.concatenate([*batches, []]).tolist() == list(range(ends[-1]))


def test_prefetch_starts_the_next_item_before_finishing_one() -> None:
    events: list[str] = []

    def start(number: int) -> int:
        events.append(f"begin {number}")
        return number

    for number in prefetch_one(map(start, range(3))):
        events.append(f"finish {number}")
    assert events == ["begin 0", "begin 1", "finish 0", "begin 2", "finish 1", "finish 2"]
    assert list(prefetch_one([])) == []


def test_weights_are_cast_to_lower_precision_once() -> None:
    """Inference mode would disable the autocast cache and cast them for every batch."""
    network = torch.nn.Linear(4, 4)
    with compute_context("cpu", ComputeOptions(precision="bfloat16")), inference_mode():
        assert not torch.is_inference_mode_enabled()
        assert network(torch.zeros(1, 4)).dtype == torch.bfloat16
    with compute_context("cpu", ComputeOptions(precision="float32")), inference_mode():
        assert torch.is_inference_mode_enabled()
        assert network(torch.zeros(1, 4)).dtype == torch.float32


def test_replays_call_the_method_on_a_cpu() -> None:
    replays = GraphReplays(torch.nn.Identity())
    for number in range(4):
        assert replays(torch.neg, torch.full((2,), float(number))).tolist() == [-number, -number]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_graph_replays_of_a_network_equal_eager_calls(precision: str) -> None:
    from jostle.models.loading.extractors import load_extractor

    rows = np.random.default_rng(0).integers(0, 256, (5, 40, 90, 120, 3), np.uint8)
    eager, replayed = (load_extractor("puppet_net", device="cuda") for _ in range(2))
    eager.network.replayable = False
    with compute_context("cuda", ComputeOptions(precision=precision)):
        for frames in rows:  # the third and later ones are replays
            encodings = replayed.see(frames)
            assert encodings.tobytes() == eager.see(frames).tobytes()
            windows = np.stack([encodings[start : start + 16] for start in range(24)])
            assert replayed.join(windows).tobytes() == eager.join(windows).tobytes()
    assert len(replayed._replays._graphs) == 2
    assert not eager._replays._graphs


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_graph_is_not_replayed_after_weights_moved() -> None:
    network = torch.nn.Linear(4, 1).to("cuda").requires_grad_(False)
    replays, x = GraphReplays(network), torch.ones(1, 4, device="cuda")
    for _ in range(4):
        before = replays(network.forward, x).item()
    network.weight.mul_(2), network.bias.mul_(2)
    assert replays(network.forward, x).item() == pytest.approx(2 * before)
    network.weight.data = torch.zeros(1, 4, device="cuda")
    network.bias.data = torch.zeros(1, device="cuda")
    assert replays(network.forward, x).item() == 0


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("name", ["actionformer", "temporalmaxer", "tridet"])
def test_graph_replays_of_a_detector_equal_eager_calls(name: str) -> None:
    """Videos of different lengths share a graph, and outputs still in use are not overwritten."""
    from jostle.models.loading.detectors import load_detector

    detector = load_detector(f"{name}_puppets", weights="clean").to("cuda")
    rng = np.random.default_rng(0)
    videos = [rng.standard_normal((rows, 128), np.float32) for rows in (70, 90, 70, 110, 90, 70, 400, 300)]
    eager = copy.deepcopy(detector)
    eager._replay = eager.forward
    options = {"fps": 30.0, "duration": 60.0, "stride": 4, "window": 16}
    with concurrent.futures.ThreadPoolExecutor(3) as threads:
        results = list(threads.map(lambda video: detector.detect(video, **options), videos * 3))
    for segments, video in zip(results, videos * 3, strict=True):
        expected = eager.detect(video, **options)
        assert len(expected)
        for column in ("start", "end", "label", "score"):
            assert getattr(segments, column).tobytes() == getattr(expected, column).tobytes()
    assert len(detector._replays._graphs) == 2
    assert not eager._replays._graphs


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_several_gpu_threads_equal_one() -> None:
    """Threads take turns, each in its own stream; the first one casts the weights."""
    device = torch.device("cuda")
    torch.manual_seed(0)
    network = torch.nn.Sequential(*(torch.nn.Linear(2048, 2048) for _ in range(8))).to(device)
    rows = np.random.default_rng(0).standard_normal((24, 512, 2048), np.float32)
    results: dict[int, np.ndarray] = {}

    def work(numbers: range) -> None:
        with (
            torch.cuda.stream(torch.cuda.Stream()),
            compute_context("cuda", ComputeOptions(precision="bfloat16")),
            inference_mode(),
        ):

            def start(number: int):
                with launch_turn(device):
                    rows_on_device = to_device(rows[number], device) * 2
                    with network_stream(rows_on_device):
                        return to_host_async(network(rows_on_device).float())

            for number, finish in zip(numbers, prefetch_one(map(start, numbers)), strict=True):
                results[number] = finish().numpy().copy()

    threads = [threading.Thread(target=work, args=(range(first, 24, 3),)) for first in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with compute_context("cuda", ComputeOptions(precision="bfloat16")), torch.inference_mode():
        for number, row in enumerate(rows):
            assert np.array_equal(results[number], network(torch.from_numpy(row).to(device) * 2).float().cpu().numpy())
