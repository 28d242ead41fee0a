"""HTML report: self-contained, safe against untrusted text, and available for every task."""

from __future__ import annotations

import json
import re
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import jostle
from helpers.numpy_extractor import write_video
from helpers.synthetic_runs import HOSTILE, write_run
from jostle.errors import BadValue, DataError, MissingExtra
from jostle.evaluation.results.run_analysis import Drop, losing
from jostle.evaluation.run_folder.metadata import Step
from jostle.reporting.sections.map import describe_step

LIMIT = 5_000_000


class Reader(HTMLParser):
    """HTML parser that collects tags, addresses and texts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.texts: dict[str, dict[str, str]] = {}
        self._inside = ""

    @property
    def text(self) -> str:
        """All words, with single spaces."""
        return " ".join("".join(self.words).split())

    @property
    def ids(self) -> list[str]:
        return [str(attributes["id"]) for _, attributes in self.tags if attributes.get("id")]

    @property
    def sections(self) -> list[str]:
        return [str(attributes["id"]) for tag, attributes in self.tags if tag == "section"]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = dict(attrs).get("id") or "" if tag == "script" else ""

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "texts":
            self.texts = json.loads(data)
        self.words.append(data)


def check_self_contained(path: Path) -> Reader:
    """Check that a page loads nothing, runs no foreign script, has no dead links and no undefined numbers."""
    page, text = Reader(), path.read_text(encoding="utf-8")
    page.feed(text)
    assert len(text) < LIMIT
    assert [tag for tag, _ in page.tags].count("script") == 2
    for tag, attributes in page.tags:
        assert tag not in {"link", "iframe", "object", "embed", "base"}
        assert not any(name.startswith("on") or name == "style" for name in attributes), (tag, attributes)
        for name in ("src", "href"):
            address = attributes.get(name)
            assert address is None or address.startswith(("data:", "#")), (tag, address)
    assert len(page.ids) == len(set(page.ids))
    links = {str(attributes["href"]) for tag, attributes in page.tags if tag == "a"}
    assert links <= {f"#{id_}" for id_ in page.ids}
    assert not re.search(r"\bnan\b|\binf\b", "".join(page.words))
    return page


def test_a_run_of_detection_with_pictures(tmp_path: Path) -> None:
    write_run(tmp_path / "run", source=write_video(tmp_path / "film.mkv", 580))
    out = jostle.report(tmp_path / "run", tmp_path / "report.html", csv=tmp_path / "cells.csv", draws=50)
    assert out == tmp_path / "report.html"
    page = check_self_contained(out)
    assert "of its clean mAP@0.3:0.7" in page.text
    assert "12 of 12 videos, 4 of 4 cells" in page.text
    details = [
        attributes["id"] for tag, attributes in page.tags if tag == "article" and attributes.get("class") == "detail"
    ]
    assert len(details) == 4  # one per square
    pictures = [attributes for tag, attributes in page.tags if tag == "img"]
    assert len(pictures) == 6 * 2 * 8  # the worst six, clean and corrupted
    assert sum("damaged" in str(attributes["alt"]) for attributes in pictures) >= 6
    assert sum(tag == "video" for tag, _ in page.tags) == 6
    rows = (tmp_path / "cells.csv").read_text().splitlines()
    assert len(rows) == 1 + 5 + 1
    # order of the sections
    assert page.sections == ["verdict", "map", "severity", "classes", "errors", "videos", "making"]


@pytest.mark.parametrize("task", ["questions", "moments"])
def test_language_runs_have_their_own_section(task: str, tmp_path: Path) -> None:
    cells = ("thumos14-c/black_frame:3", "ucf101-p/reverse_sampling:3")
    for name, weakness in (("one", 1.0), ("two", 0.4)):
        write_run(tmp_path / name, task, cells=cells, weakness=weakness)
    page = check_self_contained(jostle.report([tmp_path / "one", tmp_path / "two"], tmp_path / "r.html", draws=20))
    section = {"questions": "answers", "moments": "windows"}[task]
    assert page.sections == ["verdict", "map", section, "classes", "videos", "runs", "making"]
    assert "one: Levels to hold the clean" in page.text
    if task == "questions":
        assert "Answers, two (chance 33.3, without video 33.3, with one frame 33.3)" in page.text
        assert "What each type of question loses" in page.text
        assert "unreadable" in page.text
        assert "of its questions" in page.text.lower()
    else:
        assert "What each length of moment loses" in page.text
        assert "Lost: Sentence" in page.text
        assert "figure-video-0-0" in page.ids  # the timeline


def test_missing_videos_leave_a_note(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    shutil.rmtree(tmp_path / "videos")
    page = check_self_contained(jostle.report([tmp_path / "run"], tmp_path / "r.html", draws=20))
    assert "No pictures: video_" in page.text
    assert not any(tag == "img" for tag, _ in page.tags)
    assert "figure-video-0-0" in page.ids  # the timeline needs no video


@pytest.mark.parametrize("task", ["detection", "recognition", "frames", "questions"])
def test_untrusted_text_is_escaped(task: str, tmp_path: Path) -> None:
    """Names from outside are escaped in every format (F82 and F87)."""
    write_run(tmp_path / "run", task, classes=HOSTILE, model=HOSTILE[0])
    out = jostle.report([tmp_path / "run"], tmp_path / "r.html", draws=20)
    page = check_self_contained(out)
    assert HOSTILE[0] in "".join(page.words)
    if task in ("frames", "questions"):
        return
    text = next(texts for texts in page.texts.values() if "HYPERLINK" in texts["csv"])
    assert "\n'=HYPERLINK(1)" in text["csv"]
    assert r"a\|b\_c &amp; 50% {x}" in text["markdown"]
    assert r"a\textbar{}b\_c \& 50\% \{x\}" in text["latex"]
    assert "</script>" not in out.read_text().partition('id="texts">')[2].partition("</script>")[0]


def test_two_runs_side_by_side(tmp_path: Path) -> None:
    write_run(tmp_path / "one")
    write_run(tmp_path / "two", weakness=0.3, model="firmer")
    page = check_self_contained(jostle.report([tmp_path / "one", tmp_path / "two"], tmp_path / "r.html", draws=60))
    assert "firmer keeps" in page.text
    assert "points more" in page.text
    assert "(significant, 95 % interval [" in page.text
    assert "figure-differences-1" in page.ids


def test_gate_is_a_section_of_the_page(tmp_path: Path) -> None:
    write_run(tmp_path / "old", "recognition", videos=60)
    write_run(tmp_path / "new", "recognition", videos=60, weakness=3.0, model="frailer")
    budget = {
        "condition": [
            {"metric": "clean", "at_least": 0.1},
            {"metric": "mean_corrupted", "at_most_below_reference": 0.02, "name": HOSTILE[0]},
        ]
    }
    runs = [tmp_path / "old", tmp_path / "new"]
    page = check_self_contained(
        jostle.report(runs, tmp_path / "r.html", budget=budget, against=tmp_path / "old", draws=20)
    )
    assert page.text.count("fail: 1 pass, 1 fail of 2 conditions") == 1  # the reference is not compared with itself
    assert HOSTILE[0] in "".join(page.words)
    assert page.sections[:3] == ["verdict", "gate", "map"]
    assert any("gate-fail" in str(attributes.get("class")) for _, attributes in page.tags)
    plain = check_self_contained(jostle.report(runs, tmp_path / "r.html", draws=20))
    assert "gate" not in plain.ids
    with pytest.raises(BadValue, match="needs a reference run"):
        jostle.report(runs, tmp_path / "r.html", budget=budget)


def test_failures_are_listed_and_runs_compared_on_shared_videos(tmp_path: Path) -> None:
    write_run(tmp_path / "one", fails=("video_0003",))
    page = check_self_contained(jostle.report([tmp_path / "one"], tmp_path / "one.html", draws=20))
    assert "11 of 12 videos, 4 of 4 cells not complete" in page.text
    assert "1 video could not be used" in page.text
    assert "video_0003: <i>no</i> video" in page.text
    write_run(tmp_path / "two", model="firmer")
    page = check_self_contained(jostle.report([tmp_path / "two", tmp_path / "one"], tmp_path / "both.html", draws=20))
    assert "12 of 12 videos, 4 of 4 cells; compared on the 11 that all runs have" in page.text


def test_without_jinja_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing package names the extra that brings it (F90)."""
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(
        MissingExtra, match=r"the report needs packages that are not installed: pip install 'jostle\[report\]'"
    ):
        jostle.report([tmp_path], tmp_path / "r.html")


