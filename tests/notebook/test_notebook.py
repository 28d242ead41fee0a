"""The example notebook: executed from top to bottom, it reproduces its stored outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "in_a_notebook.ipynb"
INSTALL_HINT = "is not installed: pip install 'jostle[notebook]' nbclient nbformat"


def outputs_of(notebook: Any) -> list[list[dict[str, str]]]:
    return [[dict(out.data) for out in cell.outputs] for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.filterwarnings("ignore")  # warnings of the notebook's own machinery
def test_notebook_reproduces_its_outputs() -> None:
    nbformat = pytest.importorskip("nbformat", reason=f"nbformat {INSTALL_HINT}")
    nbclient = pytest.importorskip("nbclient", reason=f"nbclient {INSTALL_HINT}")
    for name in ("ipykernel", "pandas"):
        pytest.importorskip(name, reason=f"{name} {INSTALL_HINT}")
    stored = nbformat.read(NOTEBOOK, 4)
    executed = nbformat.read(NOTEBOOK, 4)
    for cell in executed.cells:
        cell.outputs = [] if cell.cell_type == "code" else cell.get("outputs", [])
    nbclient.NotebookClient(executed, timeout=300, kernel_name="python3").execute()
    before, after = outputs_of(stored), outputs_of(executed)
    assert [[set(out) for out in cell] for cell in after] == [[set(out) for out in cell] for cell in before]
    assert all(len(cell) == 1 for cell in after)  # one output each
    tables = [out["text/html"] for cell in after for out in cell if "<table" in out.get("text/html", "")]
    assert len(tables) == 6
    assert tables == [out["text/html"] for cell in before for out in cell if "<table" in out.get("text/html", "")]
    assert NOTEBOOK.stat().st_size < 1_000_000
