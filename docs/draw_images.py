"""Draws the figure of `how-to/diagnose-a-detector.md` from the example's two runs: python docs/draw_images.py

The numbers are those of `examples/score_two_runs.py`, so the picture and the text on that page agree.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from PIL import Image

import jostle
from jostle.report.diagnosis_figures import draw_clean_against_corrupted

DOCS = Path(__file__).resolve().parent
COLOURS = 128  # of the palette; a figure of flat colours needs no more, and takes a third of the bytes


def main(folder: Path = DOCS / "images") -> Path:
    """Write the figure; the path of the file."""
    sys.path.insert(0, str(DOCS.parent / "examples"))
    import score_two_runs as example

    truth = example.made_truth()
    clean, rough = (jostle.diagnose(found, truth).to_dict() for found in example.made_runs(truth).values())
    with tempfile.TemporaryDirectory() as made:
        (drawn,) = draw_clean_against_corrupted(clean, rough, Path(made), ["png"], name="rough")
        target = folder / drawn.name.replace("_", "-")
        Image.open(drawn).convert("RGB").quantize(COLOURS).save(target, optimize=True)
    return target


if __name__ == "__main__":
    print(main())
