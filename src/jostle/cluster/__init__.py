"""Work on many machines, through Ray. Nothing here is imported unless that is asked for."""
