"""Cards for the Hugging Face hub, written to disk: what a run says, and what its predictions are. Nothing is sent."""
