"""The bundled data set: short synthetic films of puppets, identical on every machine."""
