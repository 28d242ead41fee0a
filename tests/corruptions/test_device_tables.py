"""Cache of tables on a device, used by several threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from jostle.corruptions.gpu.device_tables import KEPT, _kept, device_table


def test_threads_get_correct_tables_despite_eviction() -> None:
    tables = [np.full(3, number) for number in range(2 * KEPT)]
    device = torch.device("cpu")

    def request_tables(first: int) -> bool:
        order = np.random.default_rng(first).integers(0, len(tables), 2000)
        return all(device_table(tables[number], device)[0].item() == number for number in order.tolist())

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(request_tables, range(8)))
    assert len(_kept) <= KEPT


def test_a_table_is_transferred_once() -> None:
    table = np.arange(4)
    assert device_table(table, torch.device("cpu")) is device_table(table, torch.device("cpu"))
    assert device_table(table.copy(), torch.device("cpu")) is not device_table(table, torch.device("cpu"))
