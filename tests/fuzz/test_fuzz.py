"""Fuzzing of readers: damaged files never cause a hang, a crash, excessive memory use or an unexpected error.

Inputs are drawn from seeds, so findings are reproducible: each names the command that repeats it.
"""

from __future__ import annotations

import pytest

from helpers.fuzzing import run
from helpers.readers import READERS

QUICK = 24  # inputs per reader in the default suite


def test_a_few_damaged_files() -> None:
    result = run(list(READERS), QUICK)
    assert not result.bad, "\n".join(result.bad)
    assert result.counts.total() == QUICK * len(READERS)


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
def test_many_damaged_files(reader: str) -> None:
    count = READERS[reader].count
    result = run([reader], count)
    print(f"{reader}: {result.counts['read']} read, {result.counts['refused']} refused, {result.slowest:.1f} s at most")
    assert not result.bad, "\n".join(result.bad)
    assert result.counts.total() == count


def test_the_suite_has_the_stated_size() -> None:
    assert sum(reader.count for reader in READERS.values()) >= 100_000
    assert READERS["video"].count >= 5_000
