"""The documentation keeps up: the reference is complete, links lead somewhere, and what it shows runs."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
import doctest
import importlib
import importlib.util
import inspect
import io
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
import typer
from PIL import Image

import jostle
from jostle import api, errors
from jostle.api.demonstration import HOW, SHORT, Demo
from jostle.cli import app
from jostle.cli.app import _run as run_command
from jostle.core.types import Clip
from jostle.corruptions.engine.corruption import corruptions
from jostle.corruptions.engine.placement import placements
from jostle.corruptions.engine.spec import Spec, profiles
from jostle.datasets.dataset import datasets
from jostle.datasets.puppets.trimmed import TrimmedClip
from jostle.datasets.puppets.untrimmed import Video, truth_of
from jostle.evaluation.recipes.recipe import Group, Recipe, benchmarks
from jostle.evaluation.recipes.sampling import Sampling
from jostle.io.files.annotations import write_truth
from jostle.io.files.format import formats
from jostle.io.video.encode import Writer
from jostle.metrics.diagnosis import MENDED_FAULTS, styles
from jostle.metrics.metric import metrics
from jostle.metrics.protocol import protocols
from jostle.models.detection.detector import detectors
from jostle.models.extractors.extractor import extractors, load_extractor
from jostle.models.recognition.recogniser import recognisers
from jostle.training.detection_config import TrainingConfig
from jostle.training.recognition_config import RecognitionConfig

ROOT = Path(__file__).resolve().parents[1]
DOCS, SOURCE = ROOT / "docs", ROOT / "src" / "jostle"
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FILE_NAMED = re.compile(r"\b(?:docs|examples|tests|benchmarks)/[\w./-]*\.(?:md|py|bib)\b")


def load(path: Path) -> ModuleType:
    """A script as a module, without running what it does as a script."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATOR = load(DOCS / "generate_reference.py")
GENERATED = frozenset(GENERATOR.PAGES)


def written_pages() -> list[Path]:
    """The pages somebody wrote by hand, and those at the top of the repository."""
    pages = sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts)
    made = {DOCS / "reference" / name for name in (*GENERATED, "api.md")}  # the last by Sphinx
    return [page for page in pages if page not in made] + [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]


PAGES = written_pages()


def blocks(page: Path, language: str) -> Iterator[str]:
    for found, body in FENCE.findall(page.read_text(encoding="utf-8")):
        if found == language:
            yield body


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.fixture(scope="session")
def reference() -> dict[str, str]:
    """The generated pages, by name."""
    return {name: (DOCS / "reference" / name).read_text(encoding="utf-8") for name in GENERATED}


def section(text: str, heading: str) -> str:
    """What stands under a heading, up to the next one of its level or above."""
    level = heading.split(" ")[0]
    found = re.search(rf"^{re.escape(heading)}$(.*?)(?=^#{{1,{len(level)}}} |\Z)", text, re.DOTALL | re.MULTILINE)
    assert found, f"no section {heading!r}"
    return found[1]


def test_the_reference_is_what_the_code_says(reference: dict[str, str], tmp_path: Path) -> None:
    """In a process of its own, where no test has registered anything; after a change, `make reference`."""
    subprocess.run([sys.executable, DOCS / "generate_reference.py", tmp_path], check=True, timeout=120)
    for name, text in reference.items():
        made = (tmp_path / name).read_text(encoding="utf-8")
        assert made == text, f"docs/reference/{name} has fallen behind: make reference"
    assert {path.name for path in (DOCS / "reference").glob("*.md")} - {"api.md"} == {
        *reference,
        "index.md",
        "public-api.md",
    }


def test_every_corruption_is_in_the_reference(reference: dict[str, str]) -> None:
    for found in corruptions.values():
        entry = section(reference["corruptions.md"], f"### {found.name}")
        assert found.summary.split("\n")[0] in " ".join(entry.split()), found.name
        assert f"Level: {found.level}" in entry
        for value in found.scale:
            assert f"`{value!r}`" in entry, found.name


def test_every_line_of_every_profile_is_in_the_reference(reference: dict[str, str]) -> None:
    for table in profiles.values():
        entry = section(reference["profiles.md"], f"## {table.name}")
        for name, line in table.entries.items():
            row = re.search(rf"^\| `{name}` \|.*$", entry, re.MULTILINE)
            assert row, f"{table.name}/{name}"
            assert f"[{line.corruption}]" in row[0]
            assert line.note in row[0]


