"""Draw the figures of the pages: python docs/draw_images.py

The diagnosis is that of `examples/score_two_runs.py`, so picture and text of its page agree. The puppets are drawn
by the code of `jostle build --clean`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

import jostle
from jostle.datasets.puppets.film import FPS, Film
from jostle.datasets.puppets.trimmed import TrimmedClip
from jostle.datasets.puppets.untrimmed import Video
from jostle.reporting.charts.diagnosis import draw_clean_against_corrupted
from jostle.reporting.charts.palette import SERIES

BLUE, ORANGE, GREY = (SERIES[name][0] for name in ("clean", "localization", "background"))
FONTS = {"font.family": "serif", "font.serif": ["STIXGeneral", "DejaVu Serif"]}
DPI = 200
DOCS = Path(__file__).resolve().parent
QUALITY = 88  # of pictures of films, which a palette would spoil
COLOURS = 128  # of the palette; a figure of flat colours needs no more, and takes a third of the bytes

# Test clip of each class, and how far into the action its frame lies.
CLIP_OF_CLASS = {"bow": (3, 0.5), "catch": (2, 0.45), "jump": (1, 0.3), "kick": (1, 0.5), "lower": (3, 0.3),
         "pick_up": (1, 0.5), "pull": (4, 0.5), "push": (2, 0.5), "put_down": (4, 0.5), "raise": (3, 0.7),
         "salute": (3, 0.5), "sit_down": (3, 0.5), "squat": (1, 0.5), "stand_up": (4, 0.5), "throw": (3, 0.3),
         "wave": (4, 0.5)}  # fmt: skip
ACTION = ("throw", 2)  # drawn over time
STEPS = 8  # frames of it, of a whole video, and in a row of anything
MENDED = (30, 10)  # frames of a film that are mended, and how many of them are drawn
DAMAGE = {(3, 7): "thumos14-c/black_frame:1", (13, 17): "thumos14-c/occlusion:1", (23, 26): "thumos14-c/overexposure:1"}
WIDTH, GAP, TITLE, CAPTION = 7.2, 0.05, 0.24, 0.22  # inches
CELL = (WIDTH - (STEPS - 1) * GAP) / STEPS
HEIGHT = 3 * TITLE + 4 * CELL + 3 * CAPTION + 0.38


def main(folder: Path = DOCS / "images") -> list[Path]:
    """Write the figures, and return the paths of the files."""
    return [draw_diagnosis(folder), draw_puppets(folder), draw_mending(folder)]


def draw_diagnosis(folder: Path) -> Path:
    """Draw two diagnoses side by side, for `how-to/diagnose-a-detector.md`."""
    sys.path.insert(0, str(DOCS.parent / "examples"))
    import score_two_runs as example

    truth = example.make_truth()
    runs = example.make_runs(truth)
    clean, rough = (jostle.diagnose(predictions, truth).to_dict() for predictions in runs.values())
    with tempfile.TemporaryDirectory() as scratch:
        (path,) = draw_clean_against_corrupted(clean, rough, Path(scratch), ["png"], names=("clean", "rough"))
        target = folder / path.name.replace("_", "-")
        Image.open(path).convert("RGB").quantize(COLOURS).save(target, optimize=True)
    return target


def draw_puppets(folder: Path) -> Path:
    """Draw the sixteen actions, one of them over time, and one video, for `how-to/use-the-puppets.md`."""
    throw, video = TrimmedClip(0, "test", *ACTION).film(), Video(0, "test", 1).film()
    begins, ends = throw.actions[0].start, throw.actions[0].end
    whole = video.frames / float(FPS)
    middles = (np.arange(STEPS) + 0.5) * whole / STEPS
    with rc_context(FONTS):
        figure = Figure(figsize=(WIDTH, HEIGHT))
        _title(figure, 0.0, "(a) sixteen actions")
        for i, (label, (number, share)) in enumerate(CLIP_OF_CLASS.items()):
            film = TrimmedClip(0, "test", label, number).film()
            start, end = film.actions[0].start, film.actions[0].end
            axes = _cell(figure, TITLE + (i // STEPS) * (CELL + CAPTION), i % STEPS)
            _show(axes, film, start + share * (end - start), label.replace("_", " "))
        top = TITLE + 2 * (CELL + CAPTION)
        _title(figure, top, f"(b) one {ACTION[0]}, from beginning to end")
        for i, time in enumerate(np.linspace(begins, ends, STEPS)):
            _show(_cell(figure, top + TITLE, i), throw, time, f"{time - begins:.1f} s")
        top += TITLE + CELL + CAPTION
        _title(figure, top, f"(c) one video of {whole:.0f} s, and what is annotated in it")
        for i, time in enumerate(middles):
            _show(_cell(figure, top + TITLE, i), video, time, "")
        bar = HEIGHT - top - TITLE - CELL
        _timeline(figure.add_axes((0.0, 0.0, 1.0, bar / HEIGHT)), video, middles)
        return _save_jpeg(figure, folder / "puppets.jpg")


def draw_mending(folder: Path) -> Path:
    """Draw frames of an action with three damaged stretches, and mended, for `how-to/mend.md`."""
    film = Video(0, "test", 1).film()
    action = film.actions[1]
    first = int((action.start + action.end) / 2 * float(FPS)) - MENDED[0] // 2
    clean = film.draw(first, first + MENDED[0])
    is_damaged, damaged = np.zeros(len(clean), np.bool_), np.array(clean)
    for (lo, hi), spec in DAMAGE.items():
        is_damaged[lo:hi] = True
        damaged[lo:hi] = jostle.corrupt(clean, spec, placement=f"frames:{lo}-{hi}")[lo:hi]
    mended = jostle.mend(damaged, damaged=is_damaged)
    indices = range(1, MENDED[0], MENDED[0] // MENDED[1])
    size = (WIDTH - (MENDED[1] - 1) * GAP) / MENDED[1]
    height = 2 * (TITLE + size) + 2 * GAP
    with rc_context(FONTS):
        figure = Figure(figsize=(WIDTH, height))
        for row, (words, frames) in enumerate((("damaged", damaged), ("mended", mended))):
            top = row * (TITLE + size + GAP)
            figure.text(0.0, 1 - (top + 0.6 * TITLE) / height, words, fontsize=10.5, va="center")
            for column, t in enumerate(indices):
                left, bottom = column * (size + GAP) / WIDTH, 1 - (top + TITLE + size) / height
                axes = figure.add_axes((left, bottom, size / WIDTH, size / height))
                axes.imshow(frames[t], interpolation="lanczos")
                axes.set_xticks([])
                axes.set_yticks([])
                for side in axes.spines.values():
                    side.set(visible=bool(is_damaged[t]), color=ORANGE if row == 0 else BLUE, linewidth=2.5)
        return _save_jpeg(figure, folder / "mended.jpg")


def _save_jpeg(figure: Figure, target: Path) -> Path:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "figure.png"
        figure.savefig(path, dpi=DPI)
        Image.open(path).convert("RGB").save(target, quality=QUALITY, subsampling=0, optimize=True)
    return target


def _title(figure: Figure, top: float, words: str) -> None:
    figure.text(0.0, 1 - (top + 0.6 * TITLE) / HEIGHT, words, fontsize=10.5, va="center")


def _cell(figure: Figure, top: float, column: int) -> Axes:
    """Return the axes of a frame, a number of inches below the top."""
    left, bottom = column * (CELL + GAP) / WIDTH, 1 - (top + CELL) / HEIGHT
    return figure.add_axes((left, bottom, CELL / WIDTH, CELL / HEIGHT))


def _show(axes: Axes, film: Film, time: float, caption: str) -> None:
    """Show the frame of a film at a time, with a caption below."""
    frame = min(int(time * float(FPS)), film.frames - 1)
    axes.imshow(film.draw(frame, frame + 1)[0], interpolation="lanczos")
    axes.axis("off")
    axes.text(0.5, -0.03, caption, transform=axes.transAxes, ha="center", va="top", fontsize=8.5)


def _timeline(axes: Axes, film: Film, marks: npt.NDArray[np.float64]) -> None:
    """Draw a bar for each action of a film, and marks at the times of the frames above."""
    whole = film.frames / float(FPS)
    axes.barh(0, whole, height=0.6, color=GREY, alpha=0.45)
    for action in film.actions:
        axes.barh(0, action.end - action.start, left=action.start, height=0.6, color=ORANGE)
        words = action.label.replace("_", " ")
        axes.annotate(words, ((action.start + action.end) / 2, -0.4), ha="center", va="top", fontsize=8.5)
    axes.plot(marks, np.full(len(marks), 0.62), marker=7, linestyle="", color=BLUE, markersize=5)
    axes.set_xlim(0, whole)
    axes.set_ylim(-1.35, 0.95)
    axes.axis("off")


if __name__ == "__main__":
    for path in main():
        print(path)
