"""Small videos that brighten with time, questions and sentences about them, and functions that look at brightness."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jostle.io.video.encode import Writer

FPS, LENGTH, SIDE = 10, 40, 32
HEADER = "video,frame_count,width,height,question,answer,qid,type,a0,a1,a2,a3,a4\n"
QUESTIONS = (  # of each video: text, right option, type
    ("does it become brighter", "brighter", "order"),
    ("is it dark at the beginning", "dark", "place"),
)
OPTIONS = ("brighter", "darker", "dark", "bright", "neither")


def write_data(folder: Path, videos: Sequence[str] = ("11", "12", "13")) -> Path:
    """Write videos and NExT-QA's table of questions."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [HEADER]
    for number, name in enumerate(videos):
        with Writer(folder / f"{name}.mkv", size=(SIDE, SIDE), fps=FPS, codec="ffv1") as writer:
            for t in range(LENGTH):
                writer.write(np.full((SIDE, SIDE, 3), 20 + 5 * t + number, np.uint8))
        for i, (text, right, kind) in enumerate(QUESTIONS):
            rows.append(f"{name},{LENGTH},{SIDE},{SIDE},{text},{OPTIONS.index(right)},{i},{kind},{','.join(OPTIONS)}\n")
    (folder / "val.csv").write_text("".join(rows))
    return folder


def write_sentences(folder: Path) -> Path:
    """Write Charades-STA's table of sentences beside the videos of `write_data`."""
    lines = [f"{name} 1.0 3.0##it is grey.\n" for name in ("11", "12", "13")]
    (folder / "charades_sta_test.txt").write_text("".join(lines))
    return folder


def language_predictor(frames: npt.NDArray[np.uint8], question: str, options: Sequence[str]) -> Any:
    """Answer by brightness; without frames there is nothing to say."""
    if not len(frames):
        return "I cannot tell."
    levels = frames.mean(axis=(1, 2, 3))
    if "become" in question:
        word = "neither" if len(levels) < 2 else "brighter" if levels[-1] > levels[0] else "darker"
    else:
        word = "dark" if levels[0] < 128 else "bright"
    return f"The answer is {'ABCDE'[list(options).index(word)]}."


def find(frames: npt.NDArray[np.uint8], times: npt.NDArray[np.float64], sentence: str, duration: float) -> Any:
    """Return the times at which frames are grey."""
    if not len(frames):
        return []
    levels = frames.mean(axis=(1, 2, 3))
    grey = times[(levels > 69) & (levels < 172)]
    return [(float(grey.min()), float(grey.max()), 1.0)] if len(grey) else []


def predictions(run: Path, cell: str) -> dict[str, Any]:
    """Read the predictions file of a cell."""
    content: dict[str, Any] = json.loads((run / "predictions" / f"{cell}.json").read_text())
    return content
