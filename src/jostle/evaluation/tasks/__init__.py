"""Task types of a benchmark: ground truth, predictions, storage and scoring."""
