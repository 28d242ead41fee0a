"""Advice at the end of a run, by its bottleneck and the device of its model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jostle.api import engines
from jostle.api.engines import Engine
from jostle.core.timing import StageTimes
from jostle.evaluation.inference.benchmark_model import BenchmarkModel
from jostle.evaluation.results.run import Run
from jostle.evaluation.run_folder.journal import WorkDone
from jostle.evaluation.runner.progress import WorkTimer
from jostle.features.extraction import Cost
from jostle.parallel.workers import map_unordered

WORK = WorkDone(8, 2, 42.0, 10.0, 60.0, 4.0, 0.1, "corrupting")
MODEL, APART = replace(WORK, limit="model"), replace(WORK, limit="model", apart=True)
NETWORK, CALLABLE = (
    BenchmarkModel(object, model="network", weights="sha256:0"),
    BenchmarkModel(object, model="callable"),
)
CPU = Engine(map_unordered, "cpu", 2)
GPU = Engine(map_unordered, "cuda", 2, processes=({},))
STAYS = {"model_stays": True}


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "available_cpus", lambda: 2)


@pytest.mark.parametrize(
    ("engine", "work", "model", "advice"),
    [
        (CPU, WORK, NETWORK, "more cores would help"),
        (CPU, replace(WORK, limit="decoding"), CALLABLE, "more cores would help"),
        (replace(CPU, jobs=1), WORK, NETWORK, "more jobs (1 for 2 cores) would help"),
        (replace(CPU, cluster=object(), jobs=1), WORK, NETWORK, "more cores would help"),
        (CPU, replace(WORK, videos=2), NETWORK, "faster cores (every video had a worker to itself) would help"),
        (CPU, replace(WORK, limit="disk"), NETWORK, "a run folder on a faster disk would help"),
        (CPU, MODEL, NETWORK, "more cores or a GPU would help"),
        (CPU, MODEL, CALLABLE, "more cores would help"),
        (replace(CPU, processes=({},)), APART, NETWORK,
         "--model-processes 0 (a copy in every worker) or a GPU would help"),
        (replace(CPU, **STAYS), APART, NETWORK,
         "model_processes=0 (a copy in every worker, if it is picklable) or a GPU would help"),
        (replace(CPU, **STAYS), APART, CALLABLE,
         "model_processes=0 (a copy in every worker, if it is picklable) would help"),
        (replace(CPU, **STAYS), replace(MODEL, workers=1), NETWORK, ""),
        (GPU, APART, NETWORK, "--precision bfloat16 (scores change) or one more GPU would help"),
        (GPU, APART, replace(NETWORK, precision="float16"),
         "--compile (last digits change) or one more GPU would help"),
        (GPU, APART, replace(NETWORK, precision="float16", compiled=True), "one more GPU would help"),
        (replace(GPU, processes=(), **STAYS), APART, NETWORK,
         'precision="bfloat16" (scores change; no gain if it computes so already) would help'),
        (replace(GPU, processes=(), **STAYS), APART, CALLABLE, "a faster model would help"),
        (replace(GPU, processes=()), MODEL, NETWORK, "--precision bfloat16 (scores change) would help"),
    ],
)  # fmt: skip
def test_advice_depends_on_where_the_model_runs(
    engine: Engine, work: WorkDone, model: BenchmarkModel, advice: str
) -> None:
    assert engine.advise(work, model) == advice


def test_advice_names_corruptions_of_the_script(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "plugins_are_importable", lambda: False)
    assert "the corruptions that this script registers" in replace(CPU, jobs=1).advise(WORK, NETWORK)


def test_bottleneck_line_of_a_run() -> None:
    run = Run(Path("run"), {}, (), Cost(), Cost())
    assert run.bottleneck is None
    run = replace(run, work=WORK, advice="more cores would help")
    assert run.bottleneck == "42 s with 2 workers, limited by corrupting: more cores would help"
    run = replace(run, work=replace(MODEL, workers=1, seconds=600.0), advice="")
    assert run.bottleneck == "10 min with one worker, limited by the model"


def test_work_of_the_caller_alone_is_not_waiting() -> None:
    """A short run of a model object ends before workers start, so its model time is spent in one process."""

    def summary(timer: WorkTimer) -> Any:
        work = timer.to_event()
        assert work is not None
        return work.workers, work.apart, work.limit, work.videos

    timer = WorkTimer(16, apart=True)
    timer.add(StageTimes(1, 5, 3), by_caller=True)
    assert summary(timer) == (1, False, "corrupting", 1)
    timer.add(StageTimes(1, 50, 1))
    assert summary(timer) == (16, True, "corrupting", 2)
    timer.add(StageTimes(1, 5, 9))
    assert summary(timer) == (16, True, "model", 3)