def test_every_placement_is_in_the_reference(reference: dict[str, str]) -> None:
    for kind in placements.values():
        assert f"| `{kind.name}` | `{kind.form}` |" in reference["placements.md"]


def test_every_protocol_is_in_the_reference_with_its_rules(reference: dict[str, str]) -> None:
    page = reference["protocols.md"]
    assert "\n".join(GENERATOR.protocol_table()) in page
    for found in protocols.values():
        entry = section(page, f"## {found.name}")
        assert found.summary in entry
        assert GENERATOR._citation(found.cites) in entry
        assert found.cites in GENERATOR._bibliography(), found.name


def test_every_style_is_in_the_reference_with_its_buckets(reference: dict[str, str]) -> None:
    for style in styles.values():
        entry = section(reference["styles.md"], f"## {style.name}")
        for buckets in style.buckets:
            row = re.search(rf"^\| `{buckets.characteristic}` \|.*$", entry, re.MULTILINE)
            assert row, f"{style.name} {buckets.characteristic}"
            assert all(f"`{label}`" in row[0] for label in buckets.labels)


def test_every_metric_is_in_the_reference_with_its_formula(reference: dict[str, str]) -> None:
    for found in metrics.values():
        entry = section(reference["metrics.md"], f"## {found.name}")
        assert found.summary in " ".join(entry.split())
        assert found.cites in GENERATOR._bibliography(), found.name


def test_every_format_is_in_the_reference(reference: dict[str, str]) -> None:
    assert "\n".join(GENERATOR.formats_table()) in reference["formats.md"]
    for name in formats:
        assert f"| `{name}` | {formats[name].about} |" in reference["formats.md"]
        assert formats[name].holds <= set(GENERATOR.HELD), name


def test_every_detector_is_in_the_reference_with_what_it_changes(reference: dict[str, str]) -> None:
    page = reference["detectors.md"]
    for found in detectors.values():
        title = GENERATOR.WRITTEN.get(found.model.__name__, found.model.__name__)
        row = re.search(rf"^\| `{found.name}` \|.*$", section(page, f"## {title}"), re.MULTILINE)
        assert row, found.name
        assert found.summary in row[0]
        config = found.config()
        for field in dataclasses.fields(config):
            assert f"\n| `{field.name}` |" in page, field.name
            if getattr(config, field.name) != getattr(type(config)(), field.name):
                assert f"`{field.name}={getattr(config, field.name)!r}`" in row[0], found.name
    assert set(GENERATOR.DETECTOR_WORKS.values()) <= set(GENERATOR._bibliography())


def test_every_extractor_is_in_the_reference(reference: dict[str, str]) -> None:
    for found in extractors.values():
        row = re.search(rf"^\| `{found.name}` \|.*$", reference["extractors.md"], re.MULTILINE)
        assert row, found.name
        assert found.source in row[0]


def test_every_model_is_in_the_reference(reference: dict[str, str], ours: Callable[[Any], list[Any]]) -> None:
    for found in ours(recognisers):
        row = re.search(rf"^\| `{found.name}` \|.*$", reference["models.md"], re.MULTILINE)
        assert row, found.name
        assert found.source in row[0]


def test_every_data_set_is_in_the_reference(reference: dict[str, str], ours: Callable[[Any], list[Any]]) -> None:
    for found in ours(datasets):
        row = re.search(rf"^\| `{found.name}` \|.*$", reference["datasets.md"], re.MULTILINE)
        assert row, found.name
        assert found.summary in row[0]
        assert all(f"`{subset}`" in row[0] for subset in found.subsets)


def test_every_benchmark_is_in_the_reference_with_its_groups_and_notes(reference: dict[str, str]) -> None:
    page = reference["benchmarks.md"]
    for found in benchmarks.values():
        entry = section(page, f"## {found.name}")
        assert found.summary in entry
        assert found.fingerprint in entry
        assert all(f"| `{group.name}`" in entry for group in found.groups)
        assert all(f"- {note}" in entry for note in found.notes)
    for kind in (Recipe, Group, Sampling):
        for field in dataclasses.fields(kind):
            assert re.search(rf"^\| `{field.name}` \| [^|]+ \| \S.* \|$", page, re.MULTILINE), field.name


