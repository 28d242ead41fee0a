"""The viewer in a real browser: linked players, keyboard, timeline, hostile labels, no foreign requests."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers import small_objects, small_recognition, small_run
from helpers.served import Served, renamed_run, served
from helpers.synthetic_runs import write_run
from jostle.io.video.encode import Writer

pytestmark = pytest.mark.slow

FRAMES, FPS, BITS = 72, 24, 7
CELL = "thumos14-c-black_frame-3"
HOSTILE = "<img src=x onerror=\"document.title='owned'\">"
OPTIONS = ("jump", HOSTILE, "sit down")  # of questions


def write_film(path: Path) -> Path:
    """Write a film whose frames encode their number: seven stripes of bits, and one that is always white."""
    with Writer(path, size=(64, 128), fps=FPS, quality=10) as writer:
        for number in range(FRAMES):
            bits = [number >> i & 1 for i in range(BITS)] + [1]
            row = np.repeat(np.array(bits, np.uint8) * 215 + 20, 16)
            writer.write(np.ascontiguousarray(np.broadcast_to(row[None, :, None], (64, 128, 3))))
    return path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, browser: Any) -> Iterator[Served]:
    """Viewer of one run per task, and of one with hostile labels and without its videos."""
    root = tmp_path_factory.mktemp("browser")
    (root / "films").mkdir()
    films = {name: write_film(root / "films" / f"{name}.mp4") for name in small_run.NAMES}
    small_run.run(films, root / "detection")
    cells = ["clean", "kinetics-c/motion_blur:1", "thumos14-c/black_frame:1"]
    small_recognition.run(films, root / "recognition", cells=cells)
    small_recognition.run(films, root / "frames", task="frames", cells=["clean", "gaussian_noise:2"])
    small_objects.run(films, root / "objects")
    for task in ("questions", "moments"):
        write_run(root / task, task, videos=3, cells=("thumos14-c/black_frame:3",), source=films["a"], classes=OPTIONS)
    names = {f'"{name}"': json.dumps(HOSTILE) for name in ("action", "leaning")} | {str(root / "films"): "/gone"}
    renamed_run(root / "detection", names)
    tasks = ("detection", "recognition", "frames", "objects", "questions", "moments", "hostile")
    with served(root / "cache", *(root / name for name in tasks)) as viewer:
        yield viewer


def open_video(visit: Any, query: str = "", video: str = "a") -> None:
    visit.open(f"/runs/detection/cells/{CELL}/videos/{video}{query}", ".timeline")
    visit.until(lambda: visit.probe("arrived"))


def settled(visit: Any) -> tuple[int, int]:
    """Return the frames of both players, once they have stopped."""
    visit.until(lambda: visit.probe("arrived"))
    time.sleep(0.15)  # the picture is drawn after the event
    clean, corrupted = (visit.probe("frameOf", video) for video in visit.page.query_selector_all("video"))
    return clean, corrupted


def frame_of(visit: Any) -> int:
    """Return the frame number on the page."""
    return int(visit.page.inner_text(".clock").partition("frame ")[2].split()[0])


@pytest.fixture
def visit(open_page: Any, server: Served, request: pytest.FixtureRequest) -> Any:
    address, options = f"{server.origin}/?token={server.token}", getattr(request, "param", {})
    return open_page(address, f"{server.origin}/", origin=server.origin, **options)


def test_heat_map_leads_to_a_video(visit: Any) -> None:
    visit.open("/runs/detection", ".heatmap")
    assert "token" not in visit.page.url
    visit.until(lambda: " to " in visit.page.inner_text(".numbers"))  # the intervals are loaded
    visit.page.click(f"a[href$='{CELL}']")
    visit.page.wait_for_selector("table.videos")
    losses = [float(text) for text in visit.page.locator("td.strong").all_inner_texts()]
    assert losses == sorted(losses, reverse=True)
    visit.page.click("table.videos tbody a >> nth=0")
    visit.page.wait_for_selector(".timeline")
    assert "/videos/" in visit.page.url


def test_players_step_together_frame_by_frame(visit: Any) -> None:
    open_video(visit)
    assert settled(visit) == (0, 0)
    for key, expected in (
        (".", 1),
        (".", 2),
        (".", 3),
        (",", 2),
        ("ArrowRight", 2 + FPS),
        ("ArrowLeft", 2),
        ("End", FRAMES - 1),
    ):
        visit.press(key)
        assert settled(visit) == (expected, expected)
        assert frame_of(visit) == expected
    visit.press(".")
    assert settled(visit) == (FRAMES - 1, FRAMES - 1)
    visit.press("Home")
    for _ in range(9):  # faster than the players can follow
        visit.press(".")
    assert settled(visit) == (9, 9)


def test_players_stay_synchronised(visit: Any) -> None:
    open_video(visit)
    visit.press(" ")
    visit.until("document.querySelector('video').currentTime > 0.8")
    assert visit.probe("apart") < 0.25
    assert visit.page.inner_text("button.play") == "Pause"
    visit.press(" ")
    clean, corrupted = settled(visit)
    assert clean == frame_of(visit) > 10
    assert corrupted in (clean, -1)
    visit.press("]")
    visit.until(lambda: visit.page.input_value(".controls select") == "1.5")
    visit.press(" ")
    visit.until("document.querySelector('video').playbackRate >= 1.3")
    visit.until(lambda: visit.page.inner_text("button.play") == "Play")  # it stops at the end
    assert settled(visit)[0] == FRAMES - 1


def test_corrupted_frames_are_marked_and_black(visit: Any) -> None:
    open_video(visit)
    media = visit.page.evaluate(f"fetch('/media/detection/{CELL}/a.json').then((answer) => answer.json())")
    (start, end), *_ = media["film"]["struck"]
    visit.until("document.querySelectorAll('.corrupted-cap').length > 0")
    visit.until(visit.page.locator(".screen >> nth=1 >> .badge").is_hidden)
    visit.press("s")
    first = round(start * FPS)
    assert settled(visit) == (first, -1)
    visit.until(visit.page.locator(".screen >> nth=1 >> .badge").is_visible)
    visit.press(",")
    assert settled(visit) == (first - 1, first - 1)
    visit.until(visit.page.locator(".screen >> nth=1 >> .badge").is_hidden)
    for _ in range(round((end - start) * FPS) + 1):
        visit.press(".")
    assert settled(visit) == (round(end * FPS), round(end * FPS))


def test_timeline_click_seeks(visit: Any) -> None:
    open_video(visit)
    box = visit.page.locator(".inner").bounding_box()
    duration = FRAMES / FPS
    for share in (0.25, 0.75, 0.0):
        visit.page.mouse.click(box["x"] + share * box["width"], box["y"] + box["height"] - 4)
        expected = int(share * duration * FPS + 1e-6)
        displayed = settled(visit)[0]
        assert abs(displayed - expected) <= 1
        assert displayed == frame_of(visit)
    visit.page.mouse.move(box["x"] + 0.1 * box["width"], box["y"] + box["height"] - 4)
    visit.page.mouse.down()
    visit.page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + box["height"] - 4, steps=12)
    visit.page.mouse.up()
    assert abs(settled(visit)[0] - FRAMES // 2) <= 1


def test_tooltip_has_overlap_and_kind(visit: Any) -> None:
    open_video(visit, "?score=0")
    visit.page.locator(".detection rect").first.hover()
    visit.until(lambda: all(word in visit.page.inner_text(".tooltip") for word in ("tIoU", "kind", "score")))


def test_score_threshold_hides_detections(visit: Any) -> None:
    open_video(visit, "?score=0")
    assert visit.page.locator(".detection").count() == 4
    visit.page.locator("input[type=range]").focus()
    visit.press("End")
    visit.until(lambda: visit.page.locator(".detection").count() == 0)
    visit.until(lambda: visit.query.get("score") == ["1"])


def test_url_restores_the_state(visit: Any) -> None:
    open_video(visit, "?t=1.0&score=0.2")
    assert settled(visit)[0] == FPS
    visit.press(".")
    visit.until(lambda: visit.query["t"] == [f"{25 / 24:.3f}"])
    visit.page.reload()
    visit.page.wait_for_selector(".timeline")
    assert settled(visit)[0] == FPS + 1
    assert visit.page.input_value("input[type=range]") == "0.2"
    visit.page.select_option("select[aria-label=Corruption]", "freeze-3")
    visit.page.wait_for_url("**/cells/freeze-3/videos/a?score=0.2")


def test_keyboard_help_and_navigation(visit: Any) -> None:
    open_video(visit)
    visit.press("?")
    visit.until(lambda: "one frame back" in visit.page.inner_text("dialog[open]"))
    visit.press(".")
    assert frame_of(visit) == 0  # keys do nothing behind the dialog
    visit.press("Escape")
    visit.until(lambda: visit.page.locator("dialog[open]").count() == 0)
    order = visit.page.evaluate(f"fetch('/runs/detection/cells/{CELL}.json').then((a) => a.json())")["videos"]
    open_video(visit, video=order[0]["key"])
    visit.until("fetch(location.pathname + '.json').then((a) => a.json()).then((page) => page.rank !== null)")
    visit.page.reload()
    visit.page.wait_for_selector(".timeline")
    visit.press("n")
    visit.page.wait_for_url(f"**/videos/{order[1]['key']}*")


def test_videos_are_loaded_by_range_requests(visit: Any) -> None:
    open_video(visit)
    assert {status for url, status in visit.responses if url.endswith(".mp4")} == {206}


def test_gallery_severity_slider(visit: Any) -> None:
    visit.open("/runs/detection/gallery?profile=imagenet-c&corruption=imagenet-c-brightness&severity=1")
    visit.until(lambda: visit.probe("arrived"))

    def light() -> int:
        return visit.probe("light", visit.page.query_selector_all("video")[1])

    weak = visit.until(light)
    visit.page.locator("input[type=range]").focus()
    visit.press("End")
    visit.until("document.querySelectorAll('video')[1].src.includes('brightness-5')")
    visit.until(lambda: visit.probe("arrived"))
    visit.until(lambda: light() > weak + 20)
    visit.until(lambda: visit.query["severity"] == ["5"])
    visit.press("Home")
    visit.until(lambda: visit.page.inner_text(".slider output") == "clean")


def test_recognition_and_frames(visit: Any) -> None:
    visit.open("/runs/recognition/cells/kinetics-c-motion_blur-1/videos/b", "table.answers")
    assert visit.page.locator("tr.true").count() == 1
    visit.open("/runs/recognition/cells/thumos14-c-black_frame-1/videos/b", "table.answers")
    visit.until(lambda: visit.probe("arrived"))  # the cell affects part of the video only, and is rendered all the same
    visit.open("/runs/frames/cells/gaussian_noise-2/videos/c", ".sets")
    visit.until(lambda: visit.probe("arrived"))
    visit.page.click(".shot.anchor >> nth=0")
    visit.until(lambda: frame_of(visit) == 20)
    visit.until(lambda: visit.page.locator(".shot.current.anchor").count() == 2)


def test_questions_show_options_clean_and_corrupted(visit: Any) -> None:
    visit.open(f"/runs/questions/cells/{CELL}/videos/video_0000", ".questions")
    visit.until(lambda: visit.probe("arrived"))
    assert visit.page.locator(".question").count() == 3
    assert visit.page.locator(".question tr.true").count() == 3  # one right option each
    assert visit.page.locator(".question").first.locator(".bar.clean").count() == 3
    assert visit.page.locator(".question").first.locator(".bar.corrupted").count() == 3
    assert "Of 3 questions the model answers" in visit.page.inner_text(".verdict")
    assert "needs order" in visit.page.locator(".question h2").last.inner_text()
    assert HOSTILE in visit.page.inner_text(".questions")
    assert visit.page.locator("img[src=x]").count() == 0
    visit.open("/runs/questions/cells/clean/videos/video_0000", ".questions")
    assert visit.page.locator(".bar.corrupted").count() == 0


def test_windows_of_moments_are_on_the_timeline(visit: Any) -> None:
    visit.open(f"/runs/moments/cells/{CELL}/videos/video_0001", ".timeline")
    visit.until(lambda: visit.probe("arrived"))
    assert visit.page.locator(".action").count() == 2
    assert visit.page.locator(".detection").count() == 4  # the first window of each sentence, clean and corrupted
    visit.page.check("input[type=checkbox]")
    visit.until(lambda: visit.page.locator(".detection").count() == 8)
    visit.until(lambda: visit.query.get("windows") == ["all"])
    visit.page.locator(".action rect").first.hover(position={"x": 60, "y": 2})  # beside the line that crosses it out
    visit.until(lambda: "Sentence 0." in visit.page.inner_text(".tooltip"))
    visit.page.locator("summary").click()
    visit.until(lambda: visit.page.locator("details tbody tr").count() == 8)
    assert "2 true windows" in visit.page.inner_text(".counts")


def test_boxes_are_drawn_over_both_players(visit: Any) -> None:
    visit.open("/runs/objects/cells/gaussian_noise-3/videos/c?score=0", ".sets")
    visit.until(lambda: visit.probe("arrived"))
    assert visit.page.locator(".boxes rect").count() == 0
    visit.page.click(".shot.anchor")
    visit.until(lambda: frame_of(visit) == 20)
    visit.until(lambda: visit.page.locator(".boxes .true").count() == 4)  # two objects, in both players
    visit.until(lambda: visit.page.locator(".boxes .predicted").count() == 6)
    assert "2 objects; found 3 clean, 3 corrupted" in visit.page.inner_text(".verdict")
    visit.page.fill("input[type=range]", "0.45")
    visit.until(lambda: visit.page.locator(".boxes .predicted").count() == 4)
    assert "dark 0.50" in visit.page.locator(".boxes .predicted text").all_text_contents()


def test_labels_are_escaped_and_missing_videos_reported(visit: Any) -> None:
    visit.open("/runs/hostile", ".heatmap")
    assert HOSTILE in visit.page.inner_text("h1")
    visit.open(f"/runs/hostile/cells/{CELL}/videos/a?score=0", ".timeline")
    visit.until(lambda: "no longer there" in visit.page.inner_text(".screen >> nth=1"))
    visit.page.locator(".action rect").first.hover()
    visit.until(lambda: HOSTILE in visit.page.inner_text(".tooltip"))
    visit.page.locator("summary").click()
    visit.until(lambda: HOSTILE in visit.page.inner_text("details table"))
    assert visit.page.locator("img[src=x]").count() == 0
    assert "owned" not in visit.page.title()


def test_unplayable_video_is_shown_as_still_frames(visit: Any) -> None:
    visit.page.route("**/*.mp4", lambda route: route.fulfill(body=b"no video", content_type="video/mp4"))
    visit.open(f"/runs/detection/cells/{CELL}/videos/a", ".timeline")
    ready = "[...document.querySelectorAll('.screen img')].every((i) => i.complete && i.naturalWidth === 128)"
    for key, number in (("ArrowRight", FPS), (".", FPS + 1)):
        visit.press(key)
        requested = f"[...document.querySelectorAll('.screen img')].every((i) => i.src.endsWith('frame={number}'))"
        visit.until(requested)
        visit.until(ready)
        stills = visit.page.query_selector_all(".screen img")
        assert frame_of(visit) == visit.probe("frameOf", stills[0]) == number


def test_unknown_address(visit: Any) -> None:
    visit.open("/runs/walk", "[role=alert]")
    assert "nothing at this address" in visit.page.inner_text("main")
    visit.errors = [text for text in visit.errors if "404" not in text]  # the browser logs the response


DARK = {"color_scheme": "dark"}
PHONE = {"viewport": {"width": 380, "height": 760}, "has_touch": True, "is_mobile": True}
PATHS = (
    "/runs/detection",
    f"/runs/detection/cells/{CELL}",
    f"/runs/detection/cells/{CELL}/videos/a",
    "/runs/detection/gallery",
)


@pytest.mark.parametrize(("visit", "is_dark"), [({}, False), (DARK, True)], indirect=["visit"], ids=["light", "dark"])
def test_text_has_contrast(visit: Any, is_dark: bool) -> None:
    for path in PATHS:
        visit.open(path, "h1")
        visit.until("document.querySelectorAll('.quiet').length > 0")
        visit.check_contrast()
        ground = visit.page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
        assert (max(ground) < 64) == is_dark


@pytest.mark.parametrize("visit", [PHONE], indirect=True)
def test_pages_fit_a_phone(visit: Any) -> None:
    for path in PATHS:
        visit.open(path, "h1")
        visit.check_width()


def test_every_control_has_a_name_and_every_page_one_heading(visit: Any) -> None:
    for path in (*PATHS, "/"):
        visit.open(path, "h1")
        assert visit.probe("nameless") == []
        visit.check_headings()


def test_everything_is_reachable_by_keyboard(visit: Any) -> None:
    visit.open("/runs/detection", ".heatmap")
    squares = visit.page.locator(".square").count()
    reached = set()
    for _ in range(60):
        visit.press("Tab")
        reached.add(visit.page.evaluate("document.activeElement.getAttribute('href')"))
    assert sum("/cells/" in (href or "") for href in reached) == squares + 1  # and the link to the clean cell
