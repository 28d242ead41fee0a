"""Plugins: origins of their parts, protection of built-in names, workers and import failures."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from jostle.core import plugins
from jostle.core.plugins import import_object, is_import_path, origin_of
from jostle.corruptions.engine.corruption import corruptions
from jostle.errors import BadValue, UnknownName
from jostle.models.loading.names import need_torch
from jostle.parallel.workers import map_unordered

MINE = """
from jostle.corruptions.engine.corruption import corruption

@corruption(level="frame", scale=(1, 2, 3, 4, 5), cites="jostle")
def {name}(frame, value, at):
    return frame
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Add a folder to the import path, and unregister afterwards what its modules registered."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = {name: corruptions[name] for name in corruptions}
    for name in ("_parts", "_failed", "_malformed"):
        monkeypatch.setattr(plugins, name, dict(getattr(plugins, name)))
    for name in ("_loaded", "_imported", "_warned"):
        monkeypatch.setattr(plugins, name, set(getattr(plugins, name)))
    monkeypatch.setattr(plugins, "_requested", list(plugins._requested))
    monkeypatch.delenv(plugins.VARIABLE, raising=False)
    monkeypatch.setenv(plugins.TORCH_AUTOLOAD, "1")
    yield tmp_path
    plugins._entry_points.cache_clear()
    origin_of.cache_clear()
    corruptions._entries.clear()
    corruptions._entries.update(before)
    os.environ.pop(plugins.VARIABLE, None)


def test_a_part_has_an_origin(folder: Path) -> None:
    (folder / "part_of_test_a.py").write_text(MINE.format(name="one_of_test"))
    plugins.import_modules("part_of_test_a")
    part = corruptions.part("one_of_test")
    assert part.origin.module == "part_of_test_a"
    assert part.origin.checksum.startswith("sha256:")
    assert (part.origin.package, part.origin.module) == ("", "part_of_test_a")
    assert corruptions.part("fog") is None
    assert str(origin_of("numpy.linalg")).startswith("numpy ")


def test_built_in_names_cannot_be_replaced(folder: Path) -> None:
    (folder / "part_of_test_b.py").write_text(MINE.format(name="fog"))
    fog = corruptions["fog"]
    with pytest.raises(BadValue, match=r"two corruptions are called 'fog', one of part_of_test_b and one of jostle"):
        plugins.import_modules("part_of_test_b")
    assert corruptions["fog"] is fog


@pytest.mark.processes
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


def test_parts_defined_in_the_script_are_reported_in_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "_failed", {})
    monkeypatch.setattr(plugins, "_warned", set(plugins._warned))
    plugins.inherit_plugins(["__main__"])
    with pytest.raises(UnknownName, match="it is the script itself, and other processes cannot import that; put parts"):
        corruptions["four_of_test"]


