"""Where the files of a run lie, and what it is a run of."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from jostle.errors import DataError, SourceChanged

FORMAT = 1
SHOWN = 80  # characters of a value in a message


@dataclass(frozen=True)
class Origin:
    """What decides the results of a run. A folder holds results of one origin.

    Attributes:
        benchmark: its name.
        fingerprint: of the benchmark.
        content: what the benchmark consists of, as plain values.
        model: its name.
        weights: fingerprint of its weights, or None where nothing is known of them.
        weights_from: what that is the fingerprint of: a file, a folder, tensors, or nothing.
        extractor: the name of what makes features for a detector; None where nothing does.
        extractor_weights: fingerprint of the extractor's weights.
        rule: how the windows of features are counted; None where there are none.
        released_faults: of the THUMOS14-C extractors, which were repeated.
        shown: how frames become the input of a recogniser, and how its classes were matched; None for others.
        device: that the model ran on: another gives other last digits.
        seed: of every random draw.
        dataset: the name of the data set.
        subset: the part of it that is looked at.
        truth: fingerprint of what is annotated there.
        missing: ids that are annotated and have no file.
    """

    benchmark: str
    fingerprint: str
    content: dict[str, Any]
    model: str
    weights: str | None
    weights_from: str
    extractor: str | None
    extractor_weights: str | None
    rule: str | None
    released_faults: tuple[str, ...]
    shown: dict[str, Any] | None
    device: str
    seed: int
    dataset: str
    subset: str
    truth: str
    missing: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self) | {"released_faults": list(self.released_faults), "missing": list(self.missing)}


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

    def read_about(self) -> dict[str, Any]:
        """The content of run.json.

        Raises:
            DataError: if there is none, or it is damaged.
        """
        try:
            found = json.loads(self.about.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise DataError(f"{self.path}: no run.json there; give the folder that `jostle run` wrote") from None
        except (OSError, ValueError):
            raise DataError(f"{self.about}: damaged; start again in a new folder") from None
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise DataError(f"{self.about}: not of format {FORMAT}; another version of jostle wrote it")
        return found

    def check(self, origin: Origin, versions: Mapping[str, str]) -> bool:
        """Whether a run of this origin, with these versions of libraries, has begun here.

        Raises:
            SourceChanged: if one of another has; what is different is said.
        """
        if not self.about.exists():
            return False
        before, now = self.read_about(), origin.to_dict()
        said = [
            f"{field.name} was {_short(before.get(field.name))}, now {_short(now[field.name])}"
            for field in fields(Origin)
            if field.name != "content" and before.get(field.name) != now[field.name]
        ]
        used = before.get("versions", {})
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


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
