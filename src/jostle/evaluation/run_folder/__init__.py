"""Files of a run folder: metadata, scores, ground truth and the journal."""
