"""Paths of the files in a run folder, and readers of its metadata and scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from jostle.core.schema import Mismatch
from jostle.errors import DataError
from jostle.evaluation.run_folder.metadata import About, RunFacts
from jostle.evaluation.run_folder.scores import Scores
from jostle.evaluation.tasks.task import tasks
from jostle.evaluation.tasks.validation import check_content
from jostle.io.files.ledger import check_same
from jostle.io.files.records import read_record

_REMEDY = "restore it from a copy, or start again in a new folder"


@dataclass(frozen=True)
class RunFolder:
    """Files of a run; a file with its final name is complete.

    `videos/` stores the predictions for each video: with it a stopped run resumes, and a deleted predictions file is
    restored. Without it they are computed again.
    """

    path: Path
    suffix: str = ".json"  # suffix of the predictions files

    @property
    def about(self) -> Path:
        """Path of the metadata of the run."""
        return self.path / "run.json"

    @property
    def predictions(self) -> Path:
        """Folder of predictions, one file per cell."""
        return self.path / "predictions"

    @property
    def videos(self) -> Path:
        """Folder of results, one file per video with its predictions in every cell."""
        return self.path / "videos"

    @property
    def frames(self) -> Path:
        """Folder of frames that came as objects, one folder of images per video."""
        return self.path / "frames"

    @property
    def scores(self) -> Path:
        """Path of the scores of the cells."""
        return self.path / "scores.json"

    @property
    def truth(self) -> Path:
        """Path of the annotations, so that the run can be read without its data set."""
        return self.path / "truth.json"

    @property
    def diagnosis(self) -> Path:
        """Path of the diagnosis of a detector, clean and in every cell."""
        return self.path / "diagnosis.json"

    @property
    def failures(self) -> Path:
        """Path of the list of videos that could not be used."""
        return self.path / "failures.jsonl"

    @property
    def adaptation(self) -> Path:
        """Folder of the states of networks that adapt online, one file per cell, so that a stopped run resumes."""
        return self.path / "adaptation"

    @property
    def journal(self) -> Path:
        """Path of the journal, one event per line."""
        return self.path / "journal.jsonl"

    def predictions_of(self, slug: str) -> Path:
        """Return the path of the predictions of one cell."""
        return self.predictions / f"{slug}{self.suffix}"

    def read_about(self) -> About:
        """Read the metadata of the run."""
        about = self.read_record()
        try:
            check_content(about.content)
        except Mismatch as error:
            if ways := [part.way for part in about.parts if part.shelf == "tasks" and part.name not in tasks]:
                raise DataError(
                    f"{self.path}: a run of {about.content.task}, a task that is not here; to install it: {ways[0]}"
                ) from None
            raise DataError(f"{self.about}: {error.under('content')}; {_REMEDY}", fault="F110") from None
        return about

    def read_record(self) -> About:
        """Read the metadata of the run, whatever its task."""
        if not self.about.exists() and not self.about.is_symlink():
            raise DataError(f"{self.path}: no run.json there; give the folder that `jostle run` wrote")
        return read_record(About, self.about, _REMEDY)

    def read_scores(self) -> Scores:
        """Read the scores of the run.

        Raises:
            DataError: if there are no scores yet, or they are damaged.
        """
        return read_record(Scores, self.scores, "the same `jostle run` resumes and writes it again")

    def check(self, facts: RunFacts, versions: Mapping[str, str]) -> bool:
        """Whether a run of these facts, with these library versions, has begun here."""
        if not self.about.exists():
            return False
        before = self.read_about()
        now = {field.name: getattr(facts, field.name) for field in fields(RunFacts) if field.name != "content"}
        now |= {name: version for name, version in versions.items() if name != "python" and name in before.versions}
        check_same(self.path, "another run", vars(before) | before.versions, now, "use the options of that run")
        return True

    def foreign_entries(self) -> list[str]:
        """Return the names of files and folders here that neither a run nor a probe writes."""
        own = [self.about, self.predictions, self.videos, self.frames, self.scores, self.truth, self.diagnosis]
        own += [self.failures, self.adaptation, self.journal, self.path / "probe", self.path / "probe.json"]
        written = {path.name for path in own}
        return sorted(path.name for path in self.path.iterdir() if path.name not in written and path.name[0] != ".")

    def leftovers(self) -> Iterator[Path]:
        """Yield partially written files of a killed process."""
        for folder in (self.path, self.predictions, self.videos, self.adaptation):
            yield from folder.glob(".*.part-*")
            yield from folder.glob(".*.new.*")


def run_folder(path: Path) -> Path:
    """Return the run folder of a path: itself, or the run folder that contains the file.

    >>> run_folder(Path("no/such/thing"))
    PosixPath('no/such/thing')
    """
    if path.is_file():
        for folder in (path.absolute().parent, path.absolute().parent.parent):
            if (folder / "run.json").is_file():
                return path.parent if folder == path.absolute().parent else path.parent.parent
    return path
