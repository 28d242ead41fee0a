"""Task types of a benchmark, one per file: ground truth, predictions, storage and scoring."""
