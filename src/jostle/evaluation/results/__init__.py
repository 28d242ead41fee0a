"""Finished runs: their records, what they measure, and comparisons of them."""
