"""Data sets that people have on disk, each in the layouts it is met in: annotations and videos are found by what is
there, and a copy may be partial."""
