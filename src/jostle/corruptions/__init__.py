"""Video corruptions: one family per file, each corruption one decorated function."""
