"""The shelf of corruptions: one family a file, each corruption one decorated function."""
