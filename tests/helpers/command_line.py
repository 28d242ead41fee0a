"""The command line in this process: what a verb prints, and how it ends."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from jostle.cli.app import _run


class Called(NamedTuple):
    """Exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The printed value."""
        assert self.out, self.err
        return json.loads(self.out)


def call(*words: object, cwd: Path | None = None) -> Called:
    """Run `jostle` with these words; a traceback fails the test."""
    out, err = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        contextlib.chdir(cwd or Path.cwd()),
    ):
        patch.setattr(sys, "argv", ["jostle", *map(str, words)])
        code = _run()
    assert "Traceback" not in err.getvalue()
    return Called(code, out.getvalue(), err.getvalue())


def succeed(*words: object, cwd: Path | None = None) -> Called:
    """Run `jostle` with these words, which must end with success."""
    called = call(*words, cwd=cwd)
    assert called.code == 0, called.err
    return called


def assert_refused(code: int, message: str, *words: object, cwd: Path | None = None) -> None:
    """Run `jostle` with these words, which must print this error and nothing else."""
    called = call(*words, cwd=cwd)
    assert (called.code, message in " ".join(called.err.split())) == (code, True), called.err
    assert called.out == ""
