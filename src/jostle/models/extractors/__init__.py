"""Feature extractors: a network and its `InputSpec`, called on raw frames."""
