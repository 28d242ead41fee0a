"""Gate for a release: from predictions, a budget and a reference run to verdicts with reasons."""
