"""Where the files of a run lie, and the door through which what it is about and its scores are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from jostle.errors import DataError, SourceChanged
from jostle.evaluation.run_folder.metadata import About, Origin
from jostle.evaluation.run_folder.scores import Scores
from jostle.io.files.records import read_record

SHOWN = 80  # characters of a value in a message


@dataclass(frozen=True)
class RunFolder:
    """The files of a run. Whatever lies under its final name is complete.

    `videos/` keeps what was found in each video until nobody needs it: it makes a stopped run go on, and gives a
    deleted predictions file back. Without it the same is computed again.

    Attributes:
        suffix: of the files of predictions.
    """

    path: Path
    suffix: str = ".json"

    @property
    def about(self) -> Path:
        """What ran."""
        return self.path / "run.json"

    @property
    def predictions(self) -> Path:
        """One file a cell."""
        return self.path / "predictions"

    @property
    def videos(self) -> Path:
        """One file a video, with what was found in it in every cell."""
        return self.path / "videos"

    @property
    def scores(self) -> Path:
        """What the predictions are worth."""
        return self.path / "scores.json"

    @property
    def truth(self) -> Path:
        """What is annotated: the run can be read without its data set."""
        return self.path / "truth.json"

    @property
    def diagnosis(self) -> Path:
        """Why a detector fails, clean and in every cell."""
        return self.path / "diagnosis.json"

    @property
    def failures(self) -> Path:
        """Videos that could not be used."""
        return self.path / "failures.jsonl"

    @property
    def journal(self) -> Path:
        """What has been done, an event a line."""
        return self.path / "journal.jsonl"

    def predictions_of(self, slug: str) -> Path:
        """The predictions of one cell."""
        return self.predictions / f"{slug}{self.suffix}"

    def read_about(self) -> About:
        """What ran.

        Raises:
            DataError: if there is no run, or what it says of itself is damaged.
        """
        if not self.about.exists() and not self.about.is_symlink():
            raise DataError(f"{self.path}: no run.json there; give the folder that `jostle run` wrote")
        return read_record(About, self.about, "give a copy that is whole, or start again in a new folder")

    def read_scores(self) -> Scores:
        """What the predictions are worth.

        Raises:
            DataError: if there are no scores yet, or they are damaged.
        """
        return read_record(Scores, self.scores, "the same `jostle run` goes on and writes it anew")

    def check(self, origin: Origin, versions: Mapping[str, str]) -> bool:
        """Whether a run of this origin, with these versions of libraries, has begun here.

        Raises:
            SourceChanged: if one of another has; what is different is said.
        """
        if not self.about.exists():
            return False
        before = self.read_about()
        said = [
            f"{field.name} was {_short(was)}, now {_short(now)}"
            for field in fields(Origin)
            if field.name != "content" and (was := getattr(before, field.name)) != (now := getattr(origin, field.name))
        ]
        used = before.versions
        said += [
            f"{package} was {used[package]}, now {version}"
            for package, version in versions.items()
            if package != "python" and used.get(package, version) != version
        ]
        if said:
            raise SourceChanged(
                f"{self.path}: holds another run: {'; '.join(said)}. Name another folder, or give what that one had"
            )
        return True

    def leftovers(self) -> Iterator[Path]:
        """Half-written files of a process that was killed."""
        for folder in (self.path, self.predictions, self.videos):
            yield from folder.glob(".*.part-*")
            yield from folder.glob(".*.new.*")


def run_folder(path: Path) -> Path:
    """The folder of the run that a path means: itself, or the one that a file of a run lies in.

    >>> run_folder(Path("no/such/thing"))
    PosixPath('no/such/thing')
    """
    if path.is_file():
        for folder in (path.absolute().parent, path.absolute().parent.parent):
            if (folder / "run.json").is_file():
                return path.parent if folder == path.absolute().parent else path.parent.parent
    return path


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
