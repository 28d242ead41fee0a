"""Console output: data on stdout, all else on stderr, and a run while it is under way. No other module prints."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Literal

from jostle.cli.options import ExitCode
from jostle.core.formatting import escape, percent, time_of, without_nan
from jostle.core.timing import LIMITS

if TYPE_CHECKING:
    from pathlib import Path

    from jostle.core.results import Result
    from jostle.core.tables import Table, Tone
    from jostle.evaluation.runner.progress import CellProgress, ProgressUpdate

Form = Literal["text", "markdown", "latex"]  # of tables
_COLOURS = {"good": 32, "bad": 31}
_quiet = False
verbosity = 0


def speak(quiet: bool, verbose: int) -> None:
    """Set the verbosity."""
    global _quiet, verbosity
    _quiet, verbosity = quiet, verbose


def quiet() -> bool:
    """Whether only results and errors are printed."""
    return _quiet


def show(text: str) -> None:
    sys.stdout.write(text + "\n")


def drawing() -> bool:
    """Whether results may use colours and bars: on a terminal that can display them, without `NO_COLOR`."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    try:
        "▁█".encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def painted(text: str, tone: Tone) -> str:
    """Text in green for good and red for bad news, where results may have colours."""
    return f"\x1b[{_COLOURS[tone]}m{text}\x1b[0m" if tone and drawing() else text


def give(
    result: Result,
    as_json: bool = False,
    *,
    form: Form = "text",
    csv: Path | None = None,
    latex: Path | None = None,
    drawn: Sequence[Table] = (),
) -> None:
    """Print a result: its JSON, or its tables and the files that it wrote; its notes go to stderr.

    Args:
        csv, latex: files to write the tables to as well.
        drawn: further tables, for terminals that can draw.
    """
    if csv is not None or latex is not None:
        _write_tables(result, csv, latex)
    if as_json:
        show_json(result.to_dict())
    else:
        tables = (*result.tables(), *(drawn if drawing() else ()))
        texts = [
            table.latex() if form == "latex" else table.markdown() if form == "markdown" else table.text(painted)
            for table in tables
        ]
        if some := "\n\n".join(filter(None, texts)):
            show(some)
    for note in result.notes():
        remark(escape(note))
    if not as_json:
        for path in result.written():
            show(escape(str(path)))


def _write_tables(result: Result, csv: Path | None, latex: Path | None) -> None:
    from jostle.core.tables import joined
    from jostle.io.files.atomic import write_text

    table = joined(result.tables())
    for path, text in ((csv, table.csv()), (latex, table.latex() + "\n")):
        if path is not None:
            write_text(path, [text])
            remark(escape(str(path)))


def show_json(value: Any) -> None:
    show(json.dumps(without_nan(value), indent=2, allow_nan=False))


def say(text: str) -> None:
    sys.stderr.write(text + "\n")


def remark(text: str) -> None:
    if not _quiet:
        say(text)


def end_with_failures(failures: Iterable[tuple[str, str]]) -> None:
    """Print which videos were set aside and why; if there are any, end the verb with exit code 4."""
    lines = [f"{escape(video)}: set aside: {why}" for video, why in failures]
    for line in lines:
        say(line)
    if lines:
        raise ExitCode(4)


@contextmanager
def progress(what: str) -> Iterator[Any]:
    """A bar on a terminal, a line now and then elsewhere; it only appears on work of more than two seconds."""
    if _quiet:
        yield None
        return
    from jostle.core.progress import Meter

    with Meter(what, sys.stderr) as meter:
        yield meter.advance


@contextmanager
def stages() -> Iterator[Any]:
    """Yield a callback (stage, done, total) that draws one progress bar for each stage."""
    if _quiet:
        yield None
        return
    from jostle.core.progress import Meter

    with ExitStack() as bars:
        meters: dict[str, Meter] = {}

        def advance(what: str, done: int, total: int) -> None:
            if what not in meters:
                bars.close()  # the stage before is over
                meters[what] = bars.enter_context(Meter(what, sys.stderr))
            meters[what].advance(done, total)

        yield advance


PAUSE_S = 0.5  # between two drawings of the table


@contextmanager
def watching(what: str) -> Iterator[dict[str, Any]]:
    """Arguments for `api.run` that show how far it is: nothing when quiet."""
    if quiet():
        yield {}
    elif sys.stderr.isatty():
        with _live_table(what) as watch:
            yield {"watch": watch}
    else:
        with progress(what) as advance:
            yield {"progress": advance}


@contextmanager
def _live_table(what: str) -> Iterator[Callable[[ProgressUpdate], None]]:
    from rich.console import Console
    from rich.live import Live

    begin, drawn = time.monotonic(), 0.0
    with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as live:

        def watch(tick: ProgressUpdate) -> None:
            nonlocal drawn
            now = time.monotonic()
            if now - drawn >= PAUSE_S or tick.done == tick.total:
                drawn = now
                live.update(table_of(what, tick, now - begin), refresh=True)

        yield watch


def table_of(what: str, tick: ProgressUpdate, seconds: float) -> Any:
    """One row a corruption, one column a severity: the value so far, or how many videos are done."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    rows = grid_of(tick)
    severities = list(dict.fromkeys(severity for cells in rows.values() for severity in cells))
    table.add_column("")
    for severity in severities:
        table.add_column(severity, justify="right")
    for corruption, cells in rows.items():
        table.add_row(corruption, *(_cell_text(cells.get(severity)) for severity in severities))
    return Group(Text(title_of(what, tick, seconds)), table)


def title_of(what: str, tick: ProgressUpdate, seconds: float) -> str:
    """Return the title line: share done, speed and remaining time."""
    rate = tick.done / seconds if seconds > 0 else 0.0
    left = f", about {time_of((tick.total - tick.done) / rate)} left" if rate else ""
    failed = f", {tick.failed} set aside" if tick.failed else ""
    limit = f", limited by {LIMITS[tick.limit]}" if tick.limit else ""
    return f"{what}: {tick.done} of {tick.total} {tick.unit}{failed}, {rate:.2f} a second{left}{limit}"


def grid_of(tick: ProgressUpdate) -> dict[str, dict[str, CellProgress]]:
    """The cells that something is known of, by corruption and severity; clean stands by itself."""
    rows: dict[str, dict[str, CellProgress]] = {}
    for name, cell in tick.cells.items():
        if not cell.videos:
            continue
        written, at, place = name.partition("@")
        corruption, _, severity = written.rpartition(":") if "+" not in written else (written, "", "")
        rows.setdefault((corruption or name) + at + place, {})[severity if corruption else ""] = cell
    return rows


def _cell_text(cell: CellProgress | None) -> str:
    if cell is None:
        return ""
    return str(cell.videos) if cell.value is None else percent(cell.value, 1)
