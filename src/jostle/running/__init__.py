"""A run itself: a benchmark, a data set and a model become a folder that survives being killed."""
