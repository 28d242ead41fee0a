"""Object detectors that run on single frames."""
