"""The gallery of all corruptions, and the pictures of the pages: all there, up to date, and light."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from jostle.corruptions.engine.corruption import SEVERITIES, corruptions

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
SHOWN = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
PAGES = [ROOT / "README.md", *sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)]
SCREENSHOTS = ("report-top", "report-video", "report-dark",
               "viewer-run", "viewer-cell", "viewer-video", "viewer-gallery")  # fmt: skip


def load(name: str) -> ModuleType:
    """A script of the docs as a module; dataclasses look for theirs among the loaded ones."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GALLERY = load("draw_gallery")


def pictures() -> dict[Path, list[tuple[Path, str]]]:
    """Every local picture that a page shows: the pages it is on, with its alternative text."""
    found: dict[Path, list[tuple[Path, str]]] = {}
    for page in PAGES:
        for alt, target in SHOWN.findall(page.read_text(encoding="utf-8")):
            if "://" not in target:
                found.setdefault((page.parent / target).resolve(), []).append((page, alt))
    return found


def test_every_picture_of_a_page_is_there_and_says_what_it_shows() -> None:
    for path, places in pictures().items():
        page, _ = places[0]
        assert path.is_file(), f"{page.name} shows {path.name}, which is not there"
        assert all(len(alt.split()) > 2 for _, alt in places), f"{page.name}: {path.name} needs an alternative text"
        if path.suffix == ".svg":
            assert ElementTree.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"
            continue
        with Image.open(path) as picture:
            picture.verify()


def test_no_picture_is_left_over() -> None:
    kept = {path for path in (DOCS / "images").rglob("*") if path.is_file()}
    assert kept <= set(pictures())


def test_the_page_of_the_gallery_is_the_one_that_is_written() -> None:
    assert GALLERY.PAGE.read_text(encoding="utf-8") == GALLERY.page_text(), "run python docs/draw_gallery.py"


def test_every_corruption_is_in_the_gallery_with_its_summary() -> None:
    page = GALLERY.PAGE.read_text(encoding="utf-8")
    assert {found.family for found in corruptions.values()} == set(GALLERY.FAMILIES)
    for found in corruptions.values():
        assert page.count(f"- `{found.name}`: {found.summary}\n") == 1, found.name
        section = page.partition(f"## {found.family.capitalize()}\n")[2].partition("\n## ")[0]
        assert f"`{found.name}`" in section, found.name


def test_a_sheet_has_a_line_for_each_corruption_and_a_column_for_each_severity() -> None:
    for family in GALLERY.FAMILIES:
        with Image.open(GALLERY.IMAGES / f"{family}.jpg") as sheet:
            width, height = sheet.size
        side = GALLERY.SIZE[0]
        assert height // side == len(GALLERY.members(family)), family
        assert width > (1 + SEVERITIES) * side


def alike(one: Path, other: Path) -> bool:
    """Whether two pictures are the same but for what an encoder or a font makes of it."""
    first, second = (np.asarray(Image.open(path).convert("RGB"), float) for path in (one, other))
    return first.shape == second.shape and bool(np.abs(first - second).mean() < 2)


def test_a_sheet_is_the_one_that_is_drawn(tmp_path: Path) -> None:
    assert alike(GALLERY.draw_family("order", tmp_path), GALLERY.IMAGES / "order.jpg")


@pytest.mark.slow
def test_the_sheets_are_those_that_are_drawn(tmp_path: Path) -> None:
    page, *sheets = GALLERY.main(tmp_path / "gallery.md", tmp_path / "images")
    assert page.read_bytes() == GALLERY.PAGE.read_bytes()
    assert {sheet.name for sheet in sheets} == {path.name for path in GALLERY.IMAGES.iterdir()}
    for sheet in sheets:
        assert alike(sheet, GALLERY.IMAGES / sheet.name), sheet.name


def test_pictures_are_light() -> None:
    assert sum(path.stat().st_size for path in GALLERY.IMAGES.iterdir()) < 1_700_000
    for name in SCREENSHOTS:
        assert (DOCS / "images" / f"{name}.png").stat().st_size < 150_000


def test_the_script_of_the_screenshots_takes_those_that_are_there() -> None:
    script = (DOCS / "draw_screenshots.py").read_text(encoding="utf-8")
    assert set(re.findall(r'camera\.take\(page, "([\w-]+)"', script)) == set(SCREENSHOTS)


def test_few_colours_are_near_to_all_of_them() -> None:
    """White stays white, and a film is not made a poster."""
    shades = np.full((200, 300, 3), 255, np.uint8)
    shades[:100, :100] = np.random.default_rng(0).integers(60, 200, (10, 10, 3), np.uint8).repeat(10, 0).repeat(10, 1)
    made = np.asarray(load("draw_screenshots").in_palette(Image.fromarray(shades)).convert("RGB"), float)
    assert (made[150] == 255).all()
    assert np.abs(made - shades).mean() < 2
