"""Detection of Triton support, with a warning that names the reason if it is missing."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from jostle.core import triton_support

ON_GPU = SimpleNamespace(is_cuda=True)


@pytest.fixture(autouse=True)
def clear_cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(triton_support, "_uses_interpreter", lambda: False)
    monkeypatch.setattr(triton_support, "has_triton", lambda: True)
    triton_support.can_compile.cache_clear()
    yield
    triton_support.can_compile.cache_clear()


def with_target(monkeypatch: pytest.MonkeyPatch, target: Any) -> None:
    """Install a fake Triton whose driver returns the target, or raises it."""

    def current() -> Any:
        if isinstance(target, Exception):
            raise target
        return target

    runtime = ModuleType("triton.runtime")
    runtime.driver = SimpleNamespace(active=SimpleNamespace(get_current_target=current))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "triton", ModuleType("triton"))
    monkeypatch.setitem(sys.modules, "triton.runtime", runtime)


@pytest.mark.parametrize(("backend", "arch"), [("cuda", 90), ("hip", "gfx942")])
def test_programs_run_if_they_can_be_compiled(backend: str, arch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with_target(monkeypatch, SimpleNamespace(backend=backend, arch=arch))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert triton_support.runs_on(ON_GPU)
        assert not triton_support.runs_on(SimpleNamespace(is_cuda=False))


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        (RuntimeError("Failed to find C compiler.\nPlease"), "RuntimeError: Failed to find C compiler"),
        (SimpleNamespace(backend="cuda", arch=61), "compute capability 6.1, and 7.0 is needed"),
        (OSError(), "OSError: no reason"),
    ],
)
def test_the_reason_is_reported_once(target: Any, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with_target(monkeypatch, target)
    with pytest.warns(UserWarning, match=reason):
        assert not triton_support.runs_on(ON_GPU)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not triton_support.runs_on(ON_GPU)


def test_without_triton_there_is_no_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_support, "has_triton", lambda: False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not triton_support.runs_on(ON_GPU)
