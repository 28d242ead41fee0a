"""The verbs of finished runs: `report`, `diff`, `board`, `view`, `track`, `card`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jostle import api
from jostle.cli import console
from jostle.cli.app import Json, Seed, app
from jostle.core.results import Written
from jostle.errors import BadValue

if TYPE_CHECKING:
    pass


@app.command(help="Write a static leaderboard of runs and records or, with --export, the record of one run.")
def board(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders, and records of runs.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Folder of the leaderboard, or file of the record."),
    ] = None,
    export: Annotated[
        bool, typer.Option("--export", help="Write the record of one run instead, a few kilobytes to submit.")
    ] = False,
    partial: Annotated[bool, typer.Option("--partial", help="Export a run that lacks videos or cells too.")] = False,
    title: Annotated[str, typer.Option("--title", metavar="TEXT", help="Heading of the leaderboard.")] = "Leaderboard",
    draws: Annotated[
        int, typer.Option("--bootstrap", min=0, metavar="N", help="Number of bootstrap draws of intervals.")
    ] = 1000,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    if export:
        if len(runs) > 1:
            raise BadValue("--export writes the record of one run; give one")
        target = out or Path(f"{runs[0].resolve().name}.record.json")
        with console.progress("measuring") as advance:
            written = api.export_run(runs[0], target, partial=partial, draws=draws, seed=seed, progress=advance)
        about = f"{written.stat().st_size / 1e3:.1f} kB; `jostle board` takes it where it takes a run folder"
        console.give(Written({"record": written}, (written,), (about,)), as_json)
        return
    if out is None:
        raise BadValue("say where the board goes: -o DIR")
    if partial:
        raise BadValue("--partial goes with --export; a board takes partial runs and marks them")
    with console.progress("reading runs") as advance:
        written = api.board(runs, out, title=title, draws=draws, seed=seed, progress=advance)
    tables = json.loads(written.with_name("board.json").read_text("utf-8"))  # which say what is self-reported
    about = "open it in a browser, or put the folder on a web server; it needs nothing else"
    console.give(Written({"index": written, **tables}, (written,), (about,)), as_json)


@app.command(help="Compare two runs cell by cell, with paired intervals.")
def diff(
    first: Annotated[Path, typer.Argument(metavar="RUN_A", help="Run folder.")],
    second: Annotated[Path, typer.Argument(metavar="RUN_B", help="Another run of the same benchmark.")],
    latex: Annotated[bool, typer.Option("--latex", help="Print a LaTeX table (booktabs).")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a Markdown table.")] = False,
    any_truth: Annotated[
        bool, typer.Option("--any-truth", help="Compare runs with different ground truths too, each scored by its own.")
    ] = False,
    any_data: Annotated[
        bool, typer.Option("--any-data", help="Compare runs of one recipe on different data, each on its own videos.")
    ] = False,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="FILE[:COLUMN]",
            help="CSV file with the group of each video of RUN_B; default column: category.",
        ),
    ] = None,
    draws: Annotated[
        int, typer.Option("--bootstrap", min=0, metavar="N", help="Number of bootstrap draws of intervals.")
    ] = 1000,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    if latex + markdown + as_json > 1:
        raise BadValue("--latex, --markdown and --json are three forms of one answer; give one of them")
    with console.progress("comparing") as advance:
        comparison = api.diff(
            first, second, draws=draws, seed=seed, any_truth=any_truth, any_data=any_data, by=by, progress=advance
        )
    console.give(comparison, as_json, form="latex" if latex else "markdown" if markdown else "text")


EXIT_CODES = {"pass": 0, "fail": 7, "undecided": 8}  # of `check`


@app.command(help="Check a run against a budget: exit code 0 pass, 7 fail, 8 undecided.")
def check(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run folder.")],
    against: Annotated[
        Path | None, typer.Option("--against", metavar="RUN", help="Reference run of the same benchmark.")
    ] = None,
    budget: Annotated[
        Path | None,
        typer.Option(
            "--budget",
            metavar="FILE",
            help=(
                "TOML file with \\[\\[condition]] tables; default with --against: at most 2 points lost, "
                "clean and corrupted."
            ),
        ),
    ] = None,
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML, one test case per condition.")
    ] = None,
    cells: Annotated[
        str | None,
        typer.Option("--cells", metavar="CELL,...", help="Cells that the gate is about; default: all that count."),
    ] = None,
    draws: Annotated[
        int | None,
        typer.Option(
            "--bootstrap",
            min=2,
            metavar="N",
            help="Number of bootstrap draws of intervals; default: enough for the decision.",
        ),
    ] = None,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    from jostle.gate.outputs import github_commands, markdown, write_junit

    with console.progress("checking") as advance:
        chosen = None if cells is None else cells.split(",")
        checked = api.check(run, against, budget, cells=chosen, draws=draws, seed=seed, progress=advance)
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
        raise typer.Exit(EXIT_CODES[checked.decision])


@app.command(help="Log a finished run with a tracker: TensorBoard, Weights & Biases or MLflow.")
def track(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run folder.")],
    to: Annotated[str, typer.Option("--to", metavar="TRACKER", help="tensorboard, wandb or mlflow.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Folder of the tracker's files; default: RUN/tracking."),
    ] = None,
    as_json: Json = False,
) -> None:
    where = api.track(run, to, folder=out)
    console.give(Written({"tracker": to, "see": where}, (Path(where),)), as_json)


@app.command(help="Write a model card and a data set card for the Hugging Face hub; nothing is sent.")
def card(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run folder.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for model/ and dataset/.")],
    licence: Annotated[
        str | None, typer.Option("--licence", metavar="ID", help="Licence, as the hub writes it, such as apache-2.0.")
    ] = None,
    as_json: Json = False,
) -> None:
    model, dataset = api.card(run, out, licence=licence)
    console.give(Written({"model": model, "dataset": dataset}, (model, dataset)), as_json)


@app.command(help="Write one self-contained page about runs of one benchmark.")
def report(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders; the first is the reference.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="HTML", help="HTML file to write.")] = Path("report.html"),
    budget: Annotated[
        Path | None, typer.Option("--budget", metavar="FILE", help="Budget of `jostle check`, which adds a section.")
    ] = None,
    against: Annotated[
        Path | None, typer.Option("--against", metavar="RUN", help="Reference run of the budget.")
    ] = None,
    csv: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write a CSV table of all cells.")] = None,
    latex: Annotated[
        Path | None, typer.Option("--latex", metavar="DIR", help="Write tables in the layouts of the papers.")
    ] = None,
    latex_intervals: Annotated[bool, typer.Option("--latex-intervals", help="Add intervals to these tables.")] = False,
    draws: Annotated[
        int, typer.Option("--bootstrap", min=0, metavar="N", help="Number of bootstrap draws of intervals.")
    ] = 1000,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    with console.progress("writing the report") as advance:
        written = api.report(
            runs,
            out,
            budget=budget,
            against=against,
            csv=csv,
            latex=latex,
            latex_intervals=latex_intervals,
            draws=draws,
            seed=seed,
            progress=advance,
        )
    size = written.stat().st_size
    content = {"report": written, "bytes": size, "csv": csv, "latex": latex}
    about = f"{size / 1e6:.1f} MB; open it in a browser, it needs nothing else"
    console.give(Written(content, (written,), (about,)), as_json)


@app.command(help="Browse runs: heat map, videos by damage, clean and corrupted video side by side.")
def view(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run folders.")],
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Local port; 0 for any free one.")] = 0,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the address without opening a browser.")
    ] = False,
) -> None:

    def started(address: str) -> None:
        console.show(address)
        sys.stdout.flush()
        console.remark("Ctrl-C ends it")

    api.view(runs, port=port, browser=not no_browser, verbose=console.verbosity > 0, started=started)
