"""No file makes a reader hang, crash, take the machine's memory, or end in anything but a result or a refusal.

The inputs are drawn from seeds, so a finding can be had again: each names the command that shows it.
"""

from __future__ import annotations

import pytest

from helpers.fuzzing import run
from helpers.readers import READERS

QUICK = 24  # inputs of each reader in the everyday suite


def test_a_few_damaged_files() -> None:
    found = run(list(READERS), QUICK)
    assert not found.bad, "\n".join(found.bad)
    assert found.counts.total() == QUICK * len(READERS)


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
def test_many_damaged_files(reader: str) -> None:
    count = READERS[reader].count
    found = run([reader], count)
    print(f"{reader}: {found.counts['read']} read, {found.counts['refused']} refused, {found.slowest:.1f} s at most")
    assert not found.bad, "\n".join(found.bad)
    assert found.counts.total() == count


def test_the_whole_suite_is_as_large_as_it_says() -> None:
    assert sum(reader.count for reader in READERS.values()) >= 100_000
    assert READERS["video"].count >= 5_000