def test_the_page_on_writing_a_benchmark_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmarks, "_entries", {name: benchmarks[name] for name in benchmarks})  # the page adds one
    monkeypatch.chdir(tmp_path)
    follow(DOCS / "how-to" / "write-a-benchmark.md", matches, lambda _: True)


def test_every_key_of_a_training_file_is_in_the_reference_with_its_meaning(reference: dict[str, str]) -> None:
    page = reference["training.md"]
    tables = {"At the top": TrainingConfig, **GENERATOR.training_tables(TrainingConfig)}
    assert {"data", "optimiser", "consistency"} <= set(tables)
    recogniser = GENERATOR.training_tables(RecognitionConfig)
    assert {"data", "optimiser", "corruptions", "noise", "patterns"} <= set(recogniser)
    tables |= {"A recogniser": RecognitionConfig} | {f"{name} of a recogniser": t for name, t in recogniser.items()}
    for name, kind in tables.items():
        entry = section(page, f"## {name}")
        for field in dataclasses.fields(kind):
            assert re.search(rf"^\| `{field.name}` \| [^|]+ \| \S.* \|$", entry, re.MULTILINE), f"{name}.{field.name}"


def test_tables_on_written_pages_are_those_of_the_code() -> None:
    """They are written by `docs/generate_reference.py` too; copy them from what a failure prints."""
    for page, table in (
        ("how-to/score-detections.md", GENERATOR.protocol_table()),
        ("how-to/convert-files.md", GENERATOR.formats_table()),
        ("differences.md", GENERATOR.faults_table()),
    ):
        assert "\n".join(table) in (DOCS / page).read_text(), page
    assert len(MENDED_FAULTS) >= 8


def test_every_verb_and_option_is_in_the_reference(reference: dict[str, str]) -> None:
    command: Any = typer.main.get_command(app)
    assert len(command.commands) >= 5
    for name, verb in command.commands.items():
        entry = section(reference["cli.md"], f"## {name}")
        for parameter in verb.params:
            for flag in parameter.opts:
                written = flag if flag.startswith("-") else parameter.metavar or parameter.name.upper()
                assert f"`{written}`" in entry, f"{name} {written}"


def test_every_error_and_public_name_is_in_the_reference(reference: dict[str, str]) -> None:
    for name, thing in vars(errors).items():
        if inspect.isclass(thing) and issubclass(thing, errors.JostleError):
            assert f"| `{name}` |" in reference["errors.md"]
    for name in set(jostle.__all__) - {"JostleError"}:
        assert f"| `{name}` |" in reference["python.md"]


def test_every_profile_is_explained_by_hand() -> None:
    differences = (DOCS / "differences.md").read_text()
    how_to = (DOCS / "how-to" / "reproduce-a-benchmark.md").read_text()
    for table in profiles.values():
        assert table.name in differences
        assert table.name in how_to
        for name in table.entries:
            assert f"`{name}`" in differences, f"{table.name}/{name} is not in docs/differences.md"