def test_parts_defined_interactively_can_be_redefined() -> None:
    code = (
        MINE.format(name="five_of_test") * 2 + "\nimport jostle\nassert 'five_of_test' in jostle.names('corruptions')"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


ENDINGS = {
    "exit": ("raise SystemExit(0)", "SystemExit: 0"),
    "interrupt": ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    "other": ("class Own(BaseException): pass\nraise Own('mine')", "Own: mine"),
}


def install(folder: Path, name: str, entries: str) -> None:
    """Install a package that has only metadata and entry points."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entries)
    plugins._entry_points.cache_clear()
    plugins._loaded.clear()


@pytest.fixture
def custom_signal_handler() -> Iterator[None]:
    """Handle SIGINT as the command line does, where Ctrl-C raises no KeyboardInterrupt."""
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.fault("F122")
@pytest.mark.usefixtures("custom_signal_handler")
@pytest.mark.parametrize("ending", ENDINGS)
def test_f122_a_module_that_ends_the_program_is_an_error(folder: Path, ending: str) -> None:
    code, reason = ENDINGS[ending]
    module = f"ends_of_test_{ending}"
    (folder / f"{module}.py").write_text(code + "\n")
    with pytest.raises(BadValue, match=rf"--import {module}: cannot be imported \({reason} in .*{module}.py, line"):
        plugins.import_modules(module)
    del os.environ[plugins.VARIABLE]
    with pytest.raises(BadValue, match=rf"--model {module}:net: cannot be imported \({reason} in ") as caught:
        import_object(f"{module}:net", "--model")
    assert caught.value.fault == "F122"
    install(folder, module, f"[jostle.plugins]\nparts = {module}\n")
    with pytest.warns(UserWarning, match=f"{module} 1.0: cannot be imported, so its parts are not there: {reason}"):
        plugins.load("corruptions")


def test_ctrl_c_during_a_plugin_import_is_passed_on(folder: Path) -> None:
    (folder / "ends_of_test.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            plugins.import_modules("ends_of_test")
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.fault("F123")
@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ("[jostle.plugins]\nparts = !!! none\n", "'parts' in group jostle.plugins is '!!! none', not package.module"),
        ("[console_scripts]\nwithout an equals sign\n", r"entry_points.txt cannot be read \("),
    ],
)
def test_f123_a_malformed_entry_point_is_reported_and_skipped(folder: Path, entries: str, reason: str) -> None:
    install(folder, "crooked", entries)
    (folder / "straight_of_test.py").write_text(MINE.format(name="seven_of_test"))
    install(folder, "straight", "[jostle.plugins]\nparts = straight_of_test\n")
    with pytest.warns(UserWarning, match=f"crooked: has a malformed entry point, which is passed over: {reason}"):
        assert "seven_of_test" in corruptions
    sys.modules.pop("straight_of_test")
    by_name = {plugin.name: plugin for plugin in plugins.list_plugins()}
    assert by_name["crooked"].failure.startswith("malformed entry point: ")
    assert [part.name for part in by_name["straight 1.0"].parts] == ["seven_of_test"]


@pytest.mark.fault("F123")
def test_f123_other_libraries_survive_a_malformed_entry_point(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")  # before the entry points are broken
    from numba.core import entrypoints

    from jostle.core import kernels

    install(folder, "crooked", "[console_scripts]\nwithout an equals sign\n")
    monkeypatch.setattr(entrypoints, "_already_initialized", False)
    with pytest.raises(TypeError):
        kernels._load_numba_extensions()
    monkeypatch.setattr(entrypoints, "_already_initialized", False)
    entrypoints.init_all()  # as called by Numba before it compiles
    need_torch("networks")
    assert os.environ[plugins.TORCH_AUTOLOAD] == "0"


@pytest.mark.fault("F124")
def test_f124_output_of_a_plugin_goes_to_stderr(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "loud_of_test.py").write_text("print('hello')\nnet = 1\n")
    assert import_object("loud_of_test:net", "--model") == 1
    assert capsys.readouterr() == ("", "hello\n")


@pytest.mark.fault("F124")
def test_f124_a_slow_plugin_import_is_reported(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(plugins, "SLOW_S", 0.01)
    report, named = plugins._report_slow, threading.Event()
    monkeypatch.setattr(plugins, "_report_slow", lambda module: (report(module), named.set()))
    monkeypatch.setattr(sys, "named_in_test", named, raising=False)
    (folder / "slow_of_test.py").write_text("import sys\nassert sys.named_in_test.wait(60)\n")
    plugins.import_modules("slow_of_test")
    assert capsys.readouterr() == ("", "still importing slow_of_test after 0.01 s; it is not part of jostle\n")


def test_import_paths() -> None:
    assert is_import_path("mine:net")
    assert not is_import_path("mine:")
    assert import_object("os.path:sep", "--model") == os.path.sep
    with pytest.raises(
        BadValue, match=r"--model os.path:nothing: cannot be imported .*; write package.module:attribute"
    ):
        import_object("os.path:nothing", "--model")


def test_plugins_do_not_change_published_recipes(folder: Path) -> None:
    from jostle.evaluation.recipes.recipe import benchmarks

    before = benchmarks["puppets-p"].content()
    (folder / "part_of_test_d.py").write_text(MINE.format(name="six_of_test"))
    plugins.import_modules("part_of_test_d")
    assert benchmarks["puppets-p"].content() == before
