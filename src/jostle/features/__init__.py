"""Feature extraction from clean and corrupted video; only changed windows are computed again."""
