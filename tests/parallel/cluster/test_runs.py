"""Benchmark runs on a cluster: byte-identical to local runs, even if a machine is lost."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from helpers import small_run, tiny_run
from jostle.core.cuda import CudaStreams
from jostle.evaluation.inference.remote import connect_predictor
from jostle.evaluation.recipes.selection import select_cells
from jostle.evaluation.run_folder.journal import VideoKept, read_events
from jostle.evaluation.runner.runner import run_benchmark
from jostle.evaluation.runner.verification import check_run
from jostle.parallel.cluster.connection import Cluster


@pytest.mark.fault("F76", "F77")
@pytest.mark.slow
def test_a_run_on_a_cluster(nodes: Any, tmp_path: Path) -> None:
    videos = small_run.write_videos(tmp_path)
    small_run.run(videos, tmp_path / "here")
    expected = tiny_run.content(tmp_path / "here")
    options = {"cells": select_cells(small_run.RECIPE), "jobs": 2}
    data = small_run.data_of(videos)

    with Cluster(nodes.address) as cluster:
        model = small_run.benchmark_model(delay_s=0.1)
        with cluster.serving(model.load, CudaStreams("cpu"), count=1, gpus_each=0) as served:
            remote_model = replace(model, load=partial(connect_predictor, served))
            run_benchmark(
                small_run.RECIPE, data, remote_model, tmp_path / "afar", engine=cluster.map_unordered, **options
            )
        assert tiny_run.content(tmp_path / "afar") == expected

        def lose_a_machine(done: int, of: int) -> None:
            if done == 1:
                nodes.remove_node(nodes.workers[0], allow_graceful=False)

        lossy = {"engine": cluster.map_unordered, "progress": lose_a_machine}
        run_benchmark(small_run.RECIPE, data, model, tmp_path / "lossy", **lossy, **options)
        assert tiny_run.content(tmp_path / "lossy") == expected
    predicted_videos = [
        event.video for event in read_events(tmp_path / "lossy" / "journal.jsonl") if isinstance(event, VideoKept)
    ]
    assert sorted(predicted_videos) == sorted(videos)  # each video counts once, whichever machine started it
    assert check_run(tmp_path / "lossy").altered == ()


@pytest.mark.slow
@pytest.mark.parametrize("mend", [(), ("--mend", "jostle"), ("--mend", "known")], ids=" ".join)
def test_the_command_line_with_the_ray_engine(tmp_path: Path, mend: tuple[str, ...]) -> None:
    """`--engine ray` starts a cluster if there is none, prints the same output and leaves no process behind."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'jostle[ray]'")
    root = tiny_run.write_folder(tmp_path / "root")
    results = [
        tiny_run.run_command(root, tiny_run.command(out, *more, *mend), start_new_session=True, timeout=300)
        for out, more in (("here", ()), ("there", ("--engine", "ray")))
    ]
    assert [done.returncode for done in results] == [0, 0], results[1].stderr
    assert results[0].stdout == results[1].stdout
    local_lines, cluster_lines = (
        [line for line in done.stderr.splitlines() if "limited by" not in line] for done in results
    )
    assert [line.replace("here", "there") for line in local_lines] == cluster_lines
    assert tiny_run.content(root / "there") == tiny_run.content(root / "here")
