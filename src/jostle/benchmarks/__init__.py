"""The shelf of benchmarks: one family of recipes a file, and what is done with a recipe before anything runs."""
