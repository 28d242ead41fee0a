"""Takes the pictures of the report and of the viewer: python docs/draw_screenshots.py RUN OTHER-RUN

The runs are what `docs/how-to/read-the-report.md` makes: one detector on `puppets-c`, trained clean, then robust. The
first is the one whose cells and videos are drawn. Needs playwright and a chromium: the one that CHROMIUM names, or the
one on the path.
"""

from __future__ import annotations

import argparse
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from PIL import Image, ImageChops, ImageStat

import jostle

DOCS = Path(__file__).resolve().parent
WIDE, PHONE = 920, 390  # points; the pages are read at about this width
SHARP = 1.25  # pixels a point
COLOURS = 256  # of the palette, as films are on the pages
PATIENCE_S = 120.0
MARGIN = 16
CELL = "thumos14-c-occlusion-3"
GALLERY_QUERY = "profile=jostle&corruption=snow&severity=3"  # in the gallery of the viewer

# The two players are there, and show the frame that they were sent to.
ARRIVED = """() => {
  const videos = [...document.querySelectorAll('video')];
  return videos.length === 2 && videos.every((video) => video.readyState >= 2 && !video.seeking);
}"""
ALL_LOADED = "() => [...document.images].every((image) => image.complete)"


@dataclass(frozen=True)
class Camera:
    """A browser and where its pictures go."""

    browser: Any
    folder: Path

    @contextmanager
    def page(self, width: int, height: int, scheme: str = "light", sharp: float = SHARP) -> Iterator[Any]:
        """A page of a given size, and no animation on it."""
        context = self.browser.new_context(
            viewport={"width": width, "height": height},
            device_scale_factor=sharp,
            color_scheme=scheme,
            reduced_motion="reduce",
            locale="en-GB",
        )
        yield context.new_page()
        context.close()

    def take(
        self, page: Any, name: str, *, first: str | None = None, last: str | None = None, margin: int = MARGIN
    ) -> Path:
        """A picture of a page from one element to another, or from its top, or of as much as the window shows."""
        size = page.viewport_size
        top = page.locator(first).first.bounding_box()["y"] - margin if first else 0
        end = page.locator(last).first.bounding_box() if last else None
        bottom = end["y"] + end["height"] + margin if end else size["height"]
        clip = {"x": 0, "y": round(top), "width": size["width"], "height": round(bottom) - round(top)}
        taken = Image.open(BytesIO(page.screenshot(clip=clip, full_page=True))).convert("RGB")
        target = self.folder / f"{name}.png"
        in_palette(taken).save(target, optimize=True)
        return target


def in_palette(picture: Image.Image) -> Image.Image:
    """A picture in few colours, a third of the bytes: of two ways of choosing them, the one that comes nearer."""

    def off(made: Image.Image) -> float:
        return sum(ImageStat.Stat(ImageChops.difference(made.convert("RGB"), picture)).sum2)

    method, dither = Image.Quantize.MAXCOVERAGE, Image.Dither.NONE
    return min((picture.quantize(COLOURS, method, kmeans, dither=dither) for kmeans in (0, 1)), key=off)


def main(runs: list[Path], folder: Path = DOCS / "images") -> list[Path]:
    """Write the pictures; the paths of the files."""
    from playwright.sync_api import sync_playwright

    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as started, tempfile.TemporaryDirectory() as scratch:
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        camera = Camera(browser, folder)
        taken = [*of_the_report(camera, runs, Path(scratch)), *of_the_viewer(camera, runs[0], Path(scratch))]
        browser.close()
    return taken


def of_the_report(camera: Camera, runs: list[Path], scratch: Path) -> Iterator[Path]:
    """Its top, one of the videos hit hardest, and the top on a phone in dark mode."""
    address = jostle.report(runs, scratch / "report.html").as_uri()
    with camera.page(WIDE, 800) as page:
        page.goto(address)
        wait_until(lambda: page.evaluate(ALL_LOADED))
        yield camera.take(page, "report-top", last="#map .maps")
        yield camera.take(page, "report-video", first="article.video h3", last="article.video details")
    with camera.page(PHONE, 780, "dark", 1.0) as page:
        page.goto(address)
        yield camera.take(page, "report-dark")


def of_the_viewer(camera: Camera, run: Path, scratch: Path) -> Iterator[Path]:
    """The run, a cell, its most affected video at the first corrupted frame, and the gallery."""
    with viewer(run, scratch) as address, camera.page(WIDE, 700) as page:
        here = urlsplit(address)._replace(query="").geturl()
        page.goto(address)
        page.wait_for_selector(".heatmap")
        wait_until(lambda: "interval" not in page.inner_text(".numbers"))
        yield camera.take(page, "viewer-run", last="main > :last-child")
        page.goto(f"{here}/cells/{CELL}")
        page.wait_for_selector("table.videos")
        yield camera.take(page, "viewer-cell", last="table.videos tr >> nth=10", margin=0)
        page.click("table.videos tbody a >> nth=0")
        page.mouse.move(0, 0)  # nothing is to look pointed at
        page.wait_for_selector(".timeline")
        settle(page)
        page.keyboard.press("s")
        page.wait_for_selector(".badge:visible")
        wait_until(lambda: page.locator("text=/^1 of /").count())
        settle(page)
        yield camera.take(page, "viewer-video", last="main > :last-child")
        page.goto(f"{here}/gallery?{GALLERY_QUERY}")
        settle(page)
        yield camera.take(page, "viewer-gallery", last="main > :last-child")


@contextmanager
def viewer(run: Path, scratch: Path) -> Iterator[str]:
    """`jostle view` on a run until the block ends; its address."""
    command = [sys.executable, "-m", "jostle", "view", str(run), "--no-browser"]
    environment = os.environ | {"JOSTLE_CACHE": str(scratch)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        out = process.stdout
        assert out is not None
        lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=lambda: lines.put(out.readline()), daemon=True).start()
        try:
            yield lines.get(timeout=PATIENCE_S).strip()
        finally:
            process.send_signal(signal.SIGINT)


def settle(page: Any) -> None:
    """Wait until both films are rendered and stand still."""
    wait_until(lambda: page.evaluate(ARRIVED))
    time.sleep(0.5)  # the picture follows the event


def wait_until(holds: Callable[[], object]) -> None:
    """Playwright's own way of waiting is against the policy of the viewer's pages."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError(f"a page was not ready after {PATIENCE_S:.0f} s")
        time.sleep(0.1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Takes the pictures of the report and of the viewer.")
    parser.add_argument("run", type=Path, nargs=2)
    for written in main(parser.parse_args().run):
        print(written)
