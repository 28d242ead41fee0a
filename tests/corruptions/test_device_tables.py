"""Tables that a device keeps, asked for by several threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from jostle.corruptions.gpu.device_tables import KEPT, _kept, device_table


def test_threads_get_their_tables_though_others_push_them_out() -> None:
    tables = [np.full(3, number) for number in range(2 * KEPT)]
    device = torch.device("cpu")

    def ask(first: int) -> bool:
        order = np.random.default_rng(first).integers(0, len(tables), 2000)
        return all(device_table(tables[number], device)[0].item() == number for number in order.tolist())

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(8)))
    assert len(_kept) <= KEPT


def test_a_table_is_handed_over_once() -> None:
    table = np.arange(4)
    assert device_table(table, torch.device("cpu")) is device_table(table, torch.device("cpu"))
    assert device_table(table.copy(), torch.device("cpu")) is not device_table(table, torch.device("cpu"))
