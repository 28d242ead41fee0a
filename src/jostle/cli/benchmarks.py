"""The verbs of benchmarks: `run` and `probe`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from jostle import api
from jostle.api.config import BenchmarkRunConfig
from jostle.cli import console
from jostle.cli.app import DryRun, Json, app, fetch
from jostle.cli.console import watching
from jostle.cli.options import ExitCode, Given, with_options
from jostle.core.formatting import escape
from jostle.core.options import option, options_in, reworded
from jostle.core.settings import is_toml
from jostle.errors import BadValue, JostleError
from jostle.evaluation.probing.options import ProbeConfig
from jostle.gate.options import StopOptions
from jostle.models.adaptation.options import AdaptOptions
from jostle.models.loading.names import registry_of
from jostle.models.options import ModelOptions

if TYPE_CHECKING:
    from jostle.api.benchmarks import ModelEntry


@app.command(help="Run a benchmark on a model, or resume a run.")
@with_options(BenchmarkRunConfig, without=("model",), optional=True)
def run(
    given: Given,
    *,
    model: Annotated[
        Sequence[str] | None,
        reworded(
            ModelOptions,
            "model",
            "Name of a model (`jostle names detectors`, `models`, `languagemodels`), or your own as "
            "package.module:attribute. May be repeated: models run one after the other.",
        ),
    ] = None,
    models: Annotated[
        Path | None,
        option("File with one model per line, followed by its weights if it has its own.", metavar="FILE"),
    ] = None,
    settings: Annotated[
        Path | None,
        option(
            "File of options under their names in Python; those of the command line come before them.",
            flag="--from",
            metavar="FILE.toml",
        ),
    ] = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    from jostle.api.benchmarks import ModelEntry

    given = given if settings is None else given.read(settings)
    entries = [*(ModelEntry(one) for one in model or ()), *(() if models is None else api.read_models(models))]
    if not entries:
        named = given.values.get("model", ())
        entries = [ModelEntry(one) for one in ([named] if isinstance(named, str) else named)]
    if not entries:
        raise BadValue("say which model: --model NAME, several times for several, or --models FILE")
    options = given.keywords(model=entries[0].model)
    _fetch_all(options, entries)
    if len(entries) > 1:
        if dry_run or options.get("until_decided") or options.get("fail_fast"):
            raise BadValue("--dry-run and --until-decided are of one model; name one")
        _run_many(entries, options, as_json)
        return
    options["weights"] = entries[0].weights or options.get("weights")
    if dry_run:
        console.give(api.plan(**options), as_json)
    else:
        _run_one(options, as_json)


def _fetch_all(options: Mapping[str, Any], entries: Sequence[ModelEntry]) -> None:
    """Download the weights that are requested by name, once all names are known to be right."""
    benchmark = options["benchmark"]
    if not is_toml(benchmark):
        from jostle.evaluation.recipes.recipe import benchmarks

        benchmarks.check(benchmark)
    for one in entries:
        # With several models, one that is wrong or cannot be fetched is reported with the others.
        with suppress(JostleError) if len(entries) > 1 else nullcontext():
            if not is_toml(benchmark):
                api.check_model_name(benchmark, one.model)
            fetch(registry_of(one.model), one.model, one.weights or options.get("weights"))
    fetch("extractors", options.get("extractor"), options.get("extractor_weights"))


def _run_many(entries: Sequence[ModelEntry], options: dict[str, Any], as_json: bool) -> None:
    common = {name: value for name, value in options.items() if name not in ("benchmark", "model")}
    done = api.run_many(options["benchmark"], entries, watching=watching, **common)
    console.give(done, as_json)
    for name, run in done.runs.items():
        for failure in run.failures:
            console.say(f"{escape(name)}: {escape(failure['video'])}: set aside: {failure['message']}")
    for name, why in done.failed.items():
        console.say(f"{escape(name)}: could not be run: {why}")
    if done.failed or any(one.failures for one in done.runs.values()):
        raise ExitCode(4)


def _run_one(options: dict[str, Any], as_json: bool) -> None:
    with watching(f"running {options['benchmark']}") as callbacks:
        done = api.run(**options, **callbacks)
    from jostle.reporting.analysis.severity_bars import severity_bars

    console.give(done, as_json, drawn=(severity_bars(done.scores),) if done.scores["cells"] else ())
    if done.stopped_early is not None:
        console.say(f"stopped early: {done.stopped_early.reason}")
        for one in done.stopped_early.conditions:
            console.say(escape(f"{one.name}: {one.decision}, {one.videos} videos"))
    console.end_with_failures((one["video"], one["message"]) for one in done.failures)


@app.command(help="Find the smallest damage that makes a model lose each action, clip or frame.")
@with_options(ProbeConfig, without=options_in(AdaptOptions))
def probe(
    given: Given,
    *,
    against: Annotated[
        Path | None,
        reworded(StopOptions, "against", "Compare with the probe of another model, item by item."),
    ] = None,
    as_json: Json = False,
) -> None:
    from jostle.api.benchmarks import ModelEntry
    from jostle.evaluation.probing.probe import ComparedProbe

    options = given.keywords()
    _fetch_all(options, [ModelEntry(options["model"])])
    with console.progress(f"probing {options['benchmark']}") as advance:
        done = api.probe(**options, progress=advance)
    against_other = None if against is None else api.compare_probes(against, options["out"])
    console.give(done if against_other is None else ComparedProbe(done, against_other), as_json)
    console.end_with_failures(done.failures.items())
