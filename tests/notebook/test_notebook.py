"""The notebook among the examples: run from top to bottom, it shows what it showed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "in_a_notebook.ipynb"
WANTS = "is not installed: pip install 'jostle[notebook]' nbclient nbformat"


def shown(notebook: Any) -> list[list[dict[str, str]]]:
    return [[dict(out.data) for out in cell.outputs] for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.filterwarnings("ignore")  # of the notebook's own machinery
def test_the_notebook_shows_what_it_showed() -> None:
    nbformat = pytest.importorskip("nbformat", reason=f"nbformat {WANTS}")
    nbclient = pytest.importorskip("nbclient", reason=f"nbclient {WANTS}")
    for name in ("ipykernel", "pandas"):
        pytest.importorskip(name, reason=f"{name} {WANTS}")
    kept = nbformat.read(NOTEBOOK, 4)
    made = nbformat.read(NOTEBOOK, 4)
    for cell in made.cells:
        cell.outputs = [] if cell.cell_type == "code" else cell.get("outputs", [])
    nbclient.NotebookClient(made, timeout=300, kernel_name="python3").execute()
    before, after = shown(kept), shown(made)
    assert [[set(out) for out in cell] for cell in after] == [[set(out) for out in cell] for cell in before]
    assert all(len(cell) == 1 for cell in after)  # one output each, and no wall of lines
    tables = [out["text/html"] for cell in after for out in cell if "<table" in out.get("text/html", "")]
    assert len(tables) == 6
    assert tables == [out["text/html"] for cell in before for out in cell if "<table" in out.get("text/html", "")]
    assert NOTEBOOK.stat().st_size < 1_000_000
