"""The pages of results on film agree with the records, and their figures with their tables."""

from __future__ import annotations

import re

import pytest
from studies.figures import FIGURES, Figure, draw, draw_points
from studies.film_stability import CLASSIFIERS, SUBJECTS, TABLES, shares
from studies.harness import RESULT_PAGES, Results
from studies.tables import fill_page

from studies import adaptation, film_cuts, film_detection, film_recognition, film_tables

RESULTS = Results()
PAGE = (RESULT_PAGES / "on-film.md").read_text(encoding="utf-8")


def test_tables_of_the_page_match_the_record() -> None:
    assert sorted(re.findall(r"<!-- film: (\w+) -->", PAGE)) == sorted(TABLES)
    assert fill_page(PAGE, RESULTS) == PAGE


def test_every_classifier_was_measured_once_on_the_same_anchors() -> None:
    records = RESULTS.film_stability
    assert sorted(record["run"]["network"] for record in records) == sorted(CLASSIFIERS)
    anchors = [[anchor for anchor, _, _ in record["anchors"]] for record in records]
    assert all(one == anchors[0] for one in anchors)
    assert {anchor.rpartition("/")[0] for anchor in anchors[0]} == set(SUBJECTS)
    assert f"{len(anchors[0])} in all" in PAGE


def test_no_classifier_is_more_stable_than_accurate() -> None:
    assert all(shares(record)[1] <= shares(record)[0] for record in RESULTS.film_stability)


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.page)
def test_figures_are_drawn_from_the_tables_of_their_pages(figure: Figure) -> None:
    assert (RESULT_PAGES / figure.file).read_text(encoding="utf-8") == draw(figure)
    assert f"]({figure.file})" in (RESULT_PAGES / f"{figure.page}.md").read_text(encoding="utf-8")


def test_a_figure_has_a_dot_and_an_interval_for_each_row() -> None:
    drawing = draw_points([("a < b", 10, 5, 20), ("c", 90, 80, 95)], "share, %")
    assert drawing.count("<circle") == drawing.count('class="reach"') == 2
    assert "a &lt; b" in drawing


CLIPS = film_tables.ClipAnswers(RESULTS)
FILM_PAGES = ("recognisers-on-film", "detectors-on-film", "what-helps")


def test_tables_of_recognisers_and_detectors_match_the_records() -> None:
    pages = [(RESULT_PAGES / f"{name}.md").read_text(encoding="utf-8") for name in FILM_PAGES]
    named = [name for page in pages for name in re.findall(r"<!-- on film: (\w+) -->", page)]
    assert sorted(named) == sorted(film_tables.TABLES)
    assert [fill_page(page, RESULTS) for page in pages] == pages


def test_every_run_on_film_was_measured_once() -> None:
    measured = {
        film_recognition.FilmRun: RESULTS.film_recognition,
        film_detection.FilmDetectorRun: RESULTS.film_detection,
        adaptation.AdaptationRun: RESULTS.film_adaptation,
        film_cuts.CutRun: RESULTS.film_cuts,
    }
    runs = {kind: sorted(map(str, (kind(**record["run"]) for record in records))) for kind, records in measured.items()}
    assert runs[film_recognition.FilmRun] == sorted(map(str, film_recognition.study_runs()))
    assert runs[film_detection.FilmDetectorRun] == sorted(map(str, film_detection.study_runs()))
    again = [run for run in film_detection.study_runs() if run.features == "shifted" and run.seed == 0]
    mended = [film_detection.FilmDetectorRun(**record["run"]) for record in RESULTS.film_mended]
    assert sorted(map(str, mended)) == sorted(map(str, again))
    second = ("as is", "bn, episodic", "bn, online", "sar, online")  # measured with a second seed as well
    adapted = [run for run in adaptation.study_runs("film_recognition") if run.seed == 0]
    adapted += [adaptation.AdaptationRun("clean", way, 1) for way in second]
    assert runs[adaptation.AdaptationRun] == sorted(map(str, adapted))
    assert runs[film_cuts.CutRun] == sorted(str(film_cuts.CutRun(way)) for way in film_cuts.WAYS)


@pytest.mark.parametrize("task", adaptation.RECORDS)
def test_adaptation_runs_of_a_task_are_planned_and_unique(task: str) -> None:
    measured = [adaptation.AdaptationRun(**record["run"]) for record in getattr(RESULTS, adaptation.RECORDS[task])]
    assert len(set(measured)) == len(measured)
    assert set(measured) <= set(adaptation.study_runs(task))


@pytest.mark.parametrize("where", ["puppet", "film"])
def test_damage_everywhere_is_listed_separately(where: str) -> None:
    row = next(line for line in film_tables.help_detection_table(RESULTS).splitlines() if line.startswith("| as is"))
    (record,) = RESULTS.of(f"{where}_detection_adaptation", treatment="clean", way="as is")
    scores = [score for cell, score in record["cells"].items() if "everywhere" in cell]
    assert len(scores) == 4
    assert f"| {25 * sum(scores):.1f} |" in row


def test_intervals_are_over_groups_of_clips() -> None:
    assert len(CLIPS.owners) == 80
    assert len(set(CLIPS.owners)) == 39
    same = [i for i, owner in enumerate(CLIPS.owners) if owner == CLIPS.owners[0]]
    assert (CLIPS.draws[:, same] == CLIPS.draws[:, same[:1]]).all()


def test_both_damage_finders_judged_the_same_frames() -> None:
    counts_by_network = {record["network"]: record["found"] for record in RESULTS.film_found}
    assert set(counts_by_network) == set(film_tables.FINDERS) == set(film_detection.TREATMENTS_OF)
    first, second = counts_by_network.values()
    assert {way: list(cells) for way, cells in first.items()} == {way: list(cells) for way, cells in second.items()}
    for cell, counts in first["mended"].items():
        assert counts[1::2] == second["mended"][cell][1::2]  # damaged frames, and others


def test_values_of_several_seeds_are_in_order() -> None:
    row = next(line for line in film_tables.help_table(RESULTS).splitlines() if line.startswith("| bn, episodic"))
    shares = {one["run"]["seed"]: one["clean"] for one in RESULTS.film_adaptation if one["run"]["way"] == "bn, episodic"
              and one["run"]["treatment"] == "clean"}  # fmt: skip
    assert f"| {100 * shares[0]:.1f} / {100 * shares[1]:.1f} |" in row
