"""Plugin of pytest: a fixture that runs a benchmark on a model and fails the test where it breaks its budget.

pytest loads it in every session of an environment that has jostle, so nothing is imported until the fixture is used.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from jostle.reporting.analysis.gate import Check

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
            undecided: whether a test fails where the videos are too few to decide.
            options: everything else goes to `jostle.run`, such as `weights`, `data` or `cells`.
        """
        __tracebackhide__ = True
        from jostle.api.benchmarks import run
        from jostle.api.results import check

        self.runs += 1
        out = self.folder / f"run-{self.runs}"
        run(benchmark, model=model, out=out, **options)
        reference = None if against is None else self.root / against
        if reference is not None and self.update_reference:
            shutil.rmtree(reference, ignore_errors=True)
            reference.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(out, reference)
            reference = out
        checked = check(out, reference, self._conditions(at_least, reference, budget))
        if checked.decision == "fail" or (checked.decision == "undecided" and undecided == "fail"):
            raise AssertionError(_explain(checked))
        return checked

    def _conditions(
        self,
        at_least: float | Mapping[str, float] | None,
        reference: Path | None,
        budget: str | Path | Mapping[str, Any] | None,
    ) -> Any:
        """Return the conditions of the arguments and of the budget together."""
        from jostle.reporting.analysis.gate import AGAINST_REFERENCE, Budget, Condition, read_budget

        limits = at_least if isinstance(at_least, Mapping) else {"mean_corrupted": at_least}
        conditions = [Condition(metric, at_least=limit) for metric, limit in limits.items() if limit is not None]
        listed = read_budget(budget if budget is not None else self.budget)
        if listed is not None:
            conditions += listed.condition
        elif reference is not None:
            conditions += AGAINST_REFERENCE.condition
        return Budget(tuple(conditions))


def _explain(checked: Check) -> str:
    lines = [f"{one.name}: {one.text}" for one in checked.conditions if one.decision != "pass"]
    return "\n".join([f"robustness on {checked.benchmark}, {checked.summary}", *lines])
