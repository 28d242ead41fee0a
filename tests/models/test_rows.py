"""Batch sizes are proved on the processor at hand, once; where rows depend on their batch, another size is taken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn

from jostle.models.rows import RowBatches, rows_agree


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JOSTLE_CACHE", str(tmp_path))
    return tmp_path / "rows"


class Counted:
    """A step with the number of its calls; the last `left_over` rows of batches of some sizes get other bits."""

    def __init__(self, wrong: tuple[int, ...] = (), left_over: int = 1) -> None:
        self.calls, self.wrong, self.left_over = 0, wrong, left_over

    def __call__(self, rows: Tensor) -> Tensor:
        self.calls += 1
        outputs = rows.flatten(1).sum(1, keepdim=True) * 3
        if len(rows) in self.wrong:
            outputs[-self.left_over :] = torch.nextafter(outputs[-self.left_over :], torch.tensor(torch.inf))
        return outputs


ROW = torch.zeros(1, 3, 4)


@pytest.mark.parametrize(
    ("wrong", "size"), [((), 32), ((32,), 16), ((32, 16), 64), ((32, 16, 64), 1), ((16, 64), 32)], ids=str
)
def test_the_first_size_in_which_rows_agree_is_taken(wrong: tuple[int, ...], size: int) -> None:
    assert RowBatches(nn.Linear(2, 2)).size("see", Counted(wrong), ROW, 32) == size


def test_a_batch_of_one_needs_no_proof() -> None:
    step = Counted()
    assert (RowBatches(nn.Linear(2, 2)).size("see", step, ROW, 1), step.calls) == (1, 0)


def differ_by_company(rows: Tensor) -> Tensor:
    return rows - rows.mean(0, keepdim=True)


def differ_in_one_place(rows: Tensor) -> Tensor:
    return torch.cat([rows[:5], rows[5:6] * (1 + 1e-6), rows[6:]])


def see_nothing(rows: Tensor) -> Tensor:
    return rows * 0 + 1


@pytest.mark.parametrize("step", [differ_by_company, differ_in_one_place, see_nothing])
def test_what_depends_on_the_batch_or_shows_nothing_is_no_proof(step: Callable[[Tensor], Tensor]) -> None:
    assert not rows_agree(step, ROW, 8)


def test_a_step_that_is_not_a_number_is_compared_by_its_bits() -> None:
    assert rows_agree(lambda rows: torch.where(rows > 0, torch.nan, rows), ROW, 8)


def test_rows_are_tried_in_the_layout_of_the_network() -> None:
    strides = []
    row = torch.zeros(1, 4, 5, 3).permute(0, 3, 1, 2)

    def step(rows: Tensor) -> Tensor:
        strides.append((rows.stride(), rows.data_ptr() % 64))
        return rows * 2

    assert rows_agree(step, row, 4)
    assert set(strides) == {((60, 1, 15, 3), 0)}


def test_an_outcome_is_kept_by_all_that_it_depends_on(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    network = nn.Sequential(nn.Linear(2, 2))

    def calls(network: nn.Module = network, row: Tensor = ROW, name: str = "see") -> int:
        step = Counted(wrong=(8,))
        assert RowBatches(network).size(name, step, row, 8) == 4
        return step.calls

    first = calls()
    assert first > 0
    assert calls() == 0
    assert len(list(cache.iterdir())) == 1
    assert calls(row=torch.zeros(1, 3, 5)) > 0
    assert calls(row=ROW.double()) > 0
    assert calls(name="join") > 0
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        assert calls() > 0
    finally:
        torch.set_num_threads(threads)
    with torch.no_grad():
        network[0].bias += 1
    assert calls() > 0
    assert calls() == 0


def test_a_network_without_a_file_of_code_is_proved_in_each_process(cache: Path) -> None:
    class Typed(nn.Linear):
        pass

    Typed.__module__ = "__main__typed__"
    for _ in range(2):
        step = Counted()
        assert RowBatches(Typed(2, 2)).size("see", step, ROW, 8) == 8
        assert step.calls > 0
    assert not cache.exists()


@pytest.mark.parametrize("text", ["", "7", "many"])
def test_a_damaged_outcome_is_proved_again(cache: Path, text: str) -> None:
    network = nn.Linear(2, 2)
    RowBatches(network).size("see", Counted(), ROW, 8)
    (file,) = cache.iterdir()
    file.write_text(text)
    assert RowBatches(network).size("see", Counted(), ROW, 8) == 8
    assert file.read_text() == "8\n"


def test_a_cache_that_cannot_be_written_is_done_without(cache: Path) -> None:
    cache.write_text("in the way")
    assert RowBatches(nn.Linear(2, 2)).size("see", Counted(), ROW, 8) == 8
