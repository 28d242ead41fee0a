"""Tables in the layouts of the papers: the printed numbers and well-formed LaTeX."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.synthetic_runs import HOSTILE
from jostle.core.types import Truth, VideoLabels
from jostle.core.types.columns import Floats
from jostle.errors import DataError
from jostle.evaluation.recipes.recipe import Recipe, benchmarks
from jostle.evaluation.results.comparison import analyse_runs
from jostle.evaluation.results.record import RunRecord
from jostle.evaluation.results.run_analysis import Estimate, RunAnalysis
from jostle.evaluation.run_folder.metadata import About, Content
from jostle.evaluation.run_folder.scores import CellScore, CleanDetails, Counted, Coverage, Scores
from jostle.evaluation.tasks.task import StoredTruth, tasks
from jostle.reporting.analysis.paper_tables import Layout, NumberColumn, paper_layouts, write_paper_tables

# Printed by Zeng et al. (2024), tables 1 and C, and by Yi et al. (2021), table 1.
THUMOS = {
    "ActionFormer": (
        61.53,
        "54.89 44.53 29.43 58.96 57.39 55.13 54.14 47.84 41.01 58.89 54.09 46.36 57.99 52.07 46.43",
    ),
    "TriDet": (61.33, "55.61 46.74 33.08 59.94 57.95 55.90 54.63 48.94 43.35 59.30 54.20 47.65 58.56 52.90 46.88"),
}
FEWER = {model: (clean, row.rpartition(" ")[0]) for model, (clean, row) in THUMOS.items()}
KINETICS = {
    "S3D": (69.4, "50.8 51.5 47.6 46.4 62.0 56.8 54.9 68.3 62.8 59.1 59.9 62.9"),
    "TimeSformer": (82.2, "74.7 70.5 55.3 62.7 76.1 69.6 70.8 81.1 76.5 73.0 71.5 75.4"),
}


def counted(benchmark: str, ending: str = "") -> list[str]:
    return [cell.name for cell in benchmarks[benchmark].cells if cell.counted and cell.name.endswith(ending)]


def analyses_of(
    benchmark: str, cells: Sequence[str], printed: Mapping[str, tuple[float, str]], videos: int = 0
) -> list[RunAnalysis]:
    recipe = benchmarks[benchmark]
    analyses = []
    for model, (clean, row) in printed.items():
        values = np.array([clean, *map(float, row.split())]) / 100
        record = RunRecord(Path(model), about_of(recipe, model), scores_of(recipe, cells, values, videos))
        annotations = {"detection": Truth((), (), [], [], [], []), "recognition": VideoLabels((), (), [], [])}
        stored = StoredTruth[Any](annotations[recipe.task], None)
        vars(record)["task"] = tasks[recipe.task](record.about.content, lambda stored=stored: stored)
        empty = np.zeros((len(values), 0))
        analyses.append(
            RunAnalysis(record, ("clean", *cells), (), (), values, empty, empty, np.zeros((0, len(values))))
        )
    return analyses


def about_of(recipe: Recipe, model: str) -> About:
    return About(
        benchmark=recipe.name,
        fingerprint=recipe.fingerprint,
        content=Content.of(recipe.content()),
        model=model,
        seed=0,
        dataset=recipe.dataset,
        subset=recipe.subset,
        truth="sha256:0",
        missing=(),
        videos=0,
        classes=(),
        versions={},
        format=1,
    )


def scores_of(recipe: Recipe, cells: Sequence[str], values: Floats, videos: int) -> Scores:
    cell_scores = tuple(CellScore(cell, value) for cell, value in zip(cells, values[1:].tolist(), strict=True))
    means = (float(values[1:].mean()), None, None, None, None)
    counted, coverage = Counted(len(cells), len(cells)), Coverage(0, videos)
    return Scores(1, recipe.measure, float(values[0]), CleanDetails(), cell_scores, (), *means, counted, coverage)


def numbers(layout: Layout, head: str) -> list[str]:
    column = next(number for number in layout.numbers if number.head == head)
    return [f"{100 * (one.value or 0):.2f}" for one in column.values]


@pytest.fixture(scope="module")
def thumos() -> list[Layout]:
    return paper_layouts(analyses_of("thumos14-c", counted("thumos14-c"), THUMOS))


@pytest.fixture(scope="module")
def kinetics() -> list[Layout]:
    return paper_layouts(analyses_of("kinetics-c", counted("kinetics-c", ":3"), KINETICS))


def test_table_1_of_thumos14_c(thumos: list[Layout]) -> None:
    table = thumos[0]
    assert table.file == "thumos14-c-table-1"
    assert numbers(table, "Corrupted") == ["50.61", "51.71"]
    assert numbers(table, "Relative robustness") == ["82.25", "84.31"]
    text = table.latex()
    assert r"ActionFormer & \textbf{61.53} & 50.61 & 82.25 \\" in text
    assert r"TriDet & 61.33 & \textbf{51.71} & \textbf{84.31} \\" in text
    assert r"THUMOS14-C (mAP@0.5, \%)" in text


def test_published_rows_are_not_ranked_with_measured_ones(thumos: list[Layout]) -> None:
    table = thumos[-1]
    assert table.file == "thumos14-c-tables-1-2"
    names = [row[0] for row in table.rows]
    assert set(names[:15]) == {
        "BasicTAD", "E2E-TAD", "TemporalMaxer", "ActionFormer", "AFSD", "TriDet", "VSGN",
    }  # fmt: skip
    assert names[15:] == ["ActionFormer", "TriDet"]
    text = table.latex()
    check_latex(text)
    assert r"BasicTAD & SlowOnly &  & 59.17 & 37.72 & 63.75 \\" in text
    assert r"VSGN & I3D &  & 31.85 & 30.08 & 94.44 \\" in text
    assert r"TriDet & VideoMAEv2 & FrameDrop + TRC & 75.60 & 68.28 & 90.31 \\" in text  # higher, and not bold
    assert r"ActionFormer &  &  & \textbf{61.53} & 50.61 & 82.25 \\" in text
    lines = text.splitlines()
    headings = [i for i, line in enumerate(lines) if r"\textit" in line]
    assert [re.search(r"textit\{(.*)\}\}", lines[i]).group(1) for i in headings] == [
        "THUMOS14-C, as printed (Zeng et al. 2024, table 1)",
        "ActivityNet-v1.3-C, as printed (Zeng et al. 2024, table 2)",
        "THUMOS14-C, measured",
    ]
    assert [b - a for a, b in pairwise(headings)] == [9 + 2, 6 + 2]


def test_runs_of_other_corruptions_have_no_published_rows(kinetics: list[Layout]) -> None:
    assert not any("1-2" in layout.file for layout in kinetics)
    cells = counted("puppets-c")
    assert paper_layouts(analyses_of("puppets-c", cells, THUMOS))[-1].parts[-1][0].endswith(", measured")
    assert not any("1-2" in layout.file for layout in paper_layouts(analyses_of("puppets-c", cells[:-1], FEWER)))


def test_table_c_of_thumos14_c(thumos: list[Layout]) -> None:
    text = thumos[1].latex()
    heads = re.findall(r"\\multicolumn\{3\}\{c\}\{([^}]*)\}", text)
    assert heads == ["Black frame", "Packet loss", "Overexposure", "Motion blur", "Occlusion"]
    assert text.count(r"\cmidrule") == 5
    assert "Model & " + " & ".join(["L1 & L2 & L3"] * 5) in text
    row = next(line for line in text.splitlines() if line.startswith("ActionFormer"))
    assert re.findall(r"\d+\.\d\d", row) == THUMOS["ActionFormer"][1].split()


def test_table_1_of_mini_kinetics_c(kinetics: list[Layout]) -> None:
    table = kinetics[2]
    assert [number.head for number in table.numbers[:3]] == ["Clean", "mPC", "rPC"]
    assert [f"{float(text):.1f}" for text in numbers(table, "mPC")] == ["56.9", "71.4"]
    assert [f"{float(text):.1f}" for text in numbers(table, "rPC")] == ["82.0", "86.9"]
    assert [number.group for number in table.numbers] == [""] * 3 + ["Spatial"] * 6 + ["Temporal"] * 6
    text = table.latex()
    assert r"\multicolumn{6}{c}{Spatial} & \multicolumn{6}{c}{Temporal}" in text
    assert text.count(r"\toprule") == text.count(r"\bottomrule") == 1


def test_gammas_are_by_family(kinetics: list[Layout]) -> None:
    absolute, relative = kinetics[3:]
    assert [number.head for number in relative.numbers] == ["Spatial", "Temporal", "Mean"]
    spatial = sum(map(float, KINETICS["S3D"][1].split()[:6])) / 6
    assert float(numbers(relative, "Spatial")[0]) == pytest.approx(100 * spatial / 69.4, abs=0.01)
    assert float(numbers(absolute, "Spatial")[0]) == pytest.approx(100 - (69.4 - spatial), abs=0.01)


def test_many_cells_are_wrapped() -> None:
    layouts = paper_layouts(analyses_of("ucf101-p", counted("ucf101-p"), {"one": (80.0, " ".join(["60"] * 90))}))
    text = layouts[1].latex()
    assert text.count("Model & L1") == 6  # three perturbations of five severities side by side
    widths = {line.count("&") for line in text.splitlines() if line.endswith(r"\\") and "multicolumn" not in line}
    assert widths == {15}
    assert [number.head for number in layouts[3].numbers] == [
        "Noise", "Blur", "Digital", "Temporal", "Camera", "Mean",
    ]  # fmt: skip
    assert r"\textbf" not in text  # nothing is best of one


def test_missing_scores_are_dashes_and_never_best() -> None:
    complete, other = analyses_of("thumos14-c", counted("thumos14-c"), THUMOS)
    short = RunAnalysis(
        other.record, other.cells[:-1], (), (), other.value[:-1], *(other.by_class[:-1],) * 2, other.drawn[:, :-1]
    )
    first, levels = paper_layouts([complete, short])[:2]
    assert "TriDet & 61.33 & -- & -- \\\\" in first.latex()
    assert r"ActionFormer & \textbf{61.53} & \textbf{50.61} & \textbf{82.25} \\" in first.latex()
    assert next(line for line in levels.latex().splitlines() if line.startswith("TriDet")).endswith(r"& -- \\")


def test_captions_state_incomplete_coverage(thumos: list[Layout], kinetics: list[Layout]) -> None:
    assert "of 15 cells" not in thumos[0].caption
    assert r"Mini Kinetics-C (top-1 accuracy, \%, 12 of 60 cells)" in kinetics[2].caption
    assert "0 of 213 videos" in paper_layouts(analyses_of("thumos14-c", counted("thumos14-c"), THUMOS, 213))[0].caption


@pytest.mark.fault("F91")
def test_F91_clean_score_of_zero_has_no_ratio() -> None:
    layouts = paper_layouts(analyses_of("thumos14-c", counted("thumos14-c"), {"zero": (0.0, " ".join(["0"] * 15))}))
    assert "zero & 0.00 & 0.00 & --" in layouts[0].latex()
    assert "nan" not in "".join(layout.latex() for layout in layouts)


@pytest.mark.fault("F87")
@pytest.mark.parametrize("name", [*HOSTILE, "[3pt]", "*", r"\input{/etc/passwd}"])
def test_F87_names_are_escaped(name: str) -> None:
    one = Layout("x", "", ("Model",), ((name,), ("b",)), (NumberColumn("a_b", (Estimate(None),) * 2),))
    text = one.latex()
    row = text.splitlines()[text.splitlines().index(r"\midrule") + 1]
    assert not re.match(r"\s*[\[*]", row)  # TeX would read it as an argument of the line before
    assert r"\input{" not in row
    assert r"a\_b" in text
    bare = re.sub(r"\\([&%$#_{}]|text\w+\{\})", "", row.removesuffix(r" \\").removeprefix("{}"))
    assert not re.search(r"[\\&%$#_{}~^]", bare.replace(" & ", "", 1))


def test_written_files_are_valid_latex(detection: RunRecord, robust_detection: RunRecord, tmp_path: Path) -> None:
    analyses = analyse_runs([detection, robust_detection], draws=30)
    paths = write_paper_tables(analyses, tmp_path / "deep" / "tex", intervals=True)
    assert [path.stem for path in paths] == [
        "thumos14-c-table-1", "thumos14-c-table-c", "mini-kinetics-c-table-1", "ucf101-p-absolute", "ucf101-p-relative",
        "tables",
    ]  # fmt: skip
    for path in paths:
        check_latex(path.read_text(encoding="utf-8"))
    low, high = analyses[0].corrupted().interval or (0, 0)
    assert rf"{{\scriptsize [{100 * low:.2f}, {100 * high:.2f}]}}" in paths[0].read_text()
    assert re.findall(r"\\input\{(.*)\}", paths[-1].read_text()) == [path.stem for path in paths[:-1]]
    engine = shutil.which("pdflatex")
    if engine:
        subprocess.run(
            [engine, "-halt-on-error", "-interaction=nonstopmode", "tables.tex"], cwd=paths[0].parent, check=True
        )


def test_frame_runs_have_their_own_table(frames: RunRecord, tmp_path: Path) -> None:
    texts = {path.stem: path.read_text() for path in write_paper_tables(analyse_runs([frames]), tmp_path)}
    check_latex(texts["pm-k"])
    assert r"\input{pm-k}" in texts["tables"]


def test_run_without_counted_cells_is_refused(detection: RunRecord, tmp_path: Path) -> None:
    bare = replace(detection, scores=replace(detection.scores, cells=(), mean_corrupted=None))
    with pytest.raises(DataError, match="no cell counts"):
        write_paper_tables(analyse_runs([bare]), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def check_latex(text: str) -> None:
    """Check that environments and braces close and that every tabular row has all its columns."""
    opened, closed = (re.findall(word + r"\{(.*?)\}", text) for word in (r"\\begin", r"\\end"))
    assert opened[::-1] == closed  # nested, never side by side
    plain = re.sub(r"\\[{}]", "", text)
    assert plain.count("{") == plain.count("}")
    for form, body in re.findall(r"\\begin\{tabular\}\{(\w+)\}(.*?)\\end\{tabular\}", text, re.DOTALL):
        for line in body.splitlines():
            if line.endswith(r"\\"):
                spans = sum(int(span) - 1 for span in re.findall(r"\\multicolumn\{(\d+)\}", line))
                assert len(re.findall(r"(?<!\\)&", line)) + 1 + spans == len(form), line
