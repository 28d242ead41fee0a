"""The verb that lays two runs side by side: `diff`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jostle import api
from jostle.cli import voice
from jostle.cli.app import app
from jostle.cli.options import Json, Quiet, Seed, Verbose
from jostle.cli.tables import between, lines_of, percent, signed
from jostle.errors import BadValue

if TYPE_CHECKING:
    from jostle.findings.literature import Literature
    from jostle.findings.run_diff import RunDiff


@app.command(help="Show what a second run has over a first, cell by cell, with paired intervals.")
def diff(
    first: Annotated[Path, typer.Argument(metavar="RUN_A", help="What `jostle run` wrote.")],
    second: Annotated[Path, typer.Argument(metavar="RUN_B", help="Another run of the same benchmark.")],
    latex: Annotated[bool, typer.Option("--latex", help="Print a table for LaTeX (booktabs).")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a table for Markdown.")] = False,
    any_truth: Annotated[
        bool, typer.Option("--any-truth", help="Also compare runs of different ground truths, each by its own.")
    ] = False,
    any_data: Annotated[
        bool, typer.Option("--any-data", help="Compare runs of one recipe on different data, each on its own videos.")
    ] = False,
    draws: Annotated[int, typer.Option("--bootstrap", min=0, metavar="N", help="Draws for the intervals.")] = 1000,
    seed: Seed = 0,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = 0,
) -> None:
    voice.speak(quiet, verbose)
    if latex + markdown + as_json > 1:
        raise BadValue("--latex, --markdown and --json are three forms of one answer; give one of them")
    with voice.progress("comparing") as advance:
        found = api.diff(
            first, second, draws=draws, seed=seed, any_truth=any_truth, any_data=any_data, progress=advance
        )
    if as_json:
        voice.show_json(found.to_dict())
    elif latex:
        voice.show(_latex(found))
    elif markdown:
        voice.show(found.table().markdown())
    else:
        voice.show(f"{found.benchmark}, {found.metric} in percent, {found.videos} videos")
        for line in diff_lines(found):
            voice.show(line)
        if found.literature is not None:
            for line in literature_lines(found.literature):
                voice.show(line)
    for remark in found.remarks:
        voice.remark(voice.shown(remark))


def _latex(found: RunDiff) -> str:
    """Clear differences are bold, so the marks are left away."""
    table = found.table()
    clear = [(i, 3) for i, row in enumerate(found.rows) if row.clear]
    plain = type(table)(table.title, table.columns[:-1], tuple(row[:-1] for row in table.rows))
    return plain.latex(bold=clear)


def diff_lines(found: RunDiff) -> list[str]:
    """The two runs as a table; on a terminal what is clearly better is green, what is clearly worse red."""
    table = found.table()
    names = [voice.shown(column.name) for column in table.columns[1:3]]
    rows = [["cell", *names, "difference", f"95 %{'' if found.draws else ' (none)'}", ""]]
    for row, text in zip(found.rows, table.texts(), strict=True):
        gap = row.difference
        numbers = [percent(row.one), percent(row.other), signed(gap.value), between(gap.interval)]
        rows.append([voice.shown(text[0]), *numbers, text[-1]])
    head, *lines = lines_of(rows)
    return [
        head,
        *(_painted(line, row.difference.value, row.clear) for row, line in zip(found.rows, lines, strict=True)),
    ]


def literature_lines(found: Literature) -> list[str]:
    """What papers print, under a heading of its own."""
    table = found.table()
    head, *lines = lines_of([[column.name for column in table.columns], *table.texts()])
    return ["", f"{found.title}:", head, *lines, *found.remarks]


def _painted(line: str, gap: float | None, clear: bool) -> str:
    return voice.painted(line, "green" if gap > 0 else "red") if clear and gap is not None else line
