"""Comparison of two runs: paired by video on the same bootstrap draws, otherwise refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import jostle
from helpers.synthetic_runs import write_run
from jostle.errors import DataError
from jostle.evaluation.results.comparison import analyse_runs, compared
from jostle.evaluation.results.record import RunRecord


def test_paired_differences_equal_those_of_compare(detection: RunRecord, robust_detection: RunRecord) -> None:
    one, other = analyse_runs([detection, robust_detection], draws=80)
    comparison = compared(one, other)
    cell = comparison.cells[0]
    scores = [
        jostle.score(run.predictions(cell.what), run.annotations, protocol="thumos14")
        for run in (detection, robust_detection)
    ]
    expected = jostle.compare(*scores, bootstrap=80)
    assert expected.interval is not None
    assert cell.difference.value == pytest.approx(expected.average_map)
    assert cell.difference.interval == pytest.approx(expected.interval.average_map)
    assert cell.share_below == pytest.approx(expected.share_worse)
    assert comparison.relative.difference.value == pytest.approx(
        robust_detection.scores.relative_robustness - detection.scores.relative_robustness
    )
    assert comparison.corrupted.clear
    assert comparison.clean.difference.value == 0
    assert not comparison.clean.clear


def test_run_against_itself_has_no_difference(recognition: RunRecord) -> None:
    comparison = compared(*analyse_runs([recognition, recognition], draws=20))
    assert all(row.difference.value == 0 and row.difference.interval is None for row in comparison.cells)


def test_only_shared_videos_are_compared(detection: RunRecord, tmp_path: Path) -> None:
    class Partial(RunRecord):
        def predictions(self, cell: str) -> Any:
            return self.task.restrict(super().predictions(cell), detection.annotations.videos[:7])

    other = Partial(detection.folder, detection.about, detection.scores)
    one, two = analyse_runs([detection, other], draws=10)
    assert one.videos == two.videos == detection.annotations.videos[:7]


def test_incomparable_runs_are_refused(detection: RunRecord, recognition: RunRecord, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="runs of different benchmarks, 'made-detection' and 'made-recognition'"):
        analyse_runs([detection, recognition])
    other = RunRecord.read(write_run(tmp_path / "fewer", videos=11))
    with pytest.raises(DataError, match="different ground truths, sha256:"):
        analyse_runs([detection, other])
    newer = replace(detection, about=replace(detection.about, fingerprint="sha256:0123456789abcdef"))
    with pytest.raises(DataError, match="different versions of a benchmark"):
        analyse_runs([detection, newer])
    one, two = analyse_runs([detection, detection])
    with pytest.raises(DataError, match="not of the same videos and draws"):
        compared(one, replace(two, videos=two.videos[:2]))