def slugs(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub and MyST make them."""
    headings = re.findall(r"^#{1,6} (.+)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, *(DOCS / "reference" / name for name in sorted(GENERATED))], ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in LINK.findall(re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{name_of(page)} links to {target}, which is not there"
        content = there.read_text(encoding="utf-8") if there.suffix == ".md" else ""
        assert not anchor or anchor in slugs(content), f"{name_of(page)} links to {target}: no such heading"


def test_files_that_are_mentioned_exist() -> None:
    texts = [*PAGES, *SOURCE.rglob("*.py"), ROOT / "CHANGES.md"]
    for path in texts:
        for mention in FILE_NAMED.findall(path.read_text(encoding="utf-8")):
            assert (ROOT / mention).exists(), f"{name_of(path)} mentions {mention}, which is not there"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_code_on_pages_is_python_and_uses_public_names(page: Path) -> None:
    for block in blocks(page, "python"):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "jostle":
                assert hasattr(jostle, node.attr), f"jostle.{node.attr}"
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("jostle"):
                module = importlib.import_module(node.module or "")
                assert all(hasattr(module, alias.name) for alias in node.names), ast.unparse(node)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_on_pages_have_options_and_specs_that_exist(page: Path) -> None:
    verbs: Any = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    own = {name for block in blocks(page, "python") for name in re.findall(r"^def (\w+)\(", block, re.M)}
    for block in [*blocks(page, "console"), *(re.sub("^", "$ ", body, flags=re.M) for body in blocks(page, "bash"))]:
        lines = block.splitlines()
        for line, after in zip(lines, [*lines[1:], ""], strict=True):
            found = re.match(r"[$>]\s+jostle (\w+)(.*)", line)
            if not found or after.startswith("error"):
                continue
            words = shlex.split(found[2])
            known = {flag for parameter in verbs[found[1]].params for flag in parameter.opts}
            assert {word for word in words if word.startswith("-")} <= known, line
            for flag, word in itertools.pairwise(words):
                if flag == "-c" and word.partition(":")[0] not in own:  # what the page itself defines
                    Spec.parse(word)


DOCTESTED = sorted(path for path in SOURCE.rglob("*.py") if ">>> " in path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", DOCTESTED, ids=name_of)
def test_examples_in_docstrings(path: Path) -> None:
    module = importlib.import_module(".".join(path.relative_to(SOURCE.parent).with_suffix("").parts))
    found = doctest.testmod(module)
    assert found.attempted
    assert not found.failed


def test_the_page_on_adding_a_corruption_runs() -> None:
    """In a process of its own, so that what it registers stays there."""
    code = "\n\n".join(blocks(DOCS / "how-to" / "add-a-corruption.md", "python"))
    for level in ("frame", "clip", "codec", "time"):
        assert f'level="{level}"' in code
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[-2000:]


def test_the_page_on_bringing_a_model_runs() -> None:
    """But for the block that loads other libraries' files; in a process of its own, as it registers a model."""
    shown = list(blocks(DOCS / "how-to" / "bring-your-model.md", "python"))
    code = "\n\n".join(block for block in shown if "r3d_18" not in block)
    assert code.count("assert ") >= 4
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[-2000:]


def test_what_contributing_adds_in_one_file_is_there(tmp_path: Path) -> None:
    """Each block as a file of its own, imported in a process of its own, and each new thing put to use."""
    names = ("corruption", "format", "model", "benchmark")
    for name, block in zip(names, blocks(ROOT / "CONTRIBUTING.md", "python"), strict=True):
        (tmp_path / f"added_{name}.py").write_text(block, encoding="utf-8")
    (tmp_path / "truth.json").write_text(
        '{"actions": {"v": {"duration": 9, "annotations": [{"segment": [1, 2], "label": "wave"}]}}}', encoding="utf-8"
    )
    code = """
import added_corruption, added_format, added_model, added_benchmark
import jostle, numpy as np, torch
from jostle.evaluation.recipes.recipe import benchmarks
from jostle.models.recognition.recogniser import load_recogniser

clip = np.full((2, 40, 48, 3), 200, np.uint8)
assert (jostle.corrupt(clip, "dimmed_rows:5")[:, ::4] == 90).all()
assert jostle.load_truth("truth.json").classes == ("wave",)
weights = {"2.weight": np.eye(3), "2.bias": np.zeros(3)}
model = load_recogniser("mean_colour", weights={name: torch.tensor(value).float() for name, value in weights.items()})
assert model(np.zeros((1, 4, 40, 48, 3), np.uint8)).shape == (1, 3)
assert len(benchmarks["puppets-light"].cells) == 1 + 2 * 5
"""
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]


SHOWN = [DOCS / "how-to" / f"{name}.md" for name in (
    "score-detections", "diagnose-a-detector", "convert-files", "measure-robustness", "measure-frame-stability",
    "score-in-a-training-loop",
)]  # fmt: skip


