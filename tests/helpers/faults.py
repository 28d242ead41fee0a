"""The faults that tests are marked with, read from their source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path


def marked_tests(tests: Path) -> Iterator[tuple[str, str]]:
    """Yield (fault, `file::function`) for every `@pytest.mark.fault("F62")`."""
    for path in sorted(tests.rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "pytest.mark.fault" not in text:
            continue  # parsing takes most of the time
        for node in ast.walk(ast.parse(text)):
            for decorator in getattr(node, "decorator_list", ()):
                if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.fault":
                    for fault in decorator.args:
                        yield ast.literal_eval(fault), f"{path.relative_to(tests).as_posix()}::{node.name}"
