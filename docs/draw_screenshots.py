"""Take the screenshots of the report and of the viewer: python docs/draw_screenshots.py RUN OTHER-RUN

The runs are those of `docs/how-to/read-the-report.md`: one detector on `puppets-c`, trained clean, then robust. Cells
and videos are those of the first. Needs playwright and chromium, from the environment variable CHROMIUM or the path.
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
SCALE = 1.25  # pixels a point
COLOURS = 256  # of the palette, as films are on the pages
TIMEOUT_S = 120.0
MARGIN = 16
CELL = "thumos14-c-occlusion-3"
GALLERY_QUERY = "profile=jostle&corruption=snow&severity=3"  # in the gallery of the viewer

# Both players exist, and have decoded the frame that they seek.
PLAYERS_READY = """() => {
  const videos = [...document.querySelectorAll('video')];
  return videos.length === 2 && videos.every((video) => video.readyState >= 2 && !video.seeking);
}"""
ALL_LOADED = "() => [...document.images].every((image) => image.complete)"


@dataclass(frozen=True)
class Camera:
    """A browser, and the folder of its screenshots."""

    browser: Any
    folder: Path

    @contextmanager
    def page(self, width: int, height: int, scheme: str = "light", scale: float = SCALE) -> Iterator[Any]:
        """Yield a page of a given size, without animations."""
        context = self.browser.new_context(
            viewport={"width": width, "height": height},
            device_scale_factor=scale,
            color_scheme=scheme,
            reduced_motion="reduce",
            locale="en-GB",
        )
        yield context.new_page()
        context.close()

    def take(
        self, page: Any, name: str, *, first: str | None = None, last: str | None = None, margin: int = MARGIN
    ) -> Path:
        """Save the part of a page from one element (default: its top) to another (default: the end of the window)."""
        size = page.viewport_size
        top = page.locator(first).first.bounding_box()["y"] - margin if first else 0
        end = page.locator(last).first.bounding_box() if last else None
        bottom = end["y"] + end["height"] + margin if end else size["height"]
        clip = {"x": 0, "y": round(top), "width": size["width"], "height": round(bottom) - round(top)}
        picture = Image.open(BytesIO(page.screenshot(clip=clip, full_page=True))).convert("RGB")
        target = self.folder / f"{name}.png"
        in_palette(picture).save(target, optimize=True)
        return target


def in_palette(picture: Image.Image) -> Image.Image:
    """Return a picture in few colours, a third of the bytes, by the better of two methods of choosing them."""

    def squared_error(quantised: Image.Image) -> float:
        return sum(ImageStat.Stat(ImageChops.difference(quantised.convert("RGB"), picture)).sum2)

    method, dither = Image.Quantize.MAXCOVERAGE, Image.Dither.NONE
    return min((picture.quantize(COLOURS, method, kmeans, dither=dither) for kmeans in (0, 1)), key=squared_error)


def main(runs: list[Path], folder: Path = DOCS / "images") -> list[Path]:
    """Write the screenshots, and return the paths of the files."""
    from playwright.sync_api import sync_playwright

    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as scratch:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        camera = Camera(browser, folder)
        paths = [*take_report(camera, runs, Path(scratch)), *take_viewer(camera, runs[0], Path(scratch))]
        browser.close()
    return paths


def take_report(camera: Camera, runs: list[Path], scratch: Path) -> Iterator[Path]:
    """Yield pictures of the top of the report, of one of the most affected videos, and of the top on a phone."""
    address = jostle.report(runs, scratch / "report.html").as_uri()
    with camera.page(WIDE, 800) as page:
        page.goto(address)
        wait_until(lambda: page.evaluate(ALL_LOADED))
        yield camera.take(page, "report-top", last="#map .maps")
        yield camera.take(page, "report-video", first="article.video h3", last="article.video details")
    with camera.page(PHONE, 780, "dark", 1.0) as page:
        page.goto(address)
        yield camera.take(page, "report-dark")


def take_viewer(camera: Camera, run: Path, scratch: Path) -> Iterator[Path]:
    """Yield pictures of the run, a cell, its most affected video at the first corrupted frame, and the gallery."""
    with start_viewer(run, scratch) as address, camera.page(WIDE, 700) as page:
        root = urlsplit(address)._replace(query="").geturl()
        page.goto(address)
        page.wait_for_selector(".heatmap")
        wait_until(lambda: "interval" not in page.inner_text(".numbers"))
        yield camera.take(page, "viewer-run", last="main > :last-child")
        page.goto(f"{root}/cells/{CELL}")
        page.wait_for_selector("table.videos")
        yield camera.take(page, "viewer-cell", last="table.videos tr >> nth=10", margin=0)
        page.click("table.videos tbody a >> nth=0")
        page.mouse.move(0, 0)  # so that nothing is highlighted
        page.wait_for_selector(".timeline")
        settle(page)
        page.keyboard.press("s")
        page.wait_for_selector(".badge:visible")
        wait_until(lambda: page.locator("text=/^1 of /").count())
        settle(page)
        yield camera.take(page, "viewer-video", last="main > :last-child")
        page.goto(f"{root}/gallery?{GALLERY_QUERY}")
        settle(page)
        yield camera.take(page, "viewer-gallery", last="main > :last-child")


@contextmanager
def start_viewer(run: Path, scratch: Path) -> Iterator[str]:
    """Start `jostle view` on a run, yield its address, and stop it when the block ends."""
    command = [sys.executable, "-m", "jostle", "view", str(run), "--no-browser"]
    environment = os.environ | {"JOSTLE_CACHE": str(scratch)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        out = process.stdout
        assert out is not None
        lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=lambda: lines.put(out.readline()), daemon=True).start()
        try:
            yield lines.get(timeout=TIMEOUT_S).strip()
        finally:
            process.send_signal(signal.SIGINT)


def settle(page: Any) -> None:
    """Wait until both players have decoded their frames."""
    wait_until(lambda: page.evaluate(PLAYERS_READY))
    time.sleep(0.5)  # the picture is drawn after the event


def wait_until(holds: Callable[[], object]) -> None:
    """Wait until a condition holds; Playwright's own `wait_for_function` violates the policy of the viewer's pages."""
    end = time.monotonic() + TIMEOUT_S
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError(f"a page was not ready after {TIMEOUT_S:.0f} s")
        time.sleep(0.1)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Take the screenshots of the report and of the viewer.")
    parser.add_argument("run", type=Path, nargs=2)
    for path in main(parser.parse_args().run):
        print(path)