@pytest.mark.parametrize("page", SHOWN, ids=name_of)
def test_what_a_page_shows_is_what_happens(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands and code from top to bottom, in one folder that holds the example's files."""
    monkeypatch.chdir(tmp_path)
    with contextlib.redirect_stdout(io.StringIO()):
        load(ROOT / "examples" / "score_two_runs.py").main(".")
    follow(page, matches, lambda body: "torch." not in body)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Small networks lose time by sharing it out."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("one_thread")
def test_the_example_that_trains_a_small_detector_and_the_pages_that_use_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers may be a little off: a sum in another order is enough to train another network."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        load(ROOT / "examples" / "train_small_detector.py").main(str(tmp_path / "made"))
    lines = [line.split() for line in out.getvalue().splitlines()]
    scores = {name: [float(value) for value in values] for name, *values in lines[1:]}
    assert list(scores) == ["clean", "robust"]
    assert min(scores["clean"][0], scores["robust"][0]) > 85
    assert scores["clean"][1] + 10 < scores["robust"][1] < scores["robust"][0]
    for name in ("run-a-detector", "train-a-detector"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        made = (tmp_path / "made", out.getvalue())
        follow(DOCS / "how-to" / f"{name}.md", begins_alike, lambda _: True, made=made)


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
def test_what_the_page_on_features_shows_is_what_happens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    film = Video(0, "test", 1)
    folder = tmp_path / "films" / "puppets-v1-seed0"
    (folder / film.name).parent.mkdir(parents=True)
    film.write(folder / film.name)
    write_truth(truth_of({film.id: film.film()}, ["test"]), folder / "annotations.json", format="thumos14")
    monkeypatch.chdir(tmp_path)
    follow(DOCS / "how-to" / "extract-features.md", matches, lambda _: True)


def follow(
    page: Path,
    agrees: Callable[[str, str], bool],
    runs: Callable[[str], bool],
    made: tuple[Path, str] | None = None,
) -> None:
    """Do what a page says, and compare what it shows; `made` stands in for running its example."""
    names: dict[str, Any] = {}
    said = ""
    for language, body in FENCE.findall(page.read_text(encoding="utf-8")):
        if language == "console":
            for words, output in commands(body):
                if made is not None and words[:2] == ["python", "examples/train_small_detector.py"]:
                    shutil.copytree(made[0], words[2])
                    found = made[1]
                else:
                    found = answer(words, output)
                assert agrees(output, found), f"{shlex.join(words)} says\n{found}"
        elif language == "python" and runs(body):
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile(body, str(page), "exec"), names)
            said = out.getvalue()
        elif language == "text":
            assert agrees(body, said), f"the code before it prints\n{said}"


def commands(block: str) -> Iterator[tuple[list[str], str]]:
    """Each command of a console block and the output shown under it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield shlex.split(command), output


def answer(words: list[str], shown: str) -> str:
    """What a command prints, without progress; the file that `cat` shows is made."""
    program, *rest = words
    if program == "cat":
        Path(rest[0]).write_text(shown, encoding="utf-8")
        return shown
    if program == "cd":
        os.chdir(rest[0])
        return ""
    if words[:2] == ["jostle", "generate"]:  # the test has made the films it needs
        return shown
    if program == "ls":
        return "".join(f"{name}\n" for name in sorted(os.listdir(rest[0])))
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), pytest.MonkeyPatch.context() as patch:
        if program == "python":
            load(ROOT / rest[0]).main(*rest[1:])
        else:
            assert program == "jostle"
            patch.setattr(sys, "argv", words)
            run_command()
    return re.sub(
        r"^(drawing videos|training|detecting|extracting [^:]*): .*\n", "", out.getvalue(), flags=re.MULTILINE
    )


def matches(shown: str, said: str) -> bool:
    """Whether a page shows what was said; a line of three dots stands for any lines."""
    lines = ["(?:.*\n)*?" if line == "..." else re.escape(line) + "\n" for line in shown.splitlines()]
    return re.fullmatch("".join(lines), said) is not None


NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?!\w)")


def begins_alike(shown: str, said: str) -> bool:
    """Whether the first line has the same words: what a small network learns differs from machine to machine."""
    first = [(text.splitlines() or [""])[0] for text in (shown, said)]
    one, other = (NUMBER.sub("", line).split() for line in first)
    return one == other or first[0] == "..."


def demo_table() -> tuple[str, dict[str, list[float]]]:
    """The demo's output on its page, without progress, and the rows of its table."""
    start = (DOCS / "start.md").read_text(encoding="utf-8")
    (shown,) = [
        output
        for language, body in FENCE.findall(start)
        if language == "console"
        for words, output in commands(body)
        if words == ["jostle", "demo"]
    ]
    shown = shown.partition("...\n")[2]
    rows = [re.fullmatch(r"(.*?)  +([\d. ]+)", line) for line in shown.splitlines()[1:]]
    return shown, {row[1]: [float(value) for value in row[2].split()] for row in rows if row}


def test_the_start_page_shows_what_the_demo_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its words and its arithmetic; `make test-wheel` holds the numbers themselves to a real demo."""
    shown, rows = demo_table()
    assert list(rows) == ["clean", *SHORT, "corrupted, mean", "relative robustness"]
    cells, clean = np.array([rows[cell] for cell in SHORT]), np.array(rows["clean"])
    np.testing.assert_allclose(rows["corrupted, mean"], cells.mean(0), atol=0.0101)
    np.testing.assert_allclose(rows["relative robustness"], 100 * (cells / clean).mean(0), atol=0.0201)
    results = {
        how: {
            "metric": "mAP@0.5",
            "clean": clean[i] / 100,
            "cells": [{"cell": cell, "value": rows[cell][i] / 100} for cell in SHORT],
            "mean_corrupted": rows["corrupted, mean"][i] / 100,
            "relative_robustness": rows["relative robustness"][i] / 100,
        }
        for i, how in enumerate(HOW)
    }
    runs, report = {how: Path("demo", how) for how in HOW}, Path("demo", "report.html")
    monkeypatch.setattr(api, "demo", lambda *_, **__: Demo(report, Path("clean.mp4"), None, runs, results))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["jostle", "demo"])
    monkeypatch.setattr(sys, "stderr", sys.stdout)
    assert run_command() == 0
    assert capsys.readouterr().out == shown


def test_stale_numbers_on_the_start_page_are_found() -> None:
    compare, page = load(DOCS / "compare_start.py"), (DOCS / "start.md").read_text(encoding="utf-8")
    table, _ = demo_table()
    assert compare.stale_lines(page, "jostle demo", table) == []
    (stale,) = compare.stale_lines(page, "jostle demo", table.replace("69.03", "69.13"))
    assert stale.split()[:2] == ["corrupted,", "mean"]
    assert len(compare.stale_lines(page, compare.COMMANDS[1], "")) == 2
    with pytest.raises(ValueError, match="shows no numbers under"):
        compare.stale_lines(page, "jostle names profiles", "")


def test_the_example_that_scores_two_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    load(ROOT / "examples" / "score_two_runs.py").main(str(tmp_path))
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"change -\d+\.\d points, 95 % \[-\d+\.\d, -\d+\.\d\]", lines[1])
    shares = [[float(part) for part in re.findall(r"([\d.]+)%", line)] for line in lines[-6:]]
    assert [round(sum(column)) for column in zip(*shares, strict=True)] == [100, 100]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["clean.json", "rough.json", "truth.json"]


def test_the_example_that_scores_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    load(ROOT / "examples" / "score_answers.py").main(tmp_path)
    assert capsys.readouterr().out.splitlines() == [
        "clean: 75 % right, 0 unreadable",
        "noisy: 50 % right, 1 unreadable",
    ]


def test_the_figures_on_the_pages_are_those_that_are_drawn(tmp_path: Path) -> None:
    """Their size and their colours, as letters may differ by a pixel with the version of a library."""
    for drawn in load(DOCS / "draw_images.py").main(tmp_path):
        pictures = [
            np.asarray(Image.open(path).convert("RGB"), float) for path in (drawn, DOCS / "images" / drawn.name)
        ]
        assert pictures[0].shape == pictures[1].shape
        assert np.abs(pictures[0] - pictures[1]).mean() < 2
        assert drawn.stat().st_size < 400_000


def test_the_example_that_corrupts_a_folder(tmp_path: Path, clip: Clip, capsys: pytest.CaptureFixture[str]) -> None:
    videos = tmp_path / "videos"
    videos.mkdir()
    for name in ("one", "two"):
        with Writer(videos / f"{name}.mp4", size=clip.size, fps=clip.fps) as writer:
            for frame in clip.frames[:6]:
                writer.write(frame)
    (videos / "broken.mp4").write_text("no video")
    example = load(ROOT / "examples" / "corrupt_folder.py")
    assert example.main(str(videos), str(tmp_path / "out"), "brightness:3") == 4
    said = capsys.readouterr()
    assert said.out.splitlines() == ["one: 6 of 6 frames corrupted", "two: 6 of 6 frames corrupted"]
    assert said.err.startswith("broken: set aside: ")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["one.mkv", "two.mkv"]
    example.main(str(videos), str(tmp_path / "out"), "brightness:3")
    assert capsys.readouterr().out.splitlines() == ["one: already there", "two: already there"]


def test_the_example_that_sweeps_severities(capsys: pytest.CaptureFixture[str]) -> None:
    load(ROOT / "examples" / "sweep_severities.py").main(["gaussian_noise"])
    found = [float(line.split()[1]) for line in capsys.readouterr().out.splitlines()[1:]]
    assert len(found) == 5
    assert found == sorted(found, reverse=True)


def test_example_place_corruptions(capsys: pytest.CaptureFixture[str]) -> None:
    load(ROOT / "examples" / "place_corruptions.py").main()
    lines = dict(line.split() for line in capsys.readouterr().out.splitlines())
    assert set(lines["everywhere"]) == {"#"}
    assert lines["frame:12"].index("#") == 12
    assert lines["frames:40-50"].count("#") == 10
    assert lines["random:8"].count("#") == lines["background:8"].count("#") == 8


def test_example_corrupt_a_film(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With networks that learned nothing, on a clip of some seconds: what is extracted, and how the fit is measured."""
    example = load(ROOT / "examples" / "corrupt_a_film.py")
    recipe = TrimmedClip(0, "test", "throw", 3)
    recipe.write(tmp_path / "clip.mp4")
    (action,) = recipe.film().actions
    actions = jostle.Segments([action.start], [action.end], [0], classes=(action.label,))
    extractor = load_extractor("puppet_net", weights="random")
    detectors = {"one": jostle.load_detector("temporalmaxer_puppets", min_score=0.0)}
    fits = example.compare(tmp_path / "clip.mp4", actions, extractor, detectors, example.SPEC)
    example.print_table(actions, fits)
    lines = capsys.readouterr().out.splitlines()
    seen = [int(line.split(" frames")[0].split()[-1]) for line in lines[:2]]
    assert seen == [recipe.film().frames, 1]
    assert list(fits) == ["one, clean", "one, corrupted"]
    assert lines[3].split()[0] == "throw"
    length = action.end - action.start
    half = jostle.Segments([action.start, 0.0], [action.start + length / 2, 0.1], [1, 1], [0.9, 0.8], ("wave", "throw"))
    assert example.best_overlap(actions, half) == pytest.approx([0.5])
    assert example.best_overlap(actions, half[1:]) == pytest.approx([0.0])


def test_the_example_that_brings_in_a_detector_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a network that compares the brightness of neighbouring frames in place of TransNetV2."""
    example = load(ROOT / "examples" / "transnet_cuts.py")

    class Differences:
        device = "cpu"

        def predict_frames(self, frames: Any, quiet: bool) -> tuple[Any, None]:
            assert frames.shape[1:] == (27, 48, 3)
            level = frames.float().mean((1, 2, 3))
            return torch.cat([(level[1:] - level[:-1]).abs() / 255, torch.zeros(1)]), None

    monkeypatch.setattr(example, "load_network", Differences)
    levels = np.repeat([20, 200, 90], [50, 30, 40]).astype(np.uint8)
    frames = np.broadcast_to(levels[:, None, None, None], (120, 60, 80, 3))
    found = example.detect(frames, fps=25.0, duration=4.8)
    assert found.start.tolist() == pytest.approx([50 / 25 - 0.5, 80 / 25 - 0.5])
    assert found.end.tolist() == pytest.approx([50 / 25 + 0.5, 80 / 25 + 0.5])
    assert found.score is not None
    assert found.score.tolist() == pytest.approx([180 / 255, 110 / 255])
    assert found.classes == ("cut",)


def test_every_example_is_tested() -> None:
    here = Path(__file__).read_text(encoding="utf-8")
    for example in EXAMPLES:
        assert f'"{example.name}"' in here
