"""Plugin of pytest: a fixture that runs a benchmark on a model and fails the test where it breaks its budget.

pytest loads it in every session of an environment that has jostle, so nothing is imported until the fixture is used.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from jostle.gate.verdict import Check

MARKER = "robustness"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("jostle", "robustness of video models")
    group.addoption("--jostle-budget", metavar="FILE", help="budget of `robustness.check` where a test gives none")
    group.addoption(
        "--jostle-update-reference",
        action="store_true",
        help="keep the runs of this session as references instead of comparing with them",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{MARKER}: runs a benchmark of jostle; deselect with -m 'not {MARKER}'")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "robustness" in getattr(item, "fixturenames", ()):
            item.add_marker(MARKER)


@pytest.fixture
def robustness(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RobustnessFixture:
    """Run benchmarks on models and check their scores, see `jostle.check`."""
    options = request.config.option
    budget = None if options.jostle_budget is None else Path(options.jostle_budget)
    return RobustnessFixture(
        folder=tmp_path_factory.mktemp("jostle", numbered=True),
        root=request.config.rootpath,
        budget=budget,
        update_reference=options.jostle_update_reference,
    )


@dataclass(repr=False)
class RobustnessFixture:
    """Value of the fixture `robustness`."""

    folder: Path  # where runs are written
    root: Path  # that paths of references are relative to
    budget: Path | None = None  # where a test gives none
    update_reference: bool = False
    runs: int = 0

    def check(
        self,
        model: Any,
        benchmark: str | Path,
        *,
        at_least: float | Mapping[str, float] | None = None,
        against: str | Path | None = None,
        budget: str | Path | Mapping[str, Any] | None = None,
        undecided: Literal["fail", "pass"] = "fail",
        **options: Any,
    ) -> Check:
        """Run a benchmark on a model, and fail the test unless it keeps its budget.

        Args:
            model: as `jostle.run` takes it.
            at_least: least mean corrupted score, or least scores by metric: `{"clean": 0.6, "family:noise": 0.4}`.
            against: folder of a reference run, relative to the root of the test session. With
                `--jostle-update-reference` the run is written there, and nothing is compared.
            budget: further conditions, see `jostle.check`; by default the file of `--jostle-budget`.
            undecided: whether a test fails where the videos are too few to decide. It fails in any case where something
                could not be looked at, as a video that does not decode.
            options: everything else goes to `jostle.run`, such as `weights`, `data` or `cells`, which are then all that
                the conditions are about.
        """
        __tracebackhide__ = True
        from inspect import signature

        from jostle.api.benchmarks import run
        from jostle.api.results import check
        from jostle.errors import BadValue, UnknownName

        if undecided not in ("fail", "pass"):
            raise BadValue(f"undecided is 'fail' or 'pass', not {undecided!r}")
        known = {*signature(run).parameters} - {"out"}
        for name in options:
            if name not in known:
                own = ("at_least", "against", "budget", "undecided")
                raise UnknownName("option of robustness.check", name, {*known, *own})
        if against is not None and not (isinstance(against, str | os.PathLike) and str(against)):
            raise BadValue(f"against must be the folder of a run, not {against!r}")
        reference = None if against is None else self.root / against
        if reference is not None:
            _restore(reference)
        if reference is not None and self.update_reference:
            _check_replaceable(reference, self.root)
        conditions = self._conditions(at_least, reference, budget)
        self.runs += 1
        out = self.folder / f"run-{self.runs}"
        done = run(benchmark, model=model, out=out, **options)
        cells = None if options.get("cells") is None else [one["cell"] for one in done.scores["cells"]]
        updating = reference is not None and self.update_reference
        checked = check(out, out if updating else reference, conditions, cells=cells)
        if reference is not None and updating and not checked.gaps:
            _replace(reference, out)
        forgiven = undecided == "pass" and not any(one.gap for one in checked.conditions)
        if checked.decision == "fail" or (checked.decision == "undecided" and not forgiven):
            raise AssertionError(_explain(checked))
        return checked

    def _conditions(
        self,
        at_least: float | Mapping[str, float] | None,
        reference: Path | None,
        budget: str | Path | Mapping[str, Any] | None,
    ) -> Any:
        """Return the conditions of the arguments and of the budget together."""
        from jostle.gate.budget import AGAINST_REFERENCE, Budget, Condition, read_budget

        limits = at_least if isinstance(at_least, Mapping) else {"mean_corrupted": at_least}
        conditions = [Condition(metric, at_least=limit) for metric, limit in limits.items() if limit is not None]
        listed = read_budget(budget if budget is not None else self.budget)
        if listed is not None:
            conditions += listed.condition
        elif reference is not None:
            conditions += AGAINST_REFERENCE.condition
        return Budget(tuple(conditions))


def _check_replaceable(reference: Path, root: Path) -> None:
    """Raise BadValue unless a reference is absent, or a run folder that may be replaced."""
    from jostle.errors import BadValue, JostleError
    from jostle.evaluation.run_folder.folder import RunFolder

    what = "--jostle-update-reference replaces run folders only"
    below = [path for path in (reference, *reference.parents) if path != root and path.is_relative_to(root)]
    for path in dict.fromkeys((reference, *below, *_beside(reference))):
        if path.is_symlink():
            raise BadValue(f"{path}: a link, and {what}; name the folder itself in against=")
    if root.resolve().is_relative_to(reference.resolve()):
        raise BadValue(f"{reference}: contains the tests, and {what}; name a folder of its own in against=")
    if not reference.exists():
        return
    try:
        RunFolder(reference).read_about()
    except (JostleError, OSError):
        raise BadValue(f"{reference}: is there and is no run, and {what}; name another folder in against=") from None
    if foreign := RunFolder(reference).foreign_entries():
        raise BadValue(f"{reference}: holds {foreign[0]}, which no run writes, and {what}; move it elsewhere")


def _beside(reference: Path) -> tuple[Path, Path]:
    """Return where a new reference is copied to, and where the old one is kept meanwhile."""
    return reference.with_name(f".{reference.name}.new"), reference.with_name(f".{reference.name}.old")


def _restore(reference: Path) -> None:
    """Put back the old reference of a session that was killed before the new one had its name."""
    _, old = _beside(reference)
    if not os.path.lexists(reference) and not old.is_symlink() and (old / "run.json").is_file():
        old.rename(reference)


def _replace(reference: Path, run: Path) -> None:
    """Put a copy of a run in the place of a reference, which stays until the copy is complete."""
    reference.parent.mkdir(parents=True, exist_ok=True)
    new, old = _beside(reference)
    for rest in (new, old):  # of a session that was killed; the reference itself is there
        shutil.rmtree(rest, ignore_errors=True)
    shutil.copytree(run, new)
    if reference.exists():
        reference.rename(old)
    new.rename(reference)
    shutil.rmtree(old, ignore_errors=True)


def _explain(checked: Check) -> str:
    lines = [f"{one.name}: {one.text}" for one in checked.conditions if one.decision != "pass"]
    return "\n".join([f"robustness on {checked.benchmark}, {checked.summary}", *lines, *checked.remarks])
