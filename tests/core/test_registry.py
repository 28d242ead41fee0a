"""Registry: unique names, suggestions for typos, and loading on first use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jostle.core import registry
from jostle.core.registry import Registry
from jostle.errors import BadValue, UnknownName


@pytest.fixture
def fruits() -> Registry[int]:
    made: Registry[int] = Registry("fruit")
    made.add("plum", 2)
    made.add("pear_tart", 1)
    return made


def test_names_are_unique_and_sorted(fruits: Registry[int]) -> None:
    with pytest.raises(BadValue, match="two fruits are called 'plum'"):
        fruits.add("plum", 3)
    assert list(fruits) == ["pear_tart", "plum"]
    assert fruits.values() == [1, 2]
    assert "plum" in fruits
    assert len(fruits) == 2


def test_an_unknown_name_gets_a_suggestion_or_the_list(fruits: Registry[int]) -> None:
    with pytest.raises(UnknownName) as caught:
        fruits["pear_tarrt"]
    assert str(caught.value) == "no fruit is called 'pear_tarrt': did you mean pear_tart?"
    with pytest.raises(UnknownName, match="known: pear_tart, plum"):
        fruits["xyz"]
    with pytest.raises(UnknownName, match="and 8 more"):
        raise UnknownName("number", "xyz", [f"{i:02}" for i in range(20)])


def test_several_packages_fill_one_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    fruits: Registry[int] = Registry("fruit", "orchard_of_test", "market_of_test")
    monkeypatch.setattr(registry, "_fruits_of_test", fruits, raising=False)
    for package, fruit in (("orchard_of_test", "pear"), ("market_of_test", "plum")):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
        text = f"from jostle.core.registry import _fruits_of_test\n_fruits_of_test.add({fruit!r}, 1)\n"
        (tmp_path / package / "one.py").write_text(text)
    assert list(fruits) == ["pear", "plum"]
    assert len(fruits) == 2


def test_the_first_lookup_is_thread_safe() -> None:
    """Several threads of a training run may look up corruptions before the registry is loaded."""
    code = (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from jostle.corruptions.engine.spec import Spec\n"
        "with ThreadPoolExecutor(8) as pool:\n"
        "    print({str(spec) for spec in pool.map(Spec.parse, ['gaussian_noise:2'] * 16)})\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "{'gaussian_noise:2'}\n", done.stderr
