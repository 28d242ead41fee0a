"""Many models through one benchmark: each has a run folder of its own, and they are shown side by side."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.api.running import run
from jostle.errors import BadValue, DataError, JostleError

if TYPE_CHECKING:
    from jostle.findings.stability import Stabilities
    from jostle.running.runner import Run

Watching = Callable[[str], AbstractContextManager[dict[str, Any]]]


@dataclass(frozen=True)
class Entry:
    """A model to be run, by name, and its weights."""

    model: str
    weights: str | None = None

    @property
    def folder(self) -> str:
        """Name of its run folder.

        >>> Entry("timm/resnet50.a1_in1k").folder, Entry("puppet_frames", "robust").folder
        ('timm-resnet50.a1_in1k', 'puppet_frames-robust')
        """
        word = self.weights if self.weights and re.fullmatch(r"\w+", self.weights) else Path(self.weights or "").stem
        said = f"{self.model}-{word}" if word and word != "public" else self.model
        return re.sub(r"[^\w.+-]+", "-", said).strip("-.")


@dataclass(frozen=True)
class Many:
    """What became of the models.

    Attributes:
        runs: by name of the run folder, in the order that was asked for.
        failed: those that could not be run, and why.
    """

    runs: dict[str, Run]
    failed: dict[str, str]


def run_many(
    benchmark: str | Path,
    models: Iterable[str | Entry],
    *,
    out: str | Path,
    weights: str | None = None,
    watching: Watching | None = None,
    **asked: Any,
) -> Many:
    """Run a benchmark on one model after the other; what was stopped goes on, one that fails does not stop the rest.

    Args:
        models: names, or entries that `read_models` made of a file.
        out: a folder of run folders, each called by its model.
        weights: of all that do not name their own.
        watching: called with what is run, gives arguments of `run` that show how far it is.
        asked: everything else is as in `jostle.run`.

    Raises:
        BadValue: if two would have the same folder.
        DataError: if not one of them could be run.
    """
    entries = [one if isinstance(one, Entry) else Entry(one) for one in models]
    entries = [one if one.weights is not None else Entry(one.model, weights) for one in entries]
    folders = [entry.folder for entry in entries]
    twice = next((name for name in folders if folders.count(name) > 1), None)
    if twice is not None or not entries:
        raise BadValue(f"the model {twice} is there twice; name it once" if twice else "there are no models to run")
    runs: dict[str, Run] = {}
    failed: dict[str, str] = {}
    for number, entry in enumerate(entries, 1):
        said = f"{entry.folder} ({number} of {len(entries)})"
        try:
            with nullcontext({}) if watching is None else watching(said) as shown:
                runs[entry.folder] = run(
                    benchmark, model=entry.model, weights=entry.weights, out=Path(out) / entry.folder, **shown, **asked
                )
        except JostleError as error:
            failed[entry.folder] = str(error)
    if not runs:
        name, why = next(iter(failed.items()))
        raise DataError(f"none of the {len(entries)} models could be run; {name}: {why}")
    return Many(runs, failed)


def read_models(path: str | Path) -> list[Entry]:
    """Models of a text file: one a line, its name and, if it has its own, its weights; `#` begins a remark.

    Raises:
        DataError: if it cannot be read, or a line says more than that.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read as text: {error}") from None
    made = []
    for number, line in enumerate(lines, 1):
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            raise DataError(f"{path}, line {number}: {error}; put quotes around a path in pairs") from None
        if len(words) > 2:
            raise DataError(f"{path}, line {number}: a line is a model and its weights, not {len(words)} words")
        if words:
            made.append(Entry(*words))
    return made


def stability(runs: Sequence[str | Path]) -> Stabilities:
    """Accuracy and pm-k of runs of frame classifiers, side by side, and what papers print of the same benchmark."""
    from jostle.findings.record import RunRecord
    from jostle.findings.stability import stabilities

    if not runs:
        raise BadValue("name a run")
    return stabilities([RunRecord.read(folder) for folder in runs])


def draw_stability(
    runs: Sequence[str | Path] | Stabilities, out: str | Path, *, formats: Sequence[str] = ("png", "pdf", "svg")
) -> list[Path]:
    """Draw accuracy against pm-k, a point a run, into a folder.

    Raises:
        Incomparable: if the runs are of different benchmarks or ground truths.
        MissingExtra: without matplotlib.
    """
    from jostle.figures.stability_figures import draw_stability as draw
    from jostle.findings.stability import Stabilities

    found = runs if isinstance(runs, Stabilities) else stability(runs)
    published = () if found.apart else found.published
    return draw(found.runs, Path(out), formats, title=found.title, k=found.k, published=published)
