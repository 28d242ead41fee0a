"""Benchmarks of jostle against other implementations: run from the repository root, never installed."""
