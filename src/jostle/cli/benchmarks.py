"""The verbs of benchmarks: `run`, `probe` and `scatter`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jostle import api
from jostle.api.config import ProbeConfig, RunConfig
from jostle.cli import console
from jostle.cli.app import Json, app, fetch
from jostle.cli.console import watching
from jostle.cli.options import Given, with_options
from jostle.cli.tables import lines_of, summary_lines
from jostle.core.config import is_toml
from jostle.core.formatting import between, escape, percent, time_of
from jostle.core.options import options_in
from jostle.core.timing import LIMITS
from jostle.errors import BadValue, JostleError, MissingExtra
from jostle.models.adaptation.options import AdaptOptions
from jostle.models.loading.names import check_known, registry_of

if TYPE_CHECKING:
    from jostle.api.benchmarks import Many, ModelEntry
    from jostle.evaluation.probing.probe import Probe
    from jostle.evaluation.runner.runner import Run
    from jostle.metrics.breaking_points import BreakingComparison
    from jostle.reporting.analysis.stability import Stabilities


@app.command(help="Plot accuracy against pm-k for runs of frame classifiers, and print them as a table.")
def scatter(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders of one benchmark.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the figure, as png, pdf and svg.")
    ],
    as_json: Json = False,
) -> None:
    stabilities = api.stability(runs)
    written = api.draw_stability(stabilities, out)
    if as_json:
        console.show_json(stabilities.to_dict() | {"figures": [str(path) for path in written]})
        return
    show_stability(stabilities)
    console.show(escape(str(written[0])))


def show_many(done: Many, out: Path, as_json: bool) -> None:
    """Print the results of many models, and draw the figure for frame classifiers."""
    first = next(iter(done.runs.values()))
    frames = "pm_k" in first.scores["clean_more"]
    stabilities = api.stability([run.folder for run in done.runs.values()]) if frames else None
    figures: list[Path] = []
    if stabilities is not None:
        try:
            figures = api.draw_stability(stabilities, out)
        except MissingExtra as error:
            console.remark(str(error))
    if as_json:
        scores = {name: run.to_dict() for name, run in done.runs.items()}
        drawn = [str(path) for path in figures]
        console.show_json({"format": 1, "runs": scores, "failed": done.failed, "figures": drawn})
    elif stabilities is not None:
        show_stability(stabilities)
        for path in figures[:1]:
            console.show(escape(str(path)))
    else:
        rows = [["model", "clean", "corrupted, mean", "of clean"]]
        for name, run in done.runs.items():
            keys = ("clean", "mean_corrupted", "relative_robustness")
            rows.append([name, *(percent(run.scores[key]) for key in keys)])
        console.show_lines(lines_of(rows))
        if chance := first.scores["clean_more"].get("chance"):
            console.remark(f"chance level is {percent(chance)} %")
    for name, run in done.runs.items():
        if run.bottleneck and not as_json:
            console.remark(f"{escape(name)}: {run.bottleneck}")
        for failure in run.failures:
            console.say(f"{escape(name)}: {escape(failure['video'])}: set aside: {failure['message']}")
    for name, why in done.failed.items():
        console.say(f"{escape(name)}: could not be run: {why}")


def show_stability(stabilities: Stabilities) -> None:
    """Print one row for each frame classifier."""
    rows = [["", "accuracy", "95 %", f"pm-{stabilities.k}", "95 %", "drop"]]
    for one in stabilities.runs:
        numbers = (percent(one.accuracy), between(one.accuracy_interval), percent(one.pm_k), between(one.pm_k_interval))
        rows.append([escape(one.name), *numbers, percent(one.drop)])
    console.show_lines(lines_of(rows))
    console.remark(f"{stabilities.title}, {stabilities.anchors} anchors; {stabilities.intervals}")
    for remark in stabilities.apart[:1]:
        more = f" And {len(stabilities.apart) - 1} more are so." if len(stabilities.apart) > 1 else ""
        console.remark(remark + more)


@app.command(help="Run a benchmark on a model, or resume a run.")
@with_options(RunConfig, without=("model",), optional=True)
def run(
    given: Given,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            "-m",
            metavar="NAME",
            help=(
                "Name of a model (`jostle names detectors`, `models`, `languagemodels`), or your own as "
                "package.module:attribute. May be repeated: models run one after the other."
            ),
        ),
    ] = None,
    models: Annotated[
        Path | None,
        typer.Option(
            "--models", metavar="FILE", help="File with one model per line, followed by its weights if it has its own."
        ),
    ] = None,
    settings: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE.toml",
            help="File of options under their names in Python; those of the command line come before them.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be done, and do nothing.")] = False,
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
        plan = api.plan(**options)
        console.show_json(plan) if as_json else _show_plan(plan)
    else:
        _run_one(options, as_json)


def _fetch_all(options: Mapping[str, Any], entries: Sequence[ModelEntry]) -> None:
    """Download the weights that are requested by name, once all names are known to be right."""
    benchmark = options["benchmark"]
    if not is_toml(benchmark):
        check_known("benchmarks", benchmark)
    for one in entries:
        # With several models, one that is wrong or cannot be fetched is reported with the others.
        with suppress(JostleError) if len(entries) > 1 else nullcontext():
            api.check_model_name(benchmark, one.model)
            fetch(registry_of(one.model), one.model, one.weights or options.get("weights"))
    fetch("extractors", options.get("extractor"), options.get("extractor_weights"))


def _run_many(entries: Sequence[ModelEntry], options: dict[str, Any], as_json: bool) -> None:
    common = {name: value for name, value in options.items() if name not in ("benchmark", "model")}
    done = api.run_many(options["benchmark"], entries, watching=watching, **common)
    show_many(done, Path(options["out"]), as_json)
    if done.failed or any(one.failures for one in done.runs.values()):
        raise typer.Exit(4)


def _run_one(options: dict[str, Any], as_json: bool) -> None:
    with watching(f"running {options['benchmark']}") as callbacks:
        done = api.run(**options, **callbacks)
    _show(done, as_json)
    if done.stopped_early is not None:
        console.say(f"stopped early: {done.stopped_early.reason}")
        for one in done.stopped_early.conditions:
            console.say(escape(f"{one.name}: {one.decision}, {one.videos} videos"))
    for failure in done.failures:
        console.say(f"{escape(failure['video'])}: set aside: {failure['message']}")
    if done.failures:
        raise typer.Exit(4)


@app.command(help="Find the smallest damage that makes a model lose each action, clip or frame.")
@with_options(ProbeConfig, without=options_in(AdaptOptions))
def probe(
    given: Given,
    against: Annotated[
        Path | None,
        typer.Option("--against", metavar="RUN", help="Compare with the probe of another model, item by item."),
    ] = None,
    as_json: Json = False,
) -> None:
    from jostle.api.benchmarks import ModelEntry

    options = given.keywords()
    _fetch_all(options, [ModelEntry(options["model"])])
    with console.progress(f"probing {options['benchmark']}") as advance:
        done = api.probe(**options, progress=advance)
    comparison = None if against is None else api.compare_probes(against, options["out"])
    if as_json:
        compared = None if comparison is None else {name: one.to_dict() for name, one in comparison.items()}
        console.show_json(done.to_dict() | ({} if compared is None else {"against": compared}))
    else:
        _show_probe(done)
        if comparison is not None:
            _show_probe_comparison(comparison)
    for name, why in done.failures.items():
        console.say(f"{escape(name)}: set aside: {why}")
    if done.failures:
        raise typer.Exit(4)


def _show_probe(done: Probe) -> None:
    rows = [["kind", "median frames", "95 %", "lost to 1, %", "to 4, %", "to 16, %", "never, %"]]
    for kind in done.kinds:
        one = done.distribution(kind)
        if not one.items:
            continue
        ends = (
            [] if one.median_interval is None else ["-" if end is None else f"{end:g}" for end in one.median_interval]
        )
        median = "-" if one.median is None else f"{one.median:g}"
        shares = [percent(one.lost_to[frames][0]) for frames in (1, 4, 16)]
        rows.append([kind, median, " to ".join(ends), *shares, percent(one.unbroken / one.items)])
    console.show_lines(lines_of(rows))
    console.remark(f"{done.kept} of {done.items} items are right in the clean videos; {done.trials} trials")
    console.remark(f"lost: {done.full_rule}")
    uneven = [one for one in done.breaking_points if not one.monotone]
    if uneven:
        console.remark(
            f"{len(uneven)} of {len(done.breaking_points)} breaking points are not monotone: more damage helps"
        )


def _show_probe_comparison(comparison: dict[str, BreakingComparison]) -> None:
    rows = [["kind", "items", "lost to fewer", "to more", "frames, ratio", "95 %"]]
    for kind, one in comparison.items():
        ends = "" if one.ratio_interval is None else f"{one.ratio_interval[0]:.2f} to {one.ratio_interval[1]:.2f}"
        ratio = "-" if one.ratio is None else f"{one.ratio:.2f}"
        rows.append([kind, str(one.items), str(one.earlier), str(one.later), ratio, ends])
    console.show_lines(("", *lines_of(rows)))


def _show_plan(plan: dict[str, Any]) -> None:
    about = "about " if plan["opened"] < plan["videos"] else ""
    console.show(
        f"{plan['videos']} videos, {about}{plan['frames']} frames; {len(plan['cells'])} cells, {plan['looks']} looks; "
        f"{len(plan['failed'])} videos failed before"
    )
    if cost := plan["estimate"]:
        windows = "" if cost["windows"] is None else f" with {cost['windows']} windows"
        console.show(
            f"about {time_of(cost['clean_s'])} for the clean videos{windows}, {time_of(cost['all_s'])} if every cell "
            f"takes as long, with {cost['jobs']} at once; {cost['disk_bytes'] / 1e6:.1f} MB on the disk"
        )
        if cost["limit"] is not None:
            parts = ", ".join(f"{LIMITS[part]} {seconds:.1f} s" for part, seconds in cost["parts"].items())
            console.show(f"limited by {LIMITS[cost['limit']]}: a video in its cells takes {parts}")


def _object_lines(scores: dict[str, Any]) -> list[str]:
    """Detection and localisation on the anchors and on the worst frame near each, for runs of object detectors."""
    objects = scores["clean_more"].get("objects")
    if objects is None:
        return []
    rows = [["", "mAP on anchors", scores["metric"], "drop"]]
    for what in ("detection", "localisation"):
        one = objects[what]
        rows.append([what, percent(one["mean_ap"]), percent(one["pm_k"]), percent(one["drop"])])
    known = f"on {objects['classes']} of {objects['of_classes']} classes, which the detector knows"
    return ["", *lines_of(rows), *([known] if objects["classes"] < objects["of_classes"] else [])]


def _baseline_remarks(clean: dict[str, Any]) -> list[str]:
    """Say what a model of words scores with less than the video, and how many answers no rule could read."""
    from jostle.reporting.analysis.language import BASELINES

    baselines = clean.get("baselines", {})
    levels = {BASELINES[key]: one.get("accuracy", one.get("value")) for key, one in baselines.items()}
    known = [f"{name} {percent(value)}" for name, value in levels.items() if value is not None]
    remarks = [f"on clean video it scores {', '.join(known)}"] if known else []
    remarks += [f"no score {BASELINES[key]}: {one['failed']}" for key, one in baselines.items() if "failed" in one]
    if clean.get("unreadable"):
        remarks.append(f"{clean['unreadable']} of {clean['count']} clean answers are unreadable, which counts as wrong")
    return remarks


def _show(done: Run, as_json: bool) -> None:
    from jostle.evaluation.run_folder.scores import Coverage

    scores = done.scores
    if as_json:
        console.show_json(done.to_dict())
        return
    rows = [["cell", scores["metric"], "of clean"], ["clean", percent(scores["clean"]), ""]]
    for cell in [*scores["cells"], *scores["beside"]]:
        rows.append([cell["cell"], percent(cell["value"]), percent(cell.get("relative"))])
    if scores["cells"]:
        rows.append(["mean corrupted", percent(scores["mean_corrupted"]), percent(scores["relative_robustness"])])
    console.show_lines(lines_of(rows))
    console.show_lines(_object_lines(scores))
    if console.drawing():
        console.show_lines(("", *summary_lines(scores)))
    if chance := scores["clean_more"].get("chance"):
        console.remark(f"chance level is {percent(chance)} %")
    for remark in _baseline_remarks(scores["clean_more"]):
        console.remark(remark)
    constant = [one["constant"] for one in (scores["clean_more"], *scores["cells"]) if one.get("constant")]
    if constant:
        console.remark(
            f"all classes have one score in up to {max(constant)} videos of {len(constant)} cells, so that the first "
            "class is the answer there: does the model compute anything?"
        )
    if mend := scores.get("mend"):
        source = "as the benchmark itself knows them" if mend == "known" else f"found by {mend}"
        console.remark(f"mended: what damaged frames touch was replaced; frames {source}")
    if adapt := scores.get("adapt"):
        passes = "" if done.adaptation is None else f"; {done.adaptation}"
        console.remark(f"adapted ({adapt}){passes}")
    recipe, moved, _ = scores["benchmark"].partition(" on ")
    if moved:
        console.remark(f"this is {scores['benchmark']}, not the benchmark {recipe}")
    counted = scores["counted"]
    if counted["cells"] < counted["of"]:
        console.remark(f"the means are over {counted['cells']} of the benchmark's {counted['of']} cells")
    coverage = Coverage(**scores["coverage"])
    if not coverage.whole:
        console.remark(f"scored on {coverage}")
    for name, key in (("accuracy", "accuracy"), ("drop", "drop")):
        if "pm_k" in scores["clean_more"]:
            console.remark(f"{name} {percent(scores['clean_more']['pm_k'][key])}")
    if "baselines" in scores["clean_more"]:  # a model of words, which gets frames instead of clips or windows
        work = f"{done.clean.seen} clean frames read, {done.cells.seen} more for the cells"
    else:
        work = f"{done.clean.joined} clean clips or windows, {done.cells.joined} more for the cells"
    console.remark(f"{escape(str(done.folder))}: {work}")
    if done.bottleneck:
        console.remark(done.bottleneck)
