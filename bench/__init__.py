"""What jostle costs, beside what others cost: run from the repository root, never installed."""
