"""Golden numbers of the original programs, and the rules that inputs for them follow."""
