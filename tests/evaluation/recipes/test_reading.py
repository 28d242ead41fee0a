"""Benchmarks in TOML files: the bundled example and validation errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from jostle.errors import BadValue, UnknownName
from jostle.evaluation.recipes.recipe import benchmarks
from jostle.evaluation.recipes.sampling import Sampling
from jostle.evaluation.recipes.selection import load_benchmark, read_benchmark, select_cells

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "night-camera-c.toml"

SMALL = """\
name = "small-c"
version = 1
dataset = "puppets"
subset = "test"
task = "detection"
metric = "mean_ap"
protocol = "thumos14"

[[groups]]
name = "light"
corruptions = ["brightness"]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def test_the_bundled_example() -> None:
    recipe = read_benchmark(EXAMPLE)
    assert recipe.title == "Night-Camera-C"
    assert recipe.tious == (0.3, 0.5, 0.7)
    assert [cell.name for cell in recipe.cells][-4:] == [
        "gaussian_noise:3+h264_crf:3",
        "gaussian_noise:5+h264_crf:5",
        "overexposure:4@each:1",
        "overexposure:4@centre:10%",
    ]
    assert len(select_cells(recipe)) == 1 + 12 + 2
    assert [cell.group for cell in select_cells(recipe, ["group:glare"])] == ["", "glare", "glare"]


def test_a_benchmark_is_loaded_by_name_or_path(file: Path) -> None:
    assert load_benchmark("ucf101-p") is benchmarks["ucf101-p"]
    assert load_benchmark(str(file)).name == load_benchmark(file).name == "small-c"
    with pytest.raises(UnknownName, match="no benchmark is called 'thumos-c': did you mean"):
        load_benchmark("thumos-c")


def test_recognition_with_its_own_sampling(file: Path) -> None:
    file.write_text(
        SMALL.replace('"detection"', '"recognition"')
        .replace('"mean_ap"', '"top_k_accuracy"')
        .replace('protocol = "thumos14"', "k = 5\nsampling = {clips = 3, size = 112}")
        .replace('"puppets"', '"puppets-trimmed"')
    )
    recipe = read_benchmark(file)
    assert recipe.sampling == Sampling(clips=3, size=112)
    assert recipe.measure == "top-5 accuracy"


def test_comments_and_the_order_of_keys_do_not_matter(file: Path) -> None:
    before = read_benchmark(file).fingerprint
    head, group = SMALL.split("\n\n")
    file.write_text("\n".join(["# mine", *reversed(head.splitlines()), "", group]))
    assert read_benchmark(file).fingerprint == before


@pytest.mark.fault("F59")
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"test"', '"tset"', "no subset of puppets is called 'tset': did you mean test"),
        ('"puppets"', '"pupets"', "no data set is called 'pupets': did you mean puppets"),
        ('"detection"', '"detect"', "no task is called 'detect': did you mean detection"),
        ('"puppets"', '"puppets-trimmed"', "puppets-trimmed is a data set for recognition, and the task is detection"),
        ('"mean_ap"', '"map"', "no metric is called 'map'"),
        ("corruptions", "corruption", "corruption: no such setting: did you mean corruptions"),
        ("version = 1", 'version = "1"', "version: '1' is not a whole number"),
        ("version = 1", "", "version must be given"),
        ("version = 1", "version = 1\nversion = 2", "not TOML"),
        ('name = "small-c"', 'name = "thumos14-c"', "thumos14-c is the name of another benchmark"),
        ('["brightness"]', '"brightness"', "corruptions: 'brightness' is not a list"),
        ("[[groups]]", "[groups]", "groups: .* is not a list"),
    ],
)
def test_errors_name_the_file_and_the_setting(file: Path, old: str, new: str, message: str) -> None:
    assert old in SMALL
    file.write_text(SMALL.replace(old, new, 1))
    with pytest.raises(BadValue, match=message) as caught:
        read_benchmark(file)
    assert str(caught.value).startswith(f"{file}:")
    assert str(caught.value).count(str(file)) == 1


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadValue, match=r"none\.toml: cannot be read .* check the path"):
        load_benchmark(tmp_path / "none.toml")
