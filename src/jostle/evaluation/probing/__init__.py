"""Breaking points: the smallest damage that makes a model lose an action, a clip, a frame, an answer or a moment."""
