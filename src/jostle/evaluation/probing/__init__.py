"""Breaking points: the smallest damage that makes a model lose an action, a clip or a frame."""
