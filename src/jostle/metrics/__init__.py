"""Numbers from predictions and truth: neither torch nor video is needed to score anybody's files."""
