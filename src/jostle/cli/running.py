"""The verb that runs benchmarks: `run`."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from jostle import api
from jostle.cli import voice
from jostle.cli.app import app
from jostle.cli.fetching import fetch
from jostle.cli.live import LIMITS, time_of, watching
from jostle.cli.options import (
    BenchmarkName,
    Cells,
    DataFolder,
    DatasetName,
    Device,
    ImageRate,
    Json,
    ModelProcesses,
    Quiet,
    ReleasedFaults,
    Seed,
    SubsetName,
    Verbose,
    WindowRule,
    Workers,
)
from jostle.cli.scattering import show_many
from jostle.cli.sparklines import glance_lines
from jostle.cli.tables import lines_of, percent
from jostle.errors import BadValue, JostleError
from jostle.loading.names import check_known, check_names, shelf_of

if TYPE_CHECKING:
    from jostle.running.runner import Run


@app.command(help="Run a benchmark on a model; a run that was stopped goes on.")
def run(
    benchmark: BenchmarkName,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="RUN", help="The run folder; of several, theirs.")],
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            metavar="NAME",
            help="See `jostle names detectors` and `jostle names models`; or your own, package.module:attribute. "
            "Several are run one after the other.",
        ),
    ] = None,
    models: Annotated[
        Path | None,
        typer.Option("--models", metavar="FILE", help="A list: a model a line, and its weights if it has its own."),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            "--weights",
            metavar="F",
            help="Its weights: a file, public, hf:ORG/NAME; of what comes with jostle clean (usual) or robust.",
        ),
    ] = None,
    extractor: Annotated[
        str | None,
        typer.Option("--extractor", metavar="NAME", help="Makes features for a detector; usual: as its weights say."),
    ] = None,
    extractor_weights: Annotated[
        str | None, typer.Option("--extractor-weights", metavar="F", help="Its weights: a file, public, hf:ORG/NAME.")
    ] = None,
    rule: WindowRule = "all",
    released_fault: ReleasedFaults = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="KEY=VALUE", help="Change what a recogniser is shown, as in frames=8."),
    ] = None,
    clips: Annotated[
        Literal["model", "benchmark"],
        typer.Option("--clips", help="Whose frames and sizes a clip has: the model's own or the benchmark's."),
    ] = "model",
    data: DataFolder = None,
    dataset: DatasetName = None,
    subset: SubsetName = None,
    fps: ImageRate = None,
    engine: Annotated[
        str, typer.Option("--engine", metavar="E", help="Where the work is done: local or ray.")
    ] = "local",
    cells: Cells = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Look at failed videos again.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")] = False,
    seed: Seed = 0,
    jobs: Workers = None,
    model_processes: ModelProcesses = None,
    device: Device = "auto",
    precision: Annotated[
        Literal["float32", "tf32", "bfloat16", "float16"],
        typer.Option("--precision", help="Numbers that networks compute with; others than float32 move scores."),
    ] = "float32",
    mend: Annotated[
        str | None,
        typer.Option(
            "--mend",
            metavar="BY",
            help="Replace what struck frames touch by what lies around: found by jostle, by weights, or known.",
        ),
    ] = None,
    compiled: Annotated[
        bool, typer.Option("--compile", help="Networks through torch.compile, on a GPU; moves last digits.")
    ] = False,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> None:
    voice.speak(quiet, verbose)
    from jostle.api.many import Entry
    from jostle.settings import is_toml, parsed_pairs

    entries = [*(Entry(one) for one in model or ()), *(() if models is None else api.read_models(models))]
    if not entries:
        raise BadValue("say which model: --model NAME, several times for several, or --models FILE")
    if not is_toml(benchmark):
        check_known("benchmarks", benchmark)
    for one in entries:
        # Of several, one that is wrong or cannot be fetched is told of with the others.
        with suppress(JostleError) if len(entries) > 1 else nullcontext():
            if not is_toml(benchmark):
                check_names(benchmark, one.model)
            fetch(shelf_of(one.model), one.model, one.weights or weights)
    fetch("extractors", extractor, extractor_weights)
    asked: dict[str, Any] = {
        "data": data,
        "dataset": dataset,
        "subset": subset,
        "fps": fps,
        "out": out,
        "extractor": extractor,
        "extractor_weights": extractor_weights,
        "rule": rule,
        "released_faults": released_fault or (),
        "input": parsed_pairs(settings) if settings else None,
        "clips": clips,
        "cells": None if cells is None else cells.split(","),
        "seed": seed,
        "retry_failed": retry_failed,
        "jobs": jobs,
        "model_processes": model_processes,
        "device": device,
        "precision": precision,
        "compiled": compiled,
        "mend": mend,
    }
    if len(entries) > 1:
        if dry_run:
            raise BadValue("--dry-run is of one model; name one")
        done_all = api.run_many(benchmark, entries, weights=weights, watching=watching, engine=engine, **asked)
        show_many(done_all, out, as_json)
        if done_all.failed or any(one.failures for one in done_all.runs.values()):
            raise typer.Exit(4)
        return
    asked |= {"model": entries[0].model, "weights": entries[0].weights or weights}
    if dry_run:
        told = api.plan(benchmark, **asked)
        if as_json:
            voice.show_json(told)
        else:
            _show_plan(told)
        return
    with watching(f"running {benchmark}") as shown:
        done = api.run(benchmark, engine=engine, **shown, **asked)
    _show(done, as_json)
    for failure in done.failures:
        voice.say(f"{voice.shown(failure['video'])}: set aside: {failure['message']}")
    if done.failures:
        raise typer.Exit(4)


def _show_plan(told: dict[str, Any]) -> None:
    about = "about " if told["opened"] < told["videos"] else ""
    voice.show(
        f"{told['videos']} videos, {about}{told['frames']} frames; {len(told['cells'])} cells, {told['looks']} looks; "
        f"{len(told['failed'])} videos failed before"
    )
    if cost := told["estimate"]:
        windows = "" if cost["windows"] is None else f" with {cost['windows']} windows"
        voice.show(
            f"about {time_of(cost['clean_s'])} for the clean videos{windows}, {time_of(cost['all_s'])} if every cell "
            f"takes as long, with {cost['jobs']} at once; {cost['disk_bytes'] / 1e6:.1f} MB on the disk"
        )
        if cost["limit"] is not None:
            parts = ", ".join(f"{LIMITS[part]} {seconds:.1f} s" for part, seconds in cost["parts"].items())
            voice.show(f"limited by {LIMITS[cost['limit']]}: a video in its cells takes {parts}")


def _object_lines(scores: dict[str, Any]) -> list[str]:
    """Detection and localisation on the anchors and on the worst frame near each, for runs of object detectors."""
    found = scores["clean_more"].get("objects")
    if found is None:
        return []
    rows = [["", "mAP on anchors", scores["metric"], "drop"]]
    for what in ("detection", "localisation"):
        one = found[what]
        rows.append([what, percent(one["mean_ap"]), percent(one["pm_k"]), percent(one["drop"])])
    known = f"on {found['classes']} of {found['of_classes']} classes, which the detector knows"
    return ["", *lines_of(rows), *([known] if found["classes"] < found["of_classes"] else [])]


def _show(done: Run, as_json: bool) -> None:
    from jostle.runs.scores import Coverage

    scores = done.scores
    if as_json:
        voice.show_json(scores)
        return
    rows = [["cell", scores["metric"], "of clean"], ["clean", percent(scores["clean"]), ""]]
    for cell in [*scores["cells"], *scores["beside"]]:
        rows.append([cell["cell"], percent(cell["value"]), percent(cell.get("relative"))])
    if scores["cells"]:
        rows.append(["mean corrupted", percent(scores["mean_corrupted"]), percent(scores["relative_robustness"])])
    for line in lines_of(rows):
        voice.show(line)
    for line in _object_lines(scores):
        voice.show(line)
    if voice.drawing():
        for line in ("", *glance_lines(scores)):
            voice.show(line)
    if mend := scores.get("mend"):
        told = "as the benchmark itself knows them" if mend == "known" else f"found by {mend}"
        voice.remark(f"mended: what struck frames touch was replaced, {told}")
    recipe, moved, _ = scores["benchmark"].partition(" on ")
    if moved:
        voice.remark(f"this is {scores['benchmark']}, not the benchmark {recipe}")
    counted = scores["counted"]
    if counted["cells"] < counted["of"]:
        voice.remark(f"the means are over {counted['cells']} of the benchmark's {counted['of']} cells")
    coverage = Coverage(**scores["coverage"])
    if not coverage.whole:
        voice.remark(f"scored on {coverage}")
    for name, key in (("accuracy", "accuracy"), ("drop", "drop")):
        if "pm_k" in scores["clean_more"]:
            voice.remark(f"{name} {percent(scores['clean_more']['pm_k'][key])}")
    seen = f"{done.clean.joined} clean clips or windows, {done.cells.joined} more for the cells"
    voice.remark(f"{voice.shown(str(done.folder))}: {seen}")
