"""`jostle inspect FOLDER --csv`: one row per video, resumption and a self-contained page."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle import api
from jostle.cli.app import _run as run_command
from jostle.errors import BadValue, DataError
from jostle.io.video.encode import Writer
from jostle.mending import collection, false_alarms
from jostle.mending.collection import InspectedFile, Stretch
from jostle.reporting.html.collection import collection_page

PAGE = Path(__file__).parents[2] / "docs" / "json.md"
Inspect = Callable[..., Any]


def write_video(path: Path, black: range = range(0)) -> None:
    ground = np.random.default_rng(5).integers(0, 256, (6, 8, 3), np.uint8).repeat(8, 0).repeat(8, 1)
    with Writer(path, size=(48, 64), fps=25) as writer:
        for number in range(30):
            writer.write(ground * 0 if number in black else np.roll(ground, number, 1))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("videos")
    (root / "sub").mkdir()
    write_video(root / "a.mp4", range(10, 16))
    write_video(root / "sub" / "a.mp4")
    (root / "broken.mp4").write_bytes((root / "a.mp4").read_bytes()[:600])
    return root


@pytest.fixture
def inspect(folder: Path, tmp_path: Path) -> Inspect:
    return lambda **more: api.inspect_collection(folder, tmp_path / "out.csv", jobs=1, **more)


def rows(path: Path) -> dict[str, dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return {"/".join(Path(row["video"]).parts[-2:]): row for row in csv.DictReader(file)}


def test_a_row_for_each_video(inspect: Inspect, folder: Path, tmp_path: Path) -> None:
    done = inspect(page=tmp_path / "out.html")
    table = rows(done.csv)
    damaged, clean = table[f"{folder.name}/a.mp4"], table["sub/a.mp4"]
    assert (damaged["main_kind"], damaged["frames"]) == ("black", "30")
    assert float(damaged["black_share"]) == pytest.approx(6 / 30)
    assert (damaged["longest_first"], damaged["longest_last"]) == ("10", "15")
    assert (clean["black_share"], clean["error"]) == ("0.000000", "")
    assert table[f"{folder.name}/broken.mp4"]["error"]
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert page.count("data:image/jpeg;base64,") >= 3
    assert not re.search(r"(src|href)=\"(?!data:)", page)
    assert "Look at the pictures" in page


def test_an_interrupted_inspection_resumes(inspect: Inspect, folder: Path, tmp_path: Path, monkeypatch: Any) -> None:
    first = inspect()
    text = first.csv.read_text(encoding="utf-8")
    journal = tmp_path / "out.csv.journal"
    lines = journal.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 4
    journal.write_text("\n".join(lines[:2]) + "\n" + lines[2][:50], encoding="utf-8")  # as if killed while writing
    inspected: list[Path] = []
    real = collection._inspect
    monkeypatch.setattr(collection, "_inspect", lambda path, stream: inspected.append(path) or real(path, stream))
    resumed = inspect()
    assert len(inspected) == 2
    assert resumed.csv.read_text(encoding="utf-8") == text
    inspect()
    assert len(inspected) == 2


def test_a_journal_of_other_settings_is_not_mixed_in(inspect: Inspect, tmp_path: Path) -> None:
    journal = tmp_path / "out.csv.journal"
    journal.write_text('{"inspector": "sha256:other", "lookahead": 15, "format": 1}\n', encoding="utf-8")
    with pytest.raises(DataError, match="another inspector or look-ahead"):
        inspect()
    journal.write_text("[[[\n", encoding="utf-8")
    with pytest.raises(DataError, match="first line is damaged"):
        inspect()


def test_a_list_of_paths_is_inspected(folder: Path, tmp_path: Path) -> None:
    names = tmp_path / "list.txt"
    names.write_text(f"# mine\n{folder / 'a.mp4'}\n\nnothere.mp4\n", encoding="utf-8")
    done = api.inspect_collection(names, tmp_path / "out.csv", jobs=1)
    assert [bool(file.error) for file in done.files] == [False, True]
    with pytest.raises(BadValue, match="single video"):
        api.inspect_collection(folder / "a.mp4", tmp_path / "b.csv")
    with pytest.raises(BadValue, match="lies in the input folder"):
        api.inspect_collection(folder, folder / "b.csv")


def test_the_command_line(folder: Path, tmp_path: Path, monkeypatch: Any, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    monkeypatch.setattr(sys, "argv", ["jostle", "inspect", str(folder), "--csv", str(tmp_path / "o.csv"), "-j", "1"])
    assert run_command() == 4  # one video cannot be read
    output = capsys.readouterr()
    assert "black" in output.out
    assert "1 of 3 videos" in output.err or "2 of 3 videos" in output.err
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--json"])
    run_command()
    row = next(line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `inspect --csv`"))
    assert [*json.loads(capsys.readouterr().out)] == re.findall(r"`([a-z_]+)`", row.split("|")[2])


def test_names_on_the_page_are_escaped() -> None:
    stretch = Stretch("black", 0, 5, 0.0, 0.2, 0.9, ("AAAA", "BBBB"))
    file = InspectedFile("<script>x</script>.mp4", (1, 1), frames=9, damaged=5, kinds={"black": 5}, worst=(stretch,))
    page = collection_page([file], "Damage", "")
    assert "<script>" not in page
    assert page.index("first damaged frame") < page.index("last damaged frame")


def test_false_alarms_are_described(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(false_alarms, "EVENTS_PER_HOUR", {15: (2.0, 1.0, 4.0)})
    text = false_alarms.describe_false_alarms(7200, 9, 15)
    assert "about 4 events are false alarms (95 % interval 2 to 8" in text
    assert "9 were found" in text
    assert "has not been measured" in false_alarms.describe_false_alarms(7200, 9, 3)
