"""Fixture `robustness` of the pytest plugin: failures, messages, and no imports unless it is used."""

from __future__ import annotations

import importlib.util
import shutil
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLUGIN = ("-p", "jostle.api.pytest_plugin", "-p", "no:cacheprovider")
# A real benchmark takes minutes; this `run` writes generated predictions whose frailty is given by the model.
CONFTEST = f"""
import sys
from pathlib import Path
sys.path.insert(0, {str(ROOT / "tests")!r})

import pytest
from helpers.synthetic_runs import write_run

@pytest.fixture(autouse=True)
def fake_run(monkeypatch):
    def run(benchmark, *, model, out, **options):
        assert options == {{}}
        write_run(Path(out), "recognition", videos=120, weakness=model, benchmark=benchmark)
    monkeypatch.setattr("jostle.api.benchmarks.run", run)
"""


@pytest.fixture
def session(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # it may be installed as a plugin too
    pytester.makeconftest(CONFTEST)
    return pytester


def test_frail_model_fails_with_an_explanation(session: pytest.Pytester) -> None:
    session.makepyfile(
        """
        def test_sound(robustness):
            assert robustness.check(1.0, "made", at_least={"clean": 0.5, "mean_corrupted": 0.4}).passed

        def test_frail(robustness):
            robustness.check(3.0, "made", at_least=0.6)
        """
    )
    result = session.runpytest_subprocess(*PLUGIN)
    result.assert_outcomes(passed=1, failed=1)
    text = result.stdout.str()
    assert 'robustness.check(3.0, "made", at_least=0.6)' in text
    result.stdout.re_match_lines(
        [
            "E +AssertionError: robustness on made, fail: 1 fail of 1 conditions",
            r"E +mean_corrupted, at least 60.0 %: \d+\.\d\d \[.*\], limit 60.00: fail",
        ]
    )
    assert "pytest_plugin.py" not in text  # the line of the test is printed, not that of the plugin
    assert "_conditions" not in text


def test_reference_is_stored_and_compared(session: pytest.Pytester) -> None:
    check = """
        import model

        def test_release(robustness):
            robustness.check(model.FRAILTY, "made", against="references/{}")
        """
    session.makepyfile(test_made=check.format("made"), model="FRAILTY = 1.0")
    session.runpytest_subprocess(*PLUGIN, "--jostle-update-reference").assert_outcomes(passed=1)
    assert (session.path / "references" / "made" / "run.json").is_file()
    session.makepyfile(test_new=check.format("new"), model="FRAILTY = 3.0")
    result = session.runpytest_subprocess(*PLUGIN)
    result.assert_outcomes(failed=2)
    assert "mean_corrupted, at most 2.0 points below the reference: -" in result.stdout.str()
    assert "references/new" in result.stdout.str()  # a missing reference is never a pass
    assert not (session.path / "references" / "new").exists()


def test_budget_option_and_marker(session: pytest.Pytester) -> None:
    (session.path / "budget.toml").write_text('[[condition]]\nmetric = "clean"\nat_least = 0.99\n')
    session.makepyfile(
        """
        def test_gate(robustness):
            robustness.check(1.0, "made")

        def test_other():
            pass
        """
    )
    result = session.runpytest_subprocess(*PLUGIN, "--jostle-budget", "budget.toml")
    result.assert_outcomes(passed=1, failed=1)
    assert "clean, at least 99.0 %" in result.stdout.str()
    session.runpytest_subprocess(*PLUGIN, "-m", "not robustness", "--strict-markers").assert_outcomes(
        passed=1, deselected=1
    )


def test_session_without_the_fixture_imports_nothing(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makepyfile(
        """
        import sys

        def test_nothing():
            loaded = {"numpy", "torch", "av", "cv2", "numba", "jostle.reporting", "jostle.evaluation"}
            assert not loaded & sys.modules.keys()
        """
    )
    pytester.runpytest_subprocess(*PLUGIN).assert_outcomes(passed=1)


@pytest.mark.slow
def test_example_repository(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    shutil.copytree(ROOT / "examples" / "gate", pytester.path, dirs_exist_ok=True)
    pytester.runpytest_subprocess(*PLUGIN).assert_outcomes(passed=1)
    (pytester.path / "model.py").write_text('NAME, WEIGHTS = "puppet_x3d", "random"\n')
    assert pytester.runpytest_subprocess(*PLUGIN).ret == pytest.ExitCode.TESTS_FAILED


def test_entry_point_names_the_plugin() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"jostle": PLUGIN[1]}
    assert importlib.util.find_spec(PLUGIN[1]) is not None
