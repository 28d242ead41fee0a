"""Models put to work: predictions from videos or features, ready to be scored."""
