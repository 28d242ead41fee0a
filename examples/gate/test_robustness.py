"""The model keeps its budget on the benchmark of this repository."""

import model


def test_robustness(robustness):
    robustness.check(model.NAME, "gate-c.toml", weights=model.WEIGHTS, budget="budget.toml")
