"""Models in few processes of this machine, asked by many workers; frames travel through memory that they share."""
