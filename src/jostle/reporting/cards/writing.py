"""Both cards of a run, each in a folder of its own: a repository on the hub has one README.md."""

from __future__ import annotations

from pathlib import Path

from jostle.errors import DataError
from jostle.io.files.atomic import write_text
from jostle.reporting.analysis.record import RunRecord
from jostle.reporting.cards.dataset_card import dataset_card
from jostle.reporting.cards.model_card import model_card


def write_cards(record: RunRecord, folder: Path, licence: str | None = None) -> tuple[Path, Path]:
    """Write `model/README.md` and `dataset/README.md` of a run.

    Raises:
        DataError: if one is there already; somebody may have written into it.
    """
    targets = (folder / "model" / "README.md", folder / "dataset" / "README.md")
    for path in targets:
        if path.exists():
            raise DataError(f"{path}: is there already; move it away, or name another folder", fault="F89")
    for path, text in zip(targets, (model_card(record, licence), dataset_card(record, licence)), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, [text])
    return targets
