"""The live table of a running benchmark."""

from __future__ import annotations

import io

from rich.console import Console

from jostle.cli.console import grid_of, table_of, title_of
from jostle.evaluation.runner.progress import CellProgress, ProgressUpdate

CELLS = {
    "clean": CellProgress(3, 2.0, 3),
    "kinetics-c/fog:1": CellProgress(3, 1.0, 3),
    "kinetics-c/fog:5": CellProgress(2),
    "black_frame:1@at:50%x1": CellProgress(1),
    "fog:3+shot_noise:2": CellProgress(1),
    "kinetics-c/rain:1": CellProgress(),
}


def test_cells_are_grouped_by_corruption_and_severity() -> None:
    rows = grid_of(ProgressUpdate(3, 8, 1, CELLS))
    assert {name: list(cells) for name, cells in rows.items()} == {
        "clean": [""],
        "kinetics-c/fog": ["1", "5"],
        "black_frame@at:50%x1": ["1"],
        "fog:3+shot_noise:2": [""],
    }


def test_table_has_partial_scores_or_counts() -> None:
    update = ProgressUpdate(3, 8, 1, CELLS)
    console = Console(file=io.StringIO(), width=100)
    console.print(table_of("running small-p", update, 6.0))
    lines = [" ".join(line.split()) for line in console.file.getvalue().splitlines()]
    assert lines[0] == "running small-p: 3 of 8 videos, 1 set aside, 0.50 a second, about 10 s left"
    assert "clean 66.7" in lines
    assert "kinetics-c/fog 33.3 2" in lines


def test_no_remaining_time_before_the_first_video() -> None:
    assert title_of("x", ProgressUpdate(0, 8, 0, {}), 0.0) == "x: 0 of 8 videos, 0.00 a second"


def test_title_names_the_bottleneck() -> None:
    title = title_of("x", ProgressUpdate(4, 8, 0, {}, limit="model"), 2.0)
    assert title == "x: 4 of 8 videos, 2.00 a second, about 2 s left, limited by the model"
