"""The gate never passes what it could not look at, and speaks for the predictions that are there."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import jostle
from helpers.striped_videos import CELLS, StripeReader, run_stripes, write_benchmark

pytest.importorskip("torch")  # runs of models need it

VIDEOS = 60
BUDGET = {"condition": [{"metric": "clean", "at_least": 0.7}, {"metric": "mean_corrupted", "at_least": 0.6}]}
NO_WORSE = {
    "condition": [
        {"metric": "clean", "at_most_below_reference": 0.3},
        {"metric": "mean_corrupted", "at_most_below_reference": 0.3},
    ]
}


@dataclass
class World:
    """A benchmark, with runs of it."""

    benchmark: Path
    root: Path

    def run(self, name: str, model: Any = None, **options: Any) -> Path:
        run_stripes(self.benchmark, self.root / name, model, **options)
        return self.root / name


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    root = tmp_path_factory.mktemp("stripes")
    world = World(write_benchmark(root, VIDEOS), root)
    world.run("sound", StripeReader({3}))
    world.run("frail", StripeReader({3}, range(0, VIDEOS, 2)))
    return world


def command(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "jostle", *map(str, words)], capture_output=True, text=True)


def decisions(checked: jostle.Check) -> list[str]:
    return [one.decision for one in checked.conditions]


def test_early_run_is_decided_against_the_reference_it_is_given(world: World) -> None:
    sound, frail = world.root / "sound", world.root / "frail"
    early = world.run("early", StripeReader({3}, range(0, VIDEOS, 2)), until_decided=NO_WORSE, against=sound)
    stopped = json.loads((early / "run.json").read_text())["stopped_early"]
    assert stopped["videos"] < VIDEOS
    again = jostle.check(early, sound, NO_WORSE)
    assert decisions(again) == ["pass", "fail"]
    assert [one.videos for one in again.conditions] == [one["videos"] for one in stopped["conditions"]]
    assert decisions(jostle.check(early)) == ["pass", "fail"]
    assert decisions(jostle.check(early, budget=NO_WORSE)) == ["pass", "fail"]
    other = jostle.check(early, frail, NO_WORSE)
    assert "fail" not in decisions(other)
    assert jostle.check(early, budget={"condition": [{"metric": "clean", "at_least": 0.2}]}).passed
    assert decisions(
        jostle.check(early, sound, NO_WORSE | {"condition": [*NO_WORSE["condition"], *BUDGET["condition"]]})
    )


def test_early_run_speaks_of_no_cell_that_it_left_out(world: World, tmp_path: Path) -> None:
    one = {"condition": [{"metric": "clean", "at_least": 0.3}]}
    early = world.run("one-cell", StripeReader({3}), cells=[CELLS[0]], until_decided=one)
    assert "stopped_early" in json.loads((early / "run.json").read_text())
    checked = jostle.check(
        early, budget={"condition": [*one["condition"], {"metric": "mean_corrupted", "at_least": 0.3}]}
    )
    assert decisions(checked) == ["pass", "undecided"]
    assert checked.conditions[1].reason in checked.gaps
    assert "no predictions for" in checked.conditions[1].reason
    with pytest.raises(jostle.JostleError, match="cells that it is about are left out"):
        world.run("never", cells=[CELLS[0]], until_decided=BUDGET)


def test_early_end_does_not_happen_where_videos_cannot_be_used(tmp_path: Path) -> None:
    benchmark = write_benchmark(tmp_path, 30, CELLS[:1])
    for number in range(1, 30, 6):
        for file in (tmp_path / "films" / "b" / f"film_{number:04d}").iterdir():
            file.write_bytes(b"no image")
    easy = {"condition": [{"metric": "clean", "at_least": 0.3}]}
    run_stripes(benchmark, tmp_path / "run", until_decided=easy)
    checked = jostle.check(tmp_path / "run", budget=easy)
    assert decisions(checked) == ["undecided"]
    assert "5 videos" in checked.gaps[0]
    assert checked.conditions[0].gap


def test_swapped_predictions_are_an_error_and_not_a_verdict(world: World, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(world.root / "frail", run)
    budget = tmp_path / "budget.toml"
    budget.write_text('[[condition]]\nmetric = "mean_corrupted"\nat_least = 0.8\n')
    assert command("check", run, "--budget", budget).returncode == 7
    for file in (run / "predictions").iterdir():
        shutil.copyfile(world.root / "sound" / "predictions" / file.name, file)
    swapped = command("check", run, "--budget", budget)
    assert swapped.returncode == 6
    assert "not what the run wrote" in swapped.stderr
    with pytest.raises(jostle.JostleError, match="not what the run wrote"):
        jostle.check(world.root / "sound", run)


def test_swapped_annotations_are_an_error_and_not_a_verdict(world: World, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(world.root / "frail", run)
    assert not jostle.check(run, budget=BUDGET).passed
    truth = json.loads((run / "truth.json").read_text())
    for number in range(0, VIDEOS, 2):  # what the model says of them under corruption
        truth["videos"][f"film_{number:04d}"] = ["b"]
    (run / "truth.json").write_text(json.dumps(truth))
    for budget in (BUDGET, {"condition": [{"metric": "mean_corrupted", "at_least": 0.6}]}):
        with pytest.raises(jostle.JostleError, match=r"truth\.json is not what the run wrote"):
            jostle.check(run, budget=budget)


@pytest.mark.parametrize("taken", ["cell", "cell of the reference", "prediction", "reference", "order"])
def test_what_is_taken_from_a_passing_run_is_never_passed(world: World, tmp_path: Path, taken: str) -> None:
    sound = world.root / "sound"
    run, reference = tmp_path / "run", tmp_path / "reference"
    shutil.copytree(sound, run)
    shutil.copytree(sound, reference)
    assert jostle.check(run, reference).passed
    if taken.startswith("cell"):
        part = reference if "reference" in taken else run
        next((part / "predictions").glob("*brightness*")).unlink()
        assert [one.gap for one in jostle.check(run, reference).conditions] == [False, True]
        assert decisions(jostle.check(run, budget=BUDGET)) == ["pass", "pass" if part is reference else "undecided"]
    elif taken == "prediction":
        other = next((world.root / "frail" / "predictions").glob("*contrast*"))
        shutil.copyfile(other, run / "predictions" / other.name)
        with pytest.raises(jostle.JostleError, match="not what the run wrote"):
            jostle.check(run, reference)
    elif taken == "reference":
        shutil.rmtree(reference)
        with pytest.raises(jostle.JostleError):
            jostle.check(run, reference)
    else:
        early = world.run(f"for-{taken}", StripeReader({3}), until_decided=BUDGET)
        about = json.loads((early / "run.json").read_text())
        assert jostle.check(early).passed
        (early / "run.json").write_text(json.dumps(about | {"seed": about["seed"] + 1}))
        assert decisions(jostle.check(early, budget=BUDGET)) == ["undecided", "undecided"]
        del about["stopped_early"]
        (early / "run.json").write_text(json.dumps(about))
        assert decisions(jostle.check(early, budget=BUDGET)) == ["undecided", "undecided"]


def test_few_videos_are_undecided_with_the_number_that_would_do(tmp_path: Path) -> None:
    benchmark = write_benchmark(tmp_path, 4, CELLS[:2])
    run_stripes(benchmark, tmp_path / "run", StripeReader((), {1}))
    checked = jostle.check(
        tmp_path / "run",
        budget={
            "condition": [
                {"metric": "clean", "at_least": 0.5},
                {"metric": "mean_corrupted", "at_least": 0.5},
                {"metric": f"cell:{CELLS[0]}", "at_least": 0.5},
                {"metric": "family:noise", "at_least": 0.5},
            ]
        },
    )
    assert decisions(checked) == ["undecided"] * 4
    assert all("would decide it" in one.reason for one in checked.conditions)
    assert jostle.check(tmp_path / "run", budget={"condition": [{"metric": "clean", "at_least": 0.35}]}).passed


def test_runs_of_other_conditions_are_remarked_on(world: World, tmp_path: Path) -> None:
    other = world.run("seeded", StripeReader({3}), seed=5)
    checked = jostle.check(other, world.root / "sound")
    expected = f"seed of the corruptions: 5 in {other}, 0 in {world.root / 'sound'}"
    assert expected in checked.remarks
    assert expected in checked.to_dict()["remarks"]
    shutil.copytree(world.root / "sound", tmp_path / "half")
    about = json.loads((tmp_path / "half" / "run.json").read_text())
    changed = {"precision": "bfloat16", "compiled": True, "mend": "jostle", "rule": "released"}
    (tmp_path / "half" / "run.json").write_text(json.dumps(about | changed))
    done = command("check", tmp_path / "half", "--against", world.root / "sound", "--junit", tmp_path / "junit.xml")
    words = ("precision: bfloat16 in", "torch.compile: on in", "mending: jostle in", "window rule: released in")
    for word in words:
        assert word in " ".join(done.stderr.split())
        assert word in (tmp_path / "junit.xml").read_text()


def test_outputs_name_the_videos_of_each_condition(world: World, tmp_path: Path) -> None:
    name = "first\\n\\u001bsecond"
    budget = tmp_path / "budget.toml"
    budget.write_text(f'[[condition]]\nname = "{name}"\nmetric = "clean"\nat_least = 0.2\n')
    early = world.run("for-outputs", StripeReader({3}), until_decided=budget)
    done = command("check", early, "--budget", budget, "--junit", tmp_path / "junit.xml")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["condition", "value", "interval", "limit", "videos", "decision"]
    assert lines[1].startswith("first second ")
    videos = jostle.check(early, budget=budget).conditions[0].videos
    assert lines[1].split()[-2:] == [str(videos), "pass"]
    case = ElementTree.parse(tmp_path / "junit.xml").find("testsuite/testcase")
    assert case is not None
    assert case.get("name") == "first second"
    text = case.findtext("system-out") or ""
    assert f"bets after each video, {videos} of {VIDEOS} in random order" in text
    assert "draws of" not in text
    page = tmp_path / "report.html"
    jostle.report(early, out=page)
    assert f"{VIDEOS} videos in random order" in page.read_text()
    assert "[[condition]]" in command("check", "--help").stdout


def test_run_may_end_at_the_first_failure(world: World) -> None:
    budget = {"condition": [{"metric": "clean", "at_least": 0.95}, {"metric": "mean_corrupted", "at_least": 0.9}]}
    frail = StripeReader({3}, range(VIDEOS))
    whole = world.run("until-decided", frail, until_decided=budget)
    fast = world.run("fail-fast", frail, until_decided=budget, fail_fast=True)
    counts = [len(json.loads((run / "scores.json").read_text())["cells"]) for run in (whole, fast)]
    assert counts == [len(CELLS)] * 2
    covered = [json.loads((run / "scores.json").read_text())["coverage"]["videos"] for run in (whole, fast)]
    assert covered[1] < covered[0]
    assert decisions(jostle.check(fast)) == ["undecided", "fail"]
    assert "has failed after" in json.loads((fast / "run.json").read_text())["stopped_early"]["reason"]
    with pytest.raises(jostle.JostleError, match="until_decided"):
        world.run("no-budget", fail_fast=True)


def test_gate_is_about_the_cells_that_it_is_given(world: World) -> None:
    part = world.run("part", StripeReader({3}), cells=[CELLS[1]])
    assert decisions(jostle.check(part, budget=BUDGET)) == ["pass", "undecided"]
    checked = jostle.check(part, budget=BUDGET, cells=[CELLS[1]])
    assert checked.passed
    assert "about 1 of 4 corrupted cells, as given" in checked.remarks
    with pytest.raises(jostle.JostleError, match="did you mean"):
        jostle.check(part, budget=BUDGET, cells=["gausian_noise:3"])
