"""Small data sets, models and runs that tests of several packages share."""
