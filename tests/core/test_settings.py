"""Settings from TOML: typed values, overrides, and errors with hints."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from jostle.core.settings import make_settings, read_settings, settings_as_dict
from jostle.errors import BadValue


@dataclass(frozen=True)
class Inner:
    rate: float = 0.1
    sizes: tuple[int, ...] = (1, 2)
    radius: float | None = 1.5


@dataclass(frozen=True)
class Outer:
    name: str
    count: int = 3
    kind: Literal["a", "b"] = "a"
    inner: Inner = field(default_factory=Inner)
    extra: dict[str, Any] = field(default_factory=dict)
    where: str | float = 0.0
    on: bool = False


def test_settings_from_a_file_with_overrides(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text(
        'name = "x"\ncount = 5\nwhere = "val"\n[inner]\nrate = 2\nsizes = [4, 5]\n[extra]\ndeep = {a = 1}\n'
    )
    settings = read_settings(
        Outer, path, ["count=7", "inner.radius=none", "kind=b", "on=true", "extra.other=plain text"]
    )
    assert settings == Outer(
        "x", 7, "b", Inner(2.0, (4, 5), None), {"deep": {"a": 1}, "other": "plain text"}, "val", True
    )
    assert isinstance(settings.inner.rate, float)
    assert settings_as_dict(settings)["inner"] == {"rate": 2.0, "sizes": [4, 5], "radius": None}


@pytest.mark.parametrize(
    ("content", "overrides", "message"),
    [
        ({"name": "x", "cuont": 3}, [], "cuont: no such setting: did you mean count?"),
        ({"name": "x", "inner": {"zzz": 1}}, [], "inner: zzz: no such setting: there are rate, sizes, radius"),
        ({}, [], "name must be given"),
        ({"name": 3}, [], "name: 3 is not text"),
        ({"name": "x", "count": 2.5}, [], "count: 2.5 is not a whole number"),
        ({"name": "x", "count": True}, [], "count: True is not a whole number"),
        ({"name": "x", "kind": "c"}, [], "kind: 'c' is not one of 'a', 'b'"),
        ({"name": "x", "inner": 3}, [], "inner: 3 is not a table"),
        ({"name": "x", "inner": {"sizes": 3}}, [], "inner: sizes: 3 is not a list"),
        ({"name": "x", "inner": {"radius": "wide"}}, [], "inner: radius: 'wide' is not a number"),
        ({"name": "x"}, ["count"], "an override is key=value or table.key=value, got 'count'"),
        ({"name": "x"}, ["name.deep=1"], "'name' is a value, not a table"),
    ],
)
def test_invalid_settings_are_refused(content: dict, overrides: list[str], message: str) -> None:
    with pytest.raises(BadValue) as caught:
        make_settings(Outer, content, overrides)
    assert message in str(caught.value)


def test_files_that_are_not_toml_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text("name = \n")
    with pytest.raises(BadValue, match=r"run.toml: not TOML"):
        read_settings(Outer, path)
    path.write_text("a = 1\na = 2\n")
    with pytest.raises(BadValue, match=r"not TOML"):
        read_settings(Outer, path)
    with pytest.raises(BadValue, match="cannot be read"):
        read_settings(Outer, tmp_path / "none.toml")


def test_hints_include_keys_of_other_tables() -> None:
    from jostle.training.recognition_config import RecognitionConfig

    with pytest.raises(BadValue, match=r"optimiser: sharee: no such setting: did you mean corruptions\.share or noise"):
        make_settings(RecognitionConfig, {"optimiser": {"sharee": 1}})
    with pytest.raises(BadValue, match=r"lerning: no such setting: there are"):
        make_settings(RecognitionConfig, {"lerning": 1})
    with pytest.raises(BadValue, match=r"warmup_epoch: no such setting: did you mean optimiser\.warmup_epochs\?"):
        make_settings(RecognitionConfig, {}, ["warmup_epoch=1"])


def test_numbers_with_commas_are_a_list() -> None:
    from jostle.core.settings import convert_settings, parse_pairs
    from jostle.models.input_spec import InputSpec

    pairs = parse_pairs(["mean=0.5,0.5, .5e0", "layout=TCHW", "resize=none", "std=1"])
    assert pairs == {"mean": "0.5,0.5, .5e0", "layout": "TCHW", "resize": None, "std": 1}  # TOML has no .5e0
    pairs = parse_pairs(["mean=0.5, 0.4,0.3"])
    assert convert_settings(InputSpec, pairs, where="net") == {"mean": (0.5, 0.4, 0.3)}
    assert parse_pairs(["path=a,b/c"]) == {"path": "a,b/c"}
