"""Shared material: small clips made by rule, and a guard on global random state."""

from __future__ import annotations

import gc
import importlib.util
import os
import random
import re
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

from helpers.rewriting import parse_share, rewrite_share, rewrite_tests_only

rewrite_tests_only()  # before what it concerns is imported

import hypothesis
import numpy as np
import pytest

from jostle import Clip
from jostle.api import engines
from jostle.core import compilation
from jostle.core.registry import Registry

pytest_plugins = ["pytester"]  # sessions of pytest inside tests, for the plugin

if "PYTEST_XDIST_WORKER" in os.environ:  # several workers with a thread pool each would wait for one another
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# Tests start hundreds of processes. In a container that asks for no bytecode each would compile all of torch anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

os.environ.setdefault("JOSTLE_CODEC_CACHE", "0")  # runs of tests leave no streams in anybody's cache

compilation.REPORT_AFTER_S = 3600.0  # what a test expects to be printed does not depend on who compiled before it

# Runs of tests are short, on a busy machine too: workers for them are started by tests that are about workers.
engines.LOCAL_S = 3600.0

# How long a draw takes says how busy the machine is, and nothing about jostle.
hypothesis.settings.register_profile("jostle", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("jostle")

TESTS = Path(__file__).resolve().parent
SHARED = TESTS.parents[1] / "shared"

# Child processes import `helpers` as the tests do.
os.environ["PYTHONPATH"] = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:
        gc.disable()  # hardly anything that is imported or collected is ever garbage
        parse_share(TESTS.parent / "src")
        if session.config.getoption("assertmode") == "rewrite":
            rewrite_share(TESTS, session.config)


def pytest_collection_finish() -> None:
    gc.enable()
    gc.freeze()  # what is imported stays: looking through it again and again takes seconds of every minute


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write new golden files instead of comparing")


if importlib.util.find_spec("torch") is None:
    # torch is an extra. Without it what needs it is skipped, whether it asks at the top of a file or deep in a program;
    # what should do without it still has to.
    asked = re.compile(r"No module named '(torch|safetensors)|jostle\[torch\]")

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        collector: pytest.Collector,
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        report = yield
        if report.failed and asked.search(str(report.longrepr)):
            report.outcome, report.longrepr = "skipped", (str(collector.path), 0, "Skipped: torch is not installed")
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.failed and asked.search(str(report.longrepr)):
            report.outcome, report.longrepr = "skipped", (str(item.path), 0, "Skipped: torch is not installed")
        return report


@pytest.fixture(scope="session")
def ours() -> Callable[[Registry[Any]], list[Any]]:
    """What of a shelf comes with jostle: other tests put things of their own beside it."""
    return lambda shelf: [thing for thing in shelf.values() if thing.load.__module__.startswith("jostle.")]


@pytest.fixture(scope="session")
def media_folder() -> Path:
    """Real clips that lie beside the repository and are never committed."""
    folder = SHARED / "media"
    if not folder.is_dir():
        pytest.skip("no folder of real clips at ../shared/media")
    return folder


def moving_squares(frames: int = 24, height: int = 48, width: int = 64) -> Clip:
    """Two squares that pass each other over a soft gradient with some grain: enough to feel every corruption."""
    rng = np.random.default_rng(7)
    y, x = np.mgrid[:height, :width]
    ground = np.stack([80 + x, 60 + 2 * y % 100, 150 - x], -1) + rng.integers(-12, 13, (height, width, 3))
    clip = np.repeat(ground[None], frames, 0)
    for t in range(frames):
        left = 4 + t * (width - 24) // frames
        clip[t, 8:22, left : left + 14] = (230, 60 + 3 * t, 40)
        clip[t, 26:40, width - 20 - left : width - 6 - left] = (30, 200 - 4 * t, 220)
    return Clip.at_rate(np.clip(clip, 0, 255).astype(np.uint8), 24)


@pytest.fixture(scope="session")
def clip() -> Clip:
    return moving_squares()


@pytest.fixture(scope="session")
def long_clip() -> Clip:
    """Longer than the longest piece that a time-level corruption works on, and large enough to be worth coding."""
    return moving_squares(80, 72, 96)


@pytest.fixture(autouse=True)
def no_global_randomness() -> Iterator[None]:
    """Fail a test that draws from the interpreter-wide generators: every draw in the house is keyed."""
    before = _global_state()
    yield
    assert _global_state() == before, "the test drew from global random state"


def _global_state() -> tuple[object, bytes]:
    return random.getstate(), np.random.get_state()[1].tobytes()  # noqa: NPY002