def test_recognition_and_frames(tmp_path: Path) -> None:
    write_run(tmp_path / "rec", "recognition", videos=30)
    page = check_self_contained(jostle.report([tmp_path / "rec"], tmp_path / "rec.html", draws=40))
    assert "figure-confusion-0" in page.ids
    write_run(tmp_path / "frames", "frames", cells=())
    page = check_self_contained(jostle.report([tmp_path / "frames"], tmp_path / "frames.html", draws=40))
    assert "a drop of " in page.text
    assert "figure-offsets" in page.ids
    assert "map" not in page.ids


@pytest.mark.fault("F86")
def test_single_video_and_class(tmp_path: Path) -> None:
    """The smallest possible run still has a report (F86)."""
    write_run(tmp_path / "run", videos=1, classes=("jump",))
    check_self_contained(jostle.report([tmp_path / "run"], tmp_path / "r.html", draws=20))


@pytest.mark.fault("F86")
def test_run_without_any_detection(tmp_path: Path) -> None:
    """A clean score of 0 has no relative robustness (F86 and F91)."""
    folder = write_run(tmp_path / "run")
    for file in (folder / "predictions").glob("*.json"):
        predictions = json.loads(file.read_text())
        predictions["results"] = {name: [] for name in predictions["results"]}
        file.write_text(json.dumps(predictions))
    (folder / "diagnosis.json").unlink()
    page = check_self_contained(jostle.report([folder], tmp_path / "r.html", draws=20))
    assert "is undefined" in page.text
    assert "n/a" in page.words


