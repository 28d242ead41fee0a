"""What is done with a finished run elsewhere: trackers, and cards for the hub."""

from __future__ import annotations

from pathlib import Path


def track(run: str | Path, to: str, *, folder: str | Path | None = None) -> str:
    """Log a finished run with an experiment tracker; the run itself stays as it is.

    Everything stays on this machine, unless the tracker's own variables (`WANDB_MODE`, `MLFLOW_TRACKING_URI`) name a
    server.

    Args:
        run: a run folder.
        to: `tensorboard`, `wandb` or `mlflow`.
        folder: for what the tracker keeps; by default `tracking` in the run folder.

    Returns:
        How to see it there.

    Raises:
        MissingExtra: if the tracker is not installed.
        ResourceError: if it fails.
    """
    from jostle.findings.record import RunRecord
    from jostle.trackers.tracker import track_run

    record = RunRecord.read(run)
    return track_run(record, to, record.folder / "tracking" if folder is None else Path(folder))


def card(run: str | Path, out: str | Path, *, licence: str | None = None) -> tuple[Path, Path]:
    """Write a model card and a data set card for the Hugging Face hub; nothing is sent.

    Args:
        run: a run folder.
        out: gets `model/README.md` and `dataset/README.md`.
        licence: as the hub writes it, such as `apache-2.0`; left out where it is not given.

    Raises:
        DataError: if a card is there already.
    """
    from jostle.cards.writing import write_cards
    from jostle.findings.record import RunRecord

    return write_cards(RunRecord.read(run), Path(out), licence)
