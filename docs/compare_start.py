"""Compare the numbers on docs/start.md with the output of the demo: python docs/compare_start.py DEMO.txt DIFF.txt

The files hold what `jostle demo` and `jostle diff demo/clean demo/robust` print; `make test-wheel` makes both. Exits
with 1 if a line of numbers on the page is not in them.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parent / "start.md"
COMMANDS = ("jostle demo", "jostle diff demo/clean demo/robust")


def stale_lines(page: str, command: str, output: str) -> list[str]:
    """Return the lines of numbers that a page shows under a command and that its output lacks, spaces aside."""
    block = re.search(rf"^\$ {re.escape(command)}\n(.*?)^(?:\$ |```)", page, re.DOTALL | re.MULTILINE)
    expected = [line for line in block[1].splitlines() if re.search(r"\d\.\d\d\b", line)] if block else []
    if not expected:
        raise ValueError(f"the page shows no numbers under `{command}`")
    printed = [line.split() for line in output.splitlines()]
    return [line for line in expected if line.split() not in printed]


def main(outputs: list[Path]) -> int:
    """Print stale lines, and return the exit code."""
    page, code = PAGE.read_text(encoding="utf-8"), 0
    for command, path in zip(COMMANDS, outputs, strict=True):
        output = path.read_text(encoding="utf-8")
        if stale := stale_lines(page, command, output):
            print(f"{PAGE.name}: `{command}` no longer prints", *stale, "but", output, sep="\n")
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main([Path(argument) for argument in sys.argv[1:]]))
