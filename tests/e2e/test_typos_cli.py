"""Unknown names are reported at once, before torch is imported."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

# Each command is a fork of a process that has imported the program, as importing takes most of the time.
CODE = """
import json, os, sys
from jostle.cli.app import main
for number, words in enumerate(json.loads(sys.argv[1])):
    child = os.fork()
    if child == 0:
        for handle, name in enumerate(("stdout", "stderr"), start=1):
            os.dup2(os.open(f"{number}.{name}", os.O_WRONLY | os.O_CREAT), handle)
        sys.argv = ["jostle", *words]
        try:
            main()
        finally:
            print("torch" in sys.modules)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
CASES = [
    (["run", "puppets-d", "--model", "x"], "no benchmark is called 'puppets-d': did you mean puppets-"),
    (["run", "puppets-c", "--model", "tridet_pupets"], "no detector is called 'tridet_pupets': did you mean tridet"),
    (["run", "puppets-c", "--model", "puppet_x3d"], "puppet_x3d is a recogniser, and puppets-c is a benchmark of"),
    (["run", "puppets-c", "--model", "tridet_puppets", "--cells", "blak"], "no cell of puppets-c is called 'blak'"),
    (["run", "puppets-c", "--model", "tridet_puppets", "--weights", "robustt"], "no such file; give the path of the"),
    (["run", "puppets-c", "--model", "tridet_puppets", "--extractor", "pupet_net"], "did you mean puppet_net"),
    (["run", "puppets-c", "--model", "tridet_puppets", "--dataset", "foldr"], "no data set is called 'foldr'"),
    (["train", "model.toml"], "no model is called 'puppet_x3e': did you mean puppet_x3d"),
    (["train", "key.toml"], "key.toml: optimiser: epoch: no such setting: did you mean epochs?"),
]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[int, str, str]]:
    """Exit code, stdout and stderr of each command."""
    folder = tmp_path_factory.mktemp("typos")
    (folder / "model.toml").write_text('task = "recognition"\nrecogniser = "puppet_x3e"\n')
    (folder / "key.toml").write_text('task = "recognition"\n[optimiser]\nepoch = 1\n')
    commands = json.dumps([[*words, "-o", "out"] for words, _ in CASES])
    process = subprocess.run(
        [sys.executable, "-c", CODE, commands], cwd=folder, capture_output=True, text=True, check=True
    )
    return [
        (int(code), (folder / f"{number}.stdout").read_text().strip(), (folder / f"{number}.stderr").read_text())
        for number, code in enumerate(process.stdout.split())
    ]


@pytest.mark.parametrize("number", range(len(CASES)), ids=[" ".join(words) for words, _ in CASES])
def test_typos_are_reported_without_torch(results: list[tuple[int, str, str]], number: int) -> None:
    code, loaded, message = results[number]
    assert (code, loaded) in ((2, "False"), (3, "False")), message
    assert CASES[number][1] in message
