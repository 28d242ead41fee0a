"""From frames to what a network is given: resized, cut, and all of it at once on a GPU."""
