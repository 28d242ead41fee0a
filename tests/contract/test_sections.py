"""Contract that every registered section of the report fulfils, and that a plugin's takes its place among them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import jostle
from helpers import small_objects, small_recognition, small_run
from helpers.synthetic_runs import FACTS, HOSTILE, write_run
from jostle.core import plugins
from jostle.errors import BadValue, UnknownName
from jostle.evaluation.results.comparison import analyse_runs
from jostle.evaluation.results.record import RunRecord
from jostle.extend import Drawing, Figure, Report, ReportedRun, Section, section
from jostle.gate.budget import Budget, Condition
from jostle.gate.verdict import check_run
from jostle.reporting.html.section import compose_sections, sections, sections_in_order

ORDER = (
    *("verdict", "gate", "map", "severity", "answers", "windows", "classes", "errors", "videos", "runs", "confusions"),
    *("objects", "stability", "offsets", "breaking", "published", "making"),
)


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> list[Report]:
    """Two runs of every task, with a gate where there is one, and one that was probed."""
    root = tmp_path_factory.mktemp("sections")
    folders = []
    for task in FACTS:
        cells = () if task == "frames" else ("thumos14-c/black_frame:1", "thumos14-c/black_frame:3")
        benchmark = "thumos14-c" if task == "detection" else ""
        runs = (
            write_run(root / f"{task}-{i}", task, videos=6, cells=cells, weakness=1 / i, benchmark=benchmark)
            for i in (1, 2)
        )
        folders.append(tuple(runs))
    for folder in ("films", "clips"):
        (root / folder).mkdir()
    folders.append((small_objects.run(small_recognition.write_videos(root / "films"), root / "objects").folder,))
    films = small_run.write_videos(root / "clips")
    small_run.run(films, root / "probed")
    small_run.probe(films, root / "probed")
    folders.append((root / "probed",))
    return [_report(both) for both in folders]


def _report(folders: tuple[Path, ...]) -> Report:
    records = [RunRecord.read(folder) for folder in folders]
    checked = records[0].task.name == "recognition"
    budget = Budget((Condition("clean", at_least=0.1),))
    check = check_run(records[0], None, budget, draws=20) if checked else None
    analyses = analyse_runs(records, draws=5)
    return Report(tuple(ReportedRun(i, f"run {i}", one, check) for i, one in enumerate(analyses)))


def test_all_sections_are_listed_in_order() -> None:
    assert tuple(one.name for one in sections_in_order()) == ORDER
    assert jostle.names("sections") == sorted(ORDER)


@pytest.mark.parametrize("name", ORDER)
def test_a_section_has_something_to_say_or_is_left_out(name: str, reports: list[Report]) -> None:
    kind = sections[name]
    assert kind.title
    assert kind.compose.__doc__
    found = [kind.compose(report) for report in reports]
    assert any(found)
    assert all(one is None or one.blocks for one in found)


def test_names_of_figures_are_distinct(reports: list[Report]) -> None:
    """A figure's name is its file's, and its address in the page."""

    def names(blocks: object) -> Iterator[str]:
        for one in blocks if isinstance(blocks, tuple) else ():
            if isinstance(one, Figure):
                yield one.name
            for inner in ("block", "blocks", "maps", "details"):
                held = getattr(one, inner, ())
                yield from names(held if isinstance(held, tuple) else (held,))

    for report in reports:
        found = [name for one in compose_sections(report) for name in names(one.blocks)]
        assert len(found) == len(set(found))


@pytest.fixture
def own_sections() -> Iterator[None]:
    """Sections that a test registers are gone behind it."""
    before, parts = dict(sections._entries), dict(plugins._parts)
    yield
    sections._entries.clear()
    sections._entries.update(before)
    plugins._parts.clear()
    plugins._parts.update(parts)


@pytest.mark.usefixtures("own_sections")
def test_a_section_of_a_plugin_stands_behind_the_one_it_names(tmp_path: Path) -> None:
    @section("spread", after="classes", title=HOSTILE[0], short="Spread")
    def spread(report: Report) -> Section:
        drawing = Drawing(40, 20, "<b>a dot</b>")
        drawing.dot(20, 10, "mark run0")
        words = f"{len(report.runs[0].analysis.counted)} cells & more of {report.names[0]} {HOSTILE[0]}"
        return Section(words, Figure("spread-0", "A dot", drawing))

    @section("nothing", after="spread", title="Nothing")
    def nothing(report: Report) -> None:
        return None

    @section("last", after="making", title="Last")
    def last(report: Report) -> Section:
        return Section("words", title="Another title")

    order = [one.name for one in sections_in_order()]
    at = order.index("classes")
    assert order[at : at + 4] == ["classes", "spread", "nothing", "errors"]
    assert order[-1] == "last"
    page = jostle.report([write_run(tmp_path / "run", videos=3)], tmp_path / "r.html", draws=0).read_text("utf-8")
    assert page.index('<section id="classes"') < page.index('<section id="spread"') < page.index('<section id="errors"')
    assert '<a href="#spread">Spread</a>' in page
    assert '<h2 id="last-title">Another title</h2>' in page
    assert 'id="nothing"' not in page
    assert "<p>4 cells &amp; more of" in page
    assert 'id="figure-spread-0"' in page
    assert HOSTILE[0] not in page
    assert "<b>a dot" not in page


@pytest.mark.usefixtures("own_sections")
def test_wrong_sections_are_refused(reports: list[Report]) -> None:
    with pytest.raises(BadValue, match="two sections are called 'map'"):
        section("map", after="gate", title="Map")(lambda report: None)
    for name in ("content", "a b", "map-title", ""):
        with pytest.raises(BadValue, match="a section cannot be called"):
            section(name, after="gate", title="Map")

    @section("failing", after="making", title="Failing")
    def failing(report: Report) -> Section:
        raise KeyError("oops")

    with pytest.raises(BadValue, match=r"section failing of .* failed \(KeyError: 'oops'\)"):
        compose_sections(reports[0])
    del sections._entries["failing"]
    section("wrong", after="making", title="Wrong")(lambda report: "words")  # type: ignore[arg-type, return-value]
    with pytest.raises(BadValue, match="returned str; it must return a Section, or None"):
        compose_sections(reports[0])
    del sections._entries["wrong"]
    section("one", after="other", title="One")(lambda report: None)
    with pytest.raises(UnknownName, match="no section is called 'other'"):
        sections_in_order()
    section("other", after="one", title="Other")(lambda report: None)
    with pytest.raises(BadValue, match="section one stands after other, which stands after it"):
        sections_in_order()
