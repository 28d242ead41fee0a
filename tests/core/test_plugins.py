"""Parts from elsewhere: where they come from, and that they cannot take the place of jostle's own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from jostle.core import plugins
from jostle.core.plugins import import_object, is_import_path, origin_of
from jostle.corruptions.engine.corruption import corruptions
from jostle.errors import BadValue, UnknownName
from jostle.parallel.workers import map_unordered

MINE = """
from jostle.corruptions.engine.corruption import corruption

@corruption(level="frame", scale=(1, 2, 3, 4, 5), cites="jostle")
def {name}(frame, value, at):
    return frame
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that modules are found in; what they put on the shelf is taken down again."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = {name: corruptions[name] for name in corruptions}
    for name in ("_parts", "_failed"):
        monkeypatch.setattr(plugins, name, dict(getattr(plugins, name)))
    monkeypatch.setattr(plugins, "_requested", list(plugins._requested))
    monkeypatch.delenv(plugins.VARIABLE, raising=False)
    yield tmp_path
    corruptions._entries.clear()
    corruptions._entries.update(before)
    os.environ.pop(plugins.VARIABLE, None)


def test_a_part_says_where_it_comes_from(folder: Path) -> None:
    (folder / "part_of_test_a.py").write_text(MINE.format(name="one_of_test"))
    plugins.import_modules("part_of_test_a")
    part = corruptions.part("one_of_test")
    assert part is not None
    assert part.origin.module == "part_of_test_a"
    assert part.origin.checksum.startswith("sha256:")
    assert (part.origin.package, part.origin.module) == ("", "part_of_test_a")
    assert corruptions.part("fog") is None
    assert str(origin_of("numpy.linalg")).startswith("numpy ")


def test_a_name_of_ours_stays_ours(folder: Path) -> None:
    (folder / "part_of_test_b.py").write_text(MINE.format(name="fog"))
    fog = corruptions["fog"]
    with pytest.raises(BadValue, match=r"two corruptions are called 'fog', one of part_of_test_b and one of jostle"):
        plugins.import_modules("part_of_test_b")
    assert corruptions["fog"] is fog


def test_workers_have_the_same_parts(folder: Path) -> None:
    (folder / "part_of_test_c.py").write_text(MINE.format(name="two_of_test"))
    __import__("part_of_test_c")
    (folder / "work_of_test.py").write_text(
        "from jostle.corruptions.engine.corruption import corruptions\n"
        "def known(name):\n    return name in corruptions\n"
        "def start():\n    return known\n"
    )
    begin = __import__("work_of_test").start
    assert dict(map_unordered(partial(begin), ["two_of_test", "three_of_test"], 2)) == {
        "two_of_test": True,
        "three_of_test": False,
    }


def test_a_part_of_the_script_itself_is_said_not_to_travel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "_failed", {})
    monkeypatch.setattr(plugins, "_warned", set(plugins._warned))
    plugins.inherit_plugins(["__main__"])
    with pytest.raises(UnknownName, match="it is the script itself, and other processes cannot import that; put parts"):
        corruptions["four_of_test"]


def test_what_is_typed_in_anew_takes_the_place_of_what_it_was() -> None:
    code = (
        MINE.format(name="five_of_test") * 2 + "\nimport jostle\nassert 'five_of_test' in jostle.names('corruptions')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_places() -> None:
    assert is_import_path("mine:net")
    assert not is_import_path("mine:")
    assert import_object("os.path:sep", "--model") == os.path.sep
    with pytest.raises(
        BadValue, match=r"--model os.path:nothing: cannot be imported .*; write package.module:attribute"
    ):
        import_object("os.path:nothing", "--model")


def test_recipes_of_papers_keep_their_fingerprints_beside_plugins(folder: Path) -> None:
    from jostle.evaluation.recipes.recipe import benchmarks

    before = benchmarks["puppets-p"].content()
    (folder / "part_of_test_d.py").write_text(MINE.format(name="six_of_test"))
    plugins.import_modules("part_of_test_d")
    assert benchmarks["puppets-p"].content() == before
