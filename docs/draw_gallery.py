"""Draw the gallery of all corruptions and write its page: python docs/draw_gallery.py

The frames are of a film of the puppets, so that nothing is needed but jostle. Names and summaries are those of the
registry; `tests/reporting/figures/test_gallery.py` checks that page and pictures are up to date.
"""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from jostle.core.types.clip import Clip
from jostle.corruptions.engine.corruption import Corruption, corruptions
from jostle.corruptions.engine.spec import Spec
from jostle.datasets.puppets.film import FPS, SIZE
from jostle.datasets.puppets.untrimmed import Video
from jostle.reporting.figures.sheet import SHEET_FRAMES, draw_sheet, sheet_rows

DOCS = Path(__file__).resolve().parent
PAGE = DOCS / "gallery.md"
IMAGES = DOCS / "images" / "gallery"
FAMILIES = ("noise", "blur", "weather", "light", "camera", "occlusion", "digital", "compression", "transmission",
            "order", "rate", "mix")  # fmt: skip
VIDEO, MIDDLE_S = Video(0, "test", 2), 69.0  # somebody pulls a crate along a beach
QUALITY = 82

HEAD = """% Written by docs/draw_gallery.py; change the code it is made from instead.

# All corruptions

The {count} corruptions of jostle's own table, each at its five severities, on one frame of a film of the
[puppets](how-to/use-the-puppets.md). A few corrupt only part of a clip: the orange bar says which. Where the order or
the rate of frames changes, the curve says which frame is displayed when: time runs to the right, and a clean clip would
be the straight line from the lower left to the upper right. Transmission errors hit some frames and spare others; the
frame on display may be among the lucky. Where so few bits are left that the H.264 encoder writes next to nothing, the
decoder gives grey.

The [reference](reference/index.md) has the value behind every severity, and the tables of the papers. `jostle sheet`
draws such a picture of any video; the gallery of [`jostle view`](how-to/view-a-run.md) moves.
"""


def main(page: Path = PAGE, images: Path = IMAGES) -> list[Path]:
    """Write the page and a picture for each family, and return the paths of the files."""
    images.mkdir(parents=True, exist_ok=True)
    page.write_text(page_text(), encoding="utf-8")
    return [page, *(draw_family(family, images) for family in FAMILIES)]


def members(family: str) -> list[Corruption]:
    """Return the corruptions of a family, by name."""
    return [corruption for corruption in corruptions.values() if corruption.family == family]


def page_text() -> str:
    """Return the page: for each family its picture, and a sentence on each of its corruptions."""
    lines = [HEAD.format(count=len(corruptions))]
    for family in FAMILIES:
        names = ", ".join(corruption.name for corruption in members(family))
        alt = f"Clean and at severities 1 to 5: {names}"
        lines += [f"## {family.capitalize()}", "", f"![{alt}](images/gallery/{family}.jpg)", ""]
        lines += [f"- `{corruption.name}`: {corruption.summary}" for corruption in members(family)]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def draw_family(family: str, folder: Path) -> Path:
    """Draw a row of pictures for each corruption of a family, clean and at severities 1 to 5; return the path."""
    middle = round(MIDDLE_S * float(FPS))
    lo = middle - SHEET_FRAMES // 2
    clip = Clip.at_rate(VIDEO.film().draw(lo, lo + SHEET_FRAMES), FPS)
    specs = [Spec.parse(corruption.name) for corruption in members(family)]
    sheet = draw_sheet(sheet_rows(clip, specs, video_id=VIDEO.id), ["clean", *"12345"], width=SIZE[1])
    target = folder / f"{family}.jpg"
    Image.fromarray(sheet).save(target, quality=QUALITY, subsampling=0, optimize=True)
    return target


if __name__ == "__main__":
    for path in main():
        print(path)
