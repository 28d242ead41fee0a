"""The data set inside the box: short films of puppets that act, drawn here and the same on every machine."""
