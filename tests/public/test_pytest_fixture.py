"""Fixture `robustness` of pytest: options are checked, cells may be chosen, and no folder but a run is replaced."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.striped_videos import CELLS, write_benchmark

pytest.importorskip("torch")  # runs of models need it

PLUGIN = ("-p", "jostle.api.pytest_plugin", "-p", "no:cacheprovider")  # as the entry point names it
TESTS = str(Path(__file__).parents[1])
CONFTEST = f"import sys; sys.path.insert(0, {TESTS!r})"
HEAD = """
import pytest
from pathlib import Path
from helpers.striped_videos import StripeReader
import jostle

ROOT = Path(__file__).parent
OPTIONS = {"data": ROOT / "films", "fps": 25, "jobs": 1}
"""
REFERENCE = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from helpers.striped_videos import run_stripes
run_stripes(Path(sys.argv[2], "stripes-c.toml"), Path(sys.argv[2], "kept", "reference"))
"""


@pytest.fixture
def session(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # it may be installed as a plugin too
    pytester.makeconftest(CONFTEST)
    write_benchmark(pytester.path, 24, CELLS[:2])
    return pytester


def test_options_are_checked_and_cells_are_what_the_test_is_about(session: pytest.Pytester) -> None:
    session.makepyfile(
        HEAD
        + f"""
@pytest.mark.parametrize(("options", "message"), [
    ({{"undecided": "Fail"}}, "undecided is 'fail' or 'pass', not 'Fail'"),
    ({{"undecided": "passes"}}, "not 'passes'"),
    ({{"at_least": False}}, "at_least must be a number, not False"),
    ({{"at_least": "0.5"}}, "at_least must be a number, not '0.5'"),
    ({{"at_least": {{"clean": True}}}}, "at_least must be a number, not True"),
    ({{"at_leats": 0.5}}, "did you mean at_least"),
    ({{"at_least": 0.5, "cell": ["x"]}}, "did you mean cells"),
    ({{"at_least": {{1: 0.5}}}}, "metric of a condition"),
    ({{"against": 3}}, "against must be the folder of a run, not 3"),
    ({{"against": ""}}, "against must be the folder of a run"),
    ({{"budget": 3}}, "a budget is a TOML file or a mapping"),
    ({{"at_least": 0.5, "cells": "gaussian_noise:3"}}, "cells must be a list of texts or None"),
    ({{"at_least": 0.5, "cells": [3]}}, "cells must be a list of texts"),
    ({{"at_least": 0.5, "seed": "0"}}, "seed must be a whole number, not '0'"),
    ({{"at_least": 0.5, "seed": True}}, "seed must be a whole number, not True"),
    ({{"at_least": 0.5, "threads": 1.5}}, "threads must be a whole number"),
    ({{"at_least": 0.5, "retry_failed": "no"}}, "retry_failed must be True or False"),
    ({{"at_least": 0.5, "precision": 16}}, "precision must be one of"),
    ({{"at_least": 0.5, "device": "gpuu"}}, "no device is called 'gpuu'"),
    ({{"at_least": 0.5, "videos": []}}, "videos must be a mapping"),
    ({{"at_least": 0.5, "mend": True}}, "mend is `jostle`, a file"),
])
def test_wrong(robustness, options, message):
    with pytest.raises(jostle.JostleError, match=message):
        robustness.check(StripeReader(), ROOT / "stripes-c.toml", **OPTIONS | options)

def test_cells(robustness):
    model = StripeReader((), range(0, 24, 3))
    checked = robustness.check(model, ROOT / "stripes-c.toml", at_least=0.4, cells=[{CELLS[1]!r}], **OPTIONS)
    assert checked.passed
    with pytest.raises(AssertionError, match="undecided"):
        robustness.check(model, ROOT / "stripes-c.toml", at_least=0.66, cells=[{CELLS[1]!r}], **OPTIONS)
    few = robustness.check(
        model, ROOT / "stripes-c.toml", at_least=0.66, undecided="pass", cells=[{CELLS[1]!r}], **OPTIONS
    )
    assert few.decision == "undecided"

def test_gap_is_not_forgiven(robustness):
    for file in (ROOT / "films" / "a" / "film_0004").iterdir():
        file.write_bytes(b"no image")
    with pytest.raises(AssertionError, match="could not be used"):
        robustness.check(StripeReader(), ROOT / "stripes-c.toml", at_least=0.1, undecided="pass", **OPTIONS)
"""
    )
    session.runpytest_subprocess(*PLUGIN).assert_outcomes(passed=23)


def test_only_a_run_is_replaced_by_a_reference(session: pytest.Pytester) -> None:
    (session.path / "precious").mkdir()
    (session.path / "precious" / "notes.txt").write_text("mine")
    (session.path / "linked").symlink_to(session.path / "precious")
    # In a process of its own: pytester forgets the modules that a test imports, and NumPy's cannot be loaded twice.
    subprocess.run([sys.executable, "-c", REFERENCE, TESTS, str(session.path)], check=True, capture_output=True)
    (session.path / "by-link").symlink_to(session.path / "kept")
    for name in ("with-notes", "with-facts"):
        shutil.copytree(session.path / "kept" / "reference", session.path / name)
        (session.path / name / "notes.txt").write_text("mine")
    (session.path / "with-facts" / "run.json").write_text("{}")
    shutil.copytree(session.path / "kept" / "reference", session.path / ".killed.old")
    session.makepyfile(
        HEAD
        + """
REFUSED = [".", "precious", "linked", "..", "films", "by-link/reference", "with-notes", "with-facts"]

@pytest.mark.parametrize("against", REFUSED)
def test_refused(robustness, against):
    with pytest.raises(jostle.JostleError, match="replaces run folders only"):
        robustness.check(StripeReader(), ROOT / "stripes-c.toml", against=against, **OPTIONS)

def test_restored(robustness):
    def fail(clips):
        raise ValueError
    with pytest.raises(jostle.JostleError):
        robustness.check(fail, ROOT / "stripes-c.toml", against="killed", **OPTIONS)
    assert (ROOT / "killed" / "run.json").is_file()

def test_kept(robustness):
    assert robustness.check(StripeReader(), ROOT / "stripes-c.toml", against="references/stripes", **OPTIONS).passed
    assert robustness.check(StripeReader({1}), ROOT / "stripes-c.toml", against="references/stripes", **OPTIONS).passed

def test_incomplete_run_is_not_kept(robustness):
    for file in (ROOT / "films" / "a" / "film_0004").iterdir():
        file.write_bytes(b"no image")
    with pytest.raises(AssertionError, match="could not be used"):
        robustness.check(StripeReader({2}), ROOT / "stripes-c.toml", against="references/stripes", **OPTIONS)
"""
    )
    session.runpytest_subprocess(*PLUGIN, "--jostle-update-reference").assert_outcomes(passed=11)
    assert all((session.path / name / "notes.txt").is_file() for name in ("with-notes", "with-facts"))
    assert (session.path / "precious" / "notes.txt").read_text() == "mine"
    assert (session.path / "test_only_a_run_is_replaced_by_a_reference.py").is_file()
    assert [path.name for path in (session.path / "references").iterdir()] == ["stripes"]
    assert '"videos": 24' in (session.path / "references" / "stripes" / "scores.json").read_text()