@pytest.mark.fault("F86")
@pytest.mark.slow
def test_five_hundred_classes_and_many_videos(tmp_path: Path) -> None:
    """The page stays small, and states what it leaves out (F86)."""
    classes = tuple(f"class number {i}" for i in range(500))
    write_run(tmp_path / "run", "recognition", videos=2000, classes=classes)
    page = check_self_contained(jostle.report([tmp_path / "run"], tmp_path / "r.html", draws=200))
    assert "The 40 of 500 classes that lose most." in page.text
    assert "the 50 of 1256 that lose most" in page.text


def test_invalid_runs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadValue, match="at least one run"):
        jostle.report([], tmp_path / "r.html")
    with pytest.raises(DataError, match=r"no run\.json there"):
        jostle.report(tmp_path, tmp_path / "r.html")
    folder = write_run(tmp_path / "run")
    (folder / "scores.json").rename(folder / "away.json")
    with pytest.raises(DataError, match=r"scores\.json: does not exist; the same `jostle run` resumes"):
        jostle.report(folder, tmp_path / "r.html")
    (folder / "away.json").rename(folder / "scores.json")
    with pytest.raises(DataError, match="runs of different benchmarks"):
        jostle.report([folder, write_run(tmp_path / "rec", "recognition")], tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()


def test_report_is_reproducible(tmp_path: Path) -> None:
    write_run(tmp_path / "run", videos=4)
    one, two = (jostle.report([tmp_path / "run"], tmp_path / f"{i}.html", draws=20) for i in range(2))
    assert one.read_bytes() == two.read_bytes()


def test_progress_reaches_the_total(tmp_path: Path) -> None:
    write_run(tmp_path / "run", videos=8)
    updates: list[tuple[int, int]] = []
    jostle.report([tmp_path / "run"], tmp_path / "r.html", draws=5, progress=lambda *step: updates.append(step))
    assert [done for done, _ in updates] == list(range(1, len(updates) + 1))
    assert {total for _, total in updates} == {5 + 6}


def test_a_step_names_the_values_of_its_parameters() -> None:
    step = Step("rotate:3", "rotate", 19, {"over_time": "redrawn"}, "all")
    assert describe_step(step).startswith("rotate:3: A rolling camera: an angle of up to 19 (degrees) either way")


def test_lists_of_largest_losses_skip_negligible_ones() -> None:
    drops = [
        Drop("a", 0.5, 0.4, "fog:1", 0.4),
        Drop("b", 0.5, 0.49998, "fog:1", 0.4),
        Drop("c", 0.5, 0.6, "fog:1", 0.6),
    ]
    assert [drop.name for drop in losing(drops)] == ["a"]
