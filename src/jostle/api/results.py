"""Verbs on finished runs: reports, leaderboards, comparisons, gates, and checks of files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from jostle.api.catalogue import load_dataset
from jostle.core.options import takes
from jostle.core.progress import Progress
from jostle.errors import BadValue
from jostle.gate.options import CheckConfig
from jostle.reporting.options import BoardConfig, DiffConfig, RecordConfig, ReportConfig

if TYPE_CHECKING:
    from jostle.datasets.videos import CheckedData
    from jostle.evaluation.recipes.building import BuildCheck
    from jostle.evaluation.runner.verification import RunCheck
    from jostle.gate.verdict import Check
    from jostle.reporting.analysis.run_diff import RunDiff
    from jostle.reporting.analysis.stability import Stabilities


@takes(BoardConfig)
def board(config: BoardConfig) -> Path:
    """Write a static leaderboard: an index and one page a benchmark, which open from disk and need no network.

    Returns:
        The path of the index.

    Raises:
        Tampered: if a record is not as it was written.
        DataError: if a run is not finished.
    """
    from jostle.core.progress import progress_or_bar
    from jostle.reporting.html.leaderboard import write_board

    runs = [config.runs] if isinstance(config.runs, str | Path) else config.runs
    intervals: dict[str, int] = {"draws": config.draws, "seed": config.seed}
    with progress_or_bar("reading runs", config.progress) as callback:
        paths = [Path(run) for run in runs]
        return write_board(paths, Path(config.out), title=config.title, progress=callback, **intervals)


@takes(RecordConfig)
def export_run(config: RecordConfig) -> Path:
    """Write a leaderboard record of a run: a few kilobytes of JSON with a checksum, to be sent to its maintainer.

    Raises:
        DataError: if the run is not finished, or lacks something.
    """
    from jostle.core.progress import progress_or_bar
    from jostle.evaluation.results.record import RunRecord
    from jostle.evaluation.results.run_analysis import analyse_run
    from jostle.reporting.analysis.summary import check_whole, summary_of, write_summary

    record, out = RunRecord.read(config.run), Path(config.out)
    if not config.partial:
        check_whole(record)
    with progress_or_bar("measuring", config.progress) as callback:
        analysis = analyse_run(record, draws=config.draws, seed=config.seed, progress=callback)
        write_summary(summary_of(analysis), out)
    return out


@takes(DiffConfig)
def diff(config: DiffConfig) -> RunDiff:
    """Compare two runs cell by cell, on the videos and cells that both have.

    Raises:
        Incomparable: if they are runs of different benchmarks, or of different ground truths.
        DataError: if one is not finished, or they have no video in common.
    """
    from jostle.core.progress import progress_or_bar
    from jostle.evaluation.results.record import RunRecord
    from jostle.reporting.analysis.run_diff import diff_runs

    records = (RunRecord.read(config.first), RunRecord.read(config.second))
    with progress_or_bar("comparing", config.progress) as callback:
        return diff_runs(
            *records,
            draws=config.draws,
            seed=config.seed,
            any_truth=config.any_truth,
            any_data=config.any_data,
            by=config.by,
            progress=callback,
        )


@takes(CheckConfig)
def check(config: CheckConfig) -> Check:
    """Decide whether a run keeps the conditions of a budget: pass, fail, or undecided where the data cannot tell.

    What the run lacks of its benchmark, videos or cells, makes the conditions that it concerns undecided.

    Raises:
        DataError: if a metric has no value in a run.
        Tampered: if predictions changed since the run wrote them.
        Incomparable: if the runs are of different benchmarks or data.
    """
    from jostle.core.progress import progress_or_bar
    from jostle.evaluation.results.record import RunRecord
    from jostle.gate.budget import read_budget
    from jostle.gate.verdict import check_run

    conditions = read_budget(config.budget)
    record, reference = RunRecord.read(config.run), None if config.against is None else RunRecord.read(config.against)
    with progress_or_bar("checking", config.progress) as callback:
        return check_run(
            record,
            reference,
            conditions,
            cells=None if config.cells is None else list(config.cells),
            draws=config.draws,
            seed=config.seed,
            progress=callback,
        )


def stopped_early(folder: str | Path) -> bool:
    """Return whether a folder is a run that ended as soon as its budget was decided, so that `check` needs no other."""
    from jostle.evaluation.run_folder.folder import RunFolder

    run = RunFolder(Path(folder))
    return run.about.exists() and run.read_about().stopped_early is not None


def stability(runs: Sequence[str | Path]) -> Stabilities:
    """Accuracy and pm-k of runs of frame classifiers, side by side, and what papers print of the same benchmark."""
    from jostle.evaluation.results.record import RunRecord
    from jostle.reporting.analysis.stability import stabilities

    if not runs:
        raise BadValue("name a run")
    return stabilities([RunRecord.read(folder) for folder in runs])


def draw_stability(
    runs: Sequence[str | Path] | Stabilities, out: str | Path, *, formats: Sequence[str] = ("png", "pdf", "svg")
) -> list[Path]:
    """Draw accuracy against pm-k, a point a run, into a folder.

    Raises:
        Incomparable: if the runs are of different benchmarks or ground truths.
        MissingExtra: without matplotlib, for anything but SVG.
    """
    from jostle.reporting.analysis.stability import Stabilities
    from jostle.reporting.charts.save import save_drawing
    from jostle.reporting.charts.scatter import draw_stability as draw

    found = runs if isinstance(runs, Stabilities) else stability(runs)
    return save_drawing(draw(found), Path(out), f"accuracy_against_pm_{found.k}", formats)


def verify(
    folder: str | Path, *, dataset: str | None = None, subset: str | None = None, progress: Progress | None = None
) -> RunCheck | BuildCheck | CheckedData:
    """Check a folder: of a run, of copies that `build` wrote, or of a data set.

    Of the first two every file is compared with its hash; of a data set every video is opened. The result lists what
    is `altered` and what is `lacking`.

    Args:
        dataset: one of `jostle names datasets`, if the folder is a copy of one.
        subset: the part of it; by default the one that results are given for.
        progress: called with (files checked, files in all).

    Raises:
        DataError: if the folder holds nothing that could be checked.
    """
    from jostle.datasets.videos import check_data
    from jostle.evaluation.recipes.building import check_built, is_built
    from jostle.evaluation.runner.verification import check_run

    place = Path(folder)
    if dataset is not None:
        return check_data(load_dataset(dataset, subset, root=place), progress)
    return check_built(place, progress) if is_built(place) else check_run(place)


def track(run: str | Path, to: str, *, folder: str | Path | None = None) -> str:
    """Log a finished run with an experiment tracker; the run itself stays as it is.

    Everything stays on this machine, unless the tracker's own variables (`WANDB_MODE`, `MLFLOW_TRACKING_URI`) name a
    server.

    Args:
        run: a run folder.
        to: `tensorboard`, `wandb` or `mlflow`.
        folder: for what the tracker keeps; by default `tracking` in the run folder.

    Returns:
        How to see it there.

    Raises:
        MissingExtra: if the tracker is not installed.
        ResourceError: if it fails.
    """
    from jostle.evaluation.results.record import RunRecord
    from jostle.reporting.trackers import track_run

    record = RunRecord.read(run)
    return track_run(record, to, record.folder / "tracking" if folder is None else Path(folder))


def card(run: str | Path, out: str | Path, *, licence: str | None = None) -> tuple[Path, Path]:
    """Write a model card and a data set card for the Hugging Face hub; nothing is sent.

    Args:
        run: a run folder.
        out: gets `model/README.md` and `dataset/README.md`.
        licence: as the hub writes it, such as `apache-2.0`; left out where it is not given.

    Raises:
        DataError: if a card is there already.
    """
    from jostle.evaluation.results.record import RunRecord
    from jostle.reporting.cards import write_cards

    return write_cards(RunRecord.read(run), Path(out), licence)


@takes(ReportConfig)
def report(config: ReportConfig) -> Path:
    """Write one page about runs of one benchmark; it opens from disk, with nothing else and no network.

    Returns:
        The path of the page.

    Raises:
        DataError: if a run is not finished, or they are not runs of one benchmark on one ground truth.
    """
    from jostle.core.progress import progress_or_bar
    from jostle.reporting.html.report import write_report

    with progress_or_bar("writing the report", config.progress) as callback:
        return write_report(replace(config, progress=callback))


def view(
    runs: str | Path | Sequence[str | Path],
    *,
    port: int = 0,
    browser: bool = True,
    verbose: bool = False,
    started: Callable[[str], None] | None = None,
) -> None:
    """Show runs in a browser on this machine, until it is interrupted; in a notebook, below the cell, until that ends.

    Args:
        runs: a run folder, or several.
        port: to listen on; 0 for any that is free.
        browser: whether to open one.
        verbose: whether the server says on stderr what fails.
        started: called with the address once it answers.

    Raises:
        DataError: if a folder is no run.
        ResourceError: if the port is taken.
        MissingExtra: if the packages of the viewer are not installed.
    """
    from jostle.core.progress import in_notebook
    from jostle.reporting.viewer.server import serve

    paths = [runs] if isinstance(runs, str | Path) else runs
    if browser and in_notebook():
        _inline([Path(run) for run in paths], port)
        return

    def print_address(address: str) -> None:
        if started is not None:
            started(address)
        if browser:
            _open(address)

    serve([Path(run) for run in paths], port=port, verbose=verbose, started=print_address)


def _inline(runs: list[Path], port: int) -> None:
    """Serve from a thread that ends with the notebook, and show the page in a frame.

    The address has `localhost`, as the notebook's usually does: browsers send no cookie to a frame of another site.
    """
    import queue
    import threading

    from IPython.display import HTML, display

    from jostle.reporting.viewer.server import serve

    addresses: queue.Queue[str | BaseException] = queue.Queue()

    def work() -> None:
        try:
            serve(runs, port=port, host="localhost", framed=True, started=addresses.put)
        except BaseException as error:  # raised again in the caller's thread
            addresses.put(error)

    threading.Thread(target=work, daemon=True, name="jostle viewer").start()
    address = addresses.get()
    if isinstance(address, BaseException):
        raise address
    frame = f'<iframe src="{address}" width="100%" height="720" style="border:1px solid rgba(128,128,128,.4)"></iframe>'
    display(HTML(f'{frame}<p><a href="{address}" target="_blank" rel="noreferrer">open in a tab of its own</a></p>'))


def _open(address: str) -> None:
    """Open a browser without waiting for it; a machine that has none is left alone."""
    import threading
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
