"""Training of detectors, recognisers and inspectors, clean and robust."""
