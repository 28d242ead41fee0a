"""The gallery of corruptions and the images of the documentation: complete, up to date and small."""

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
IMAGE_LINK = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
PAGES = [ROOT / "README.md", *sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)]
SCREENSHOTS = ("report-top", "report-video", "report-dark",
               "viewer-run", "viewer-cell", "viewer-video", "viewer-gallery")  # fmt: skip


def load(name: str) -> ModuleType:
    """Load a script of docs/ as a module, registered in `sys.modules` as dataclasses require."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GALLERY = load("draw_gallery")


def linked_images() -> dict[Path, list[tuple[Path, str]]]:
    """Return every local image of the pages, with each page and alternative text that uses it."""
    images: dict[Path, list[tuple[Path, str]]] = {}
    for page in PAGES:
        for alt, target in IMAGE_LINK.findall(page.read_text(encoding="utf-8")):
            if "://" not in target:
                images.setdefault((page.parent / target).resolve(), []).append((page, alt))
    return images


def test_linked_images_exist_and_have_alternative_texts() -> None:
    for path, uses in linked_images().items():
        page, _ = uses[0]
        assert path.is_file(), f"{page.name} shows {path.name}, which is not there"
        assert all(len(alt.split()) > 2 for _, alt in uses), f"{page.name}: {path.name} needs an alternative text"
        if path.suffix == ".svg":
            assert ElementTree.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"
            continue
        with Image.open(path) as picture:
            picture.verify()


def test_every_image_is_used() -> None:
    images = {path for path in (DOCS / "images").rglob("*") if path.is_file()}
    assert images <= set(linked_images())


def test_gallery_page_is_up_to_date() -> None:
    assert GALLERY.PAGE.read_text(encoding="utf-8") == GALLERY.page_text(), "run python docs/draw_gallery.py"


def test_every_corruption_is_in_the_gallery_with_its_summary() -> None:
    page = GALLERY.PAGE.read_text(encoding="utf-8")
    assert {corruption.family for corruption in corruptions.values()} == set(GALLERY.FAMILIES)
    for corruption in corruptions.values():
        assert page.count(f"- `{corruption.name}`: {corruption.summary}\n") == 1, corruption.name
        section = page.partition(f"## {corruption.family.capitalize()}\n")[2].partition("\n## ")[0]
        assert f"`{corruption.name}`" in section, corruption.name


def test_sheet_has_a_row_per_corruption_and_a_column_per_severity() -> None:
    for family in GALLERY.FAMILIES:
        with Image.open(GALLERY.IMAGES / f"{family}.jpg") as sheet:
            width, height = sheet.size
        side = GALLERY.SIZE[0]
        assert height // side == len(GALLERY.members(family)), family
        assert width > (1 + SEVERITIES) * side


def images_match(one: Path, other: Path) -> bool:
    """Return whether two images are equal up to differences of encoders and fonts."""
    first, second = (np.asarray(Image.open(path).convert("RGB"), float) for path in (one, other))
    return first.shape == second.shape and bool(np.abs(first - second).mean() < 2)


def test_one_sheet_is_up_to_date(tmp_path: Path) -> None:
    assert images_match(GALLERY.draw_family("order", tmp_path), GALLERY.IMAGES / "order.jpg")


@pytest.mark.slow
def test_all_sheets_are_up_to_date(tmp_path: Path) -> None:
    page, *sheets = GALLERY.main(tmp_path / "gallery.md", tmp_path / "images")
    assert page.read_bytes() == GALLERY.PAGE.read_bytes()
    assert {sheet.name for sheet in sheets} == {path.name for path in GALLERY.IMAGES.iterdir()}
    for sheet in sheets:
        assert images_match(sheet, GALLERY.IMAGES / sheet.name), sheet.name


def test_images_are_small() -> None:
    assert sum(path.stat().st_size for path in GALLERY.IMAGES.iterdir()) < 1_700_000
    for name in SCREENSHOTS:
        assert (DOCS / "images" / f"{name}.png").stat().st_size < 150_000


def test_screenshot_script_takes_every_screenshot() -> None:
    script = (DOCS / "draw_screenshots.py").read_text(encoding="utf-8")
    assert set(re.findall(r'camera\.take\(page, "([\w-]+)"', script)) == set(SCREENSHOTS)


def test_palette_is_close_to_the_original_colours() -> None:
    """White stays white, and photographs are not posterised."""
    shades = np.full((200, 300, 3), 255, np.uint8)
    shades[:100, :100] = np.random.default_rng(0).integers(60, 200, (10, 10, 3), np.uint8).repeat(10, 0).repeat(10, 1)
    quantised = np.asarray(load("draw_screenshots").in_palette(Image.fromarray(shades)).convert("RGB"), float)
    assert (quantised[150] == 255).all()
    assert np.abs(quantised - shades).mean() < 2
