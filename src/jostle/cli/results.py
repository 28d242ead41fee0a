"""The verbs of finished runs: `report`, `diff`, `board`, `view`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from jostle import api
from jostle.cli import console
from jostle.cli.app import Json, app
from jostle.cli.options import ExitCode, Given, with_options
from jostle.core.options import option, options_in, reworded
from jostle.core.results import Written
from jostle.core.tables import TableOptions
from jostle.datasets.options import DataOptions
from jostle.errors import BadValue, UnknownName
from jostle.gate.options import CheckConfig
from jostle.reporting.options import BoardConfig, DiffConfig, RecordConfig, ReportConfig


@app.command(help="Write a static leaderboard of runs and records or, with --export, the record of one run.")
@with_options(BoardConfig, without=("out",))
def board(
    given: Given,
    out: Annotated[
        Path | None, reworded(BoardConfig, "out", "Folder of the leaderboard, or file of the record.")
    ] = None,
    export: Annotated[bool, option("Write the record of one run instead, a few kilobytes to submit.")] = False,
    partial: Annotated[bool, reworded(RecordConfig, "partial")] = False,
    as_json: Json = False,
) -> None:
    options = given.filled(out=out)
    runs = options["runs"]
    if export:
        if len(runs) > 1:
            raise BadValue("--export writes the record of one run; give one")
        target = out or f"{Path(runs[0]).resolve().name}.record.json"
        part = {name: options[name] for name in ("draws", "seed")}
        with console.progress("measuring") as advance:
            written = api.export_run(runs[0], target, partial=partial, progress=advance, **part)
        about = f"{written.stat().st_size / 1e3:.1f} kB; `jostle board` takes it where it takes a run folder"
        console.give(Written({"record": written}, (written,), (about,)), as_json)
        return
    if out is None:
        raise BadValue("say where the board goes: -o DIR")
    if partial:
        raise BadValue("--partial goes with --export; a board takes partial runs and marks them")
    with console.progress("reading runs") as advance:
        written = api.board(**options, progress=advance)
    tables = json.loads(written.with_name("board.json").read_text("utf-8"))  # which say what is self-reported
    about = "open it in a browser, or put the folder on a web server; it needs nothing else"
    console.give(Written({"index": written, **tables}, (written,), (about,)), as_json)


@app.command(help="Compare two runs cell by cell, with paired intervals.")
@with_options(DiffConfig)
def diff(
    given: Given,
    latex: Annotated[bool, reworded(TableOptions, "latex", "Print a LaTeX table (booktabs).", metavar="")] = False,
    markdown: Annotated[bool, option("Print a Markdown table.")] = False,
    as_json: Json = False,
) -> None:
    if latex + markdown + as_json > 1:
        raise BadValue("--latex, --markdown and --json are three forms of one answer; give one of them")
    with console.progress("comparing") as advance:
        comparison = api.diff(**given.keywords(progress=advance))
    console.give(comparison, as_json, form="latex" if latex else "markdown" if markdown else "text")


EXIT_CODES = {"pass": 0, "fail": 7, "undecided": 8}  # of `check`


@app.command(
    help=(
        "Check a run against a budget or a reference: exit code 0 pass, 7 fail, 8 undecided. Without them, check the "
        "files of a run, of corrupted copies or of a data set: 0 whole, 4 something is missing, 6 altered."
    )
)
@with_options(CheckConfig)
def check(
    given: Given,
    junit: Annotated[Path | None, option("Write JUnit XML, one test case per condition.", metavar="FILE")] = None,
    dataset: Annotated[
        str | None, reworded(DataOptions, "dataset", "Name of the data set (`jostle names datasets`).")
    ] = None,
    subset: Annotated[str | None, reworded(DataOptions, "subset", "Subset of the data set.")] = None,
    as_json: Json = False,
) -> None:
    folder = Path(given.values["run"])
    if not {"budget", "against"} & {*given.values} and not api.stopped_early(folder):
        given.refuse("is of a gate; give it --budget FILE or --against RUN", "cells", "draws")
        if junit is not None:
            raise BadValue("--junit is of a gate; give it --budget FILE or --against RUN")
        _check_files(folder, dataset, subset, as_json)
        return
    if dataset is not None or subset is not None:
        raise BadValue("--dataset and --subset name a data set to check; leave them out for a run")
    from jostle.gate.outputs import github_commands, markdown, write_junit

    with console.progress("checking") as advance:
        checked = api.check(**given.keywords(progress=advance))
    if junit is not None:
        write_junit(checked, junit)
    console.give(checked, as_json)
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with open(summary, "a", encoding="utf-8") as file:
            file.write(markdown(checked))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        for command in github_commands(checked):
            print(command, file=sys.stderr)
    if not checked.passed:
        raise ExitCode(EXIT_CODES[checked.decision])


def _check_files(folder: Path, dataset: str | None, subset: str | None, as_json: bool) -> None:
    with console.progress(f"checking {folder.name}") as advance:
        result = api.verify(folder, dataset=dataset, subset=subset, progress=advance)
    console.give(result, as_json)
    if result.altered:
        raise ExitCode(6)
    if result.lacking:
        raise ExitCode(4)


@app.command(
    help="Write one self-contained page about runs of one benchmark; with --as cards of a run, or log it elsewhere."
)
@with_options(ReportConfig)
def report(
    given: Given,
    form: Annotated[
        str | None,
        option(
            "Another form, of one run: card, a model card and a data set card for the Hugging Face hub in -o; "
            "or a tracker (tensorboard, wandb, mlflow), whose files are put into -o, by default RUN/tracking.",
            flag="--as",
            metavar="FORM",
        ),
    ] = None,
    licence: Annotated[
        str | None,
        option("With --as card: licence, as the hub writes it, such as apache-2.0.", metavar="ID"),
    ] = None,
    as_json: Json = False,
) -> None:
    if licence is not None and form != "card":
        raise BadValue("--licence goes with --as card")
    if form is not None:
        given.refuse(
            f"is of the page; leave it out with --as {form}", *options_in(ReportConfig) - {"runs", "out", "seed"}
        )
        run, *others = given.values["runs"]
        if others:
            raise BadValue(f"--as {form} is of one run; name one")
        _write_cards(run, given.values.get("out"), licence, as_json) if form == "card" else _track(
            run, form, given.values.get("out"), as_json
        )
        return
    with console.progress("writing the report") as advance:
        written = api.report(**given.keywords(), progress=advance)
    size = written.stat().st_size
    paths = {name: given.values.get(name) for name in ("csv", "latex", "figures")}
    content = {"report": written, "bytes": size, **paths, "stability": _stability(given.values["runs"])}
    about = f"{size / 1e6:.1f} MB; open it in a browser, it needs nothing else"
    console.give(Written(content, (written,), (about,)), as_json)


def _stability(runs: Sequence[str]) -> dict[str, Any] | None:
    """Return accuracy and pm-k of runs as plain values; None if they are not of frame classifiers."""
    with suppress(BadValue):
        found = api.stability(runs).to_dict()
        del found["figures"]  # those of the report have a key of their own
        return found
    return None


def _write_cards(run: str, out: str | None, licence: str | None, as_json: bool) -> None:
    if out is None:
        raise BadValue("say where the cards go: -o DIR")
    model, dataset = api.card(run, out, licence=licence)
    console.give(Written({"model": model, "dataset": dataset}, (model, dataset)), as_json)


def _track(run: str, tracker: str, out: str | None, as_json: bool) -> None:
    forms = ["card", *api.names("trackers")]
    if tracker not in forms:
        raise UnknownName("form of a report", tracker, forms)
    where = api.track(run, tracker, folder=out)
    console.give(Written({"tracker": tracker, "see": where}, (Path(where),)), as_json)


@app.command(help="Browse runs: heat map, videos by damage, clean and corrupted video side by side.")
def view(
    runs: Annotated[Sequence[Path], reworded(ReportConfig, "runs", "Run folders.")],
    *,
    port: Annotated[int, option("Local port; 0 for any free one.", least=0, most=65535)] = 0,
    no_browser: Annotated[bool, option("Print the address without opening a browser.")] = False,
) -> None:

    def started(address: str) -> None:
        console.show(address)
        sys.stdout.flush()
        console.remark("Ctrl-C ends it")

    api.view(runs, port=port, browser=not no_browser, verbose=console.verbosity > 0, started=started)
