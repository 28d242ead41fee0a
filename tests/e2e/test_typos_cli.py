"""A wrong name costs no wait: it is told of before torch is imported."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from jostle.datasets.dataset import datasets
from jostle.evaluation.recipes.recipe import benchmarks
from jostle.models.detection.detector import detectors
from jostle.models.extractors.extractor import extractors
from jostle.models.objects.object_detector import object_detectors
from jostle.models.recognition.recogniser import recognisers
from jostle.models.weights.shipped import index_of_names

CODE = """
import sys
from jostle.cli.app import main
sys.argv[0] = "jostle"
try:
    main()
finally:
    print("torch" in sys.modules or "numba" in sys.modules)
"""


def test_the_index_of_names_is_what_the_shelves_hold() -> None:
    for shelf in (detectors, extractors, recognisers, object_detectors, datasets):
        ours = [name for name in shelf if shelf.part(name) is None]
        assert index_of_names()[shelf.plural] == ours, "make reference"
    tasks = {name: benchmarks[name].task for name in benchmarks if benchmarks.part(name) is None}
    assert index_of_names()["benchmarks"] == tasks, "make reference"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "puppets-d", "--model", "x"], "no benchmark is called 'puppets-d': did you mean puppets-"),
        (
            ["run", "puppets-c", "--model", "tridet_pupets"],
            "no detector is called 'tridet_pupets': did you mean tridet",
        ),
        (["run", "puppets-c", "--model", "puppet_x3d"], "puppet_x3d is a recogniser, and puppets-c is a benchmark of"),
        (["run", "puppets-c", "--model", "tridet_puppets", "--cells", "blak"], "no cell of puppets-c is called 'blak'"),
        (
            ["run", "puppets-c", "--model", "tridet_puppets", "--weights", "robustt"],
            "no such file; give the path of the",
        ),
        (["run", "puppets-c", "--model", "tridet_puppets", "--extractor", "pupet_net"], "did you mean puppet_net"),
        (["run", "puppets-c", "--model", "tridet_puppets", "--dataset", "foldr"], "no data set is called 'foldr'"),
        (["train", "model.toml"], "no model is called 'puppet_x3e': did you mean puppet_x3d"),
        (["train", "key.toml"], "key.toml: optimiser: epoch: no such setting: did you mean epochs?"),
    ],
)
def test_a_typo_is_answered_without_torch(tmp_path: Path, arguments: list[str], said: str) -> None:
    (tmp_path / "model.toml").write_text('task = "recognition"\nrecogniser = "puppet_x3e"\n')
    (tmp_path / "key.toml").write_text('task = "recognition"\n[optimiser]\nepoch = 1\n')
    command = [sys.executable, "-c", CODE, *arguments, "-o", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) in ((2, "False"), (3, "False")), done.stderr
    assert said in done.stderr
