"""Facts of a run are declared once: reports, boards, the gate and results hold them and repeat none."""

from __future__ import annotations

import ast
from dataclasses import fields
from pathlib import Path

import pytest

from jostle.core.options import Role, described
from jostle.evaluation.run_folder.metadata import RunFacts
from jostle.models.options import ComputeOptions

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "jostle"
ROOMS = ("reporting", "gate", "evaluation/results")
FEW = 2  # names that may be alike by chance


@pytest.mark.parametrize("room", ROOMS)
def test_no_class_repeats_the_facts(room: str) -> None:
    names = {one.name for one in fields(RunFacts)}
    repeated = []
    for path in sorted((PACKAGE / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                own = {
                    one.target.id for one in node.body if isinstance(one, ast.AnnAssign) and hasattr(one.target, "id")
                }
                if len(own & names) > FEW:
                    repeated.append(f"{path.name}: {node.name} has {', '.join(sorted(own & names))}")
    assert repeated == []


def test_every_fact_has_a_role_and_a_description() -> None:
    for one in fields(RunFacts):
        about = described(one)
        assert about.help.endswith("."), one.name
        assert about.role is not Role.SESSION, f"{one.name}: what a session asks for is not recorded"


def test_options_of_computing_are_recorded_as_requested() -> None:
    assert {one.name for one in fields(ComputeOptions)} <= {one.name for one in fields(RunFacts)}
