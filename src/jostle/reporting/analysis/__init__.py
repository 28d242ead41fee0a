"""Analysis of run folders: scores, comparisons, confidence intervals and tables, as plain data."""
