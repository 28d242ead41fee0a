"""Faults F103 and F104: invalid settings files and values of unsupported types."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from helpers.refusals import refused
from jostle.core.settings import parse_pairs, read_toml
from jostle.errors import BadValue
from jostle.evaluation.recipes.selection import read_benchmark

READERS: list[Callable[[Path], object]] = [read_toml, read_benchmark]


def assert_refused(path: Path, fault: str, message: str) -> None:
    for read in READERS:
        with refused(fault, BadValue, match=message) as caught:
            read(path)
        assert len(str(caught.value)) < 1000


FILES = {
    "lists": (b"a = " + b"[" * 100_000, "F103", "nested too deeply"),
    "tables": (b"a = " + b"{a=" * 100_000, "F103", "nested too deeply"),
    "a dotted key": (b"a" + b".a" * 100_000 + b" = 1", "F103", "nested too deeply"),
    "not so deep": (b"a = " + b"[" * 40 + b"]" * 40, "F103", "nested too deeply"),
    "not UTF-8": (b'name = "\xff"', "F59", "not TOML: 'utf-8' codec"),
    "too large": (b"# " + b"x" * (1 << 20), "F103", "larger than 1048576 bytes"),
    "not TOML": (b"{}", "F59", "not TOML"),
}


@pytest.mark.fault("F103")
@pytest.mark.parametrize("case", FILES)
def test_F103_invalid_settings_files_are_refused(case: str, tmp_path: Path) -> None:
    content, fault, message = FILES[case]
    path = tmp_path / "a.toml"
    path.write_bytes(content)
    assert_refused(path, fault, message)


@pytest.mark.fault("F103")
def test_F103_a_named_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.toml")
    assert_refused(tmp_path / "a.toml", "F103", "not a regular file; give a settings file")


VALUES = {
    "a date": ("1979-05-27", "F104", "1979-05-27 is a date, and no setting is one"),
    "a time": ("07:32:00", "F104", "is a time"),
    "both": ("1979-05-27T07:32:00Z", "F104", "is a datetime"),
    "within": ("[{a = 1979-05-27}]", "F104", "name: a: 1979-05-27 is a date"),
    "5,000 digits": ("9" * 5000, "F59", "not TOML"),
    "65 bits": ("9223372036854775808", "F104", "a whole number of more than 64 bits"),
    "many bits": ("0x" + "f" * 5000, "F104", "a whole number of more than 64 bits"),
    "400 digits before the point": ("1" * 400 + ".0", "F104", "inf is not finite"),
    "infinite": ("-inf", "F104", "-inf is not finite"),
    "not a number": ("nan", "F104", "nan is not finite"),
}


@pytest.mark.fault("F104")
@pytest.mark.parametrize("case", VALUES)
def test_F104_a_value_that_no_setting_has(case: str, tmp_path: Path) -> None:
    value, fault, message = VALUES[case]
    path = tmp_path / "a.toml"
    path.write_text(f"name = {value}\n")
    assert_refused(path, fault, message)


@pytest.mark.fault("F104")
def test_F104_values_of_the_command_line() -> None:
    for value, fault, message in VALUES.values():
        if fault == "F104" and "{" not in value:
            with pytest.raises(BadValue, match=message):
                parse_pairs([f"name={value}"])
    assert parse_pairs(["name=" + "[" * 5000]) == {"name": "[" * 5000}, "what is not TOML is text"


@pytest.mark.fault("F104")
def test_F104_long_values_are_shortened_in_messages(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(f'tious = "{"x" * 100_000}"\n')
    with pytest.raises(BadValue, match="is not a list") as caught:
        read_benchmark(path)
    assert len(str(caught.value)) < 1000
