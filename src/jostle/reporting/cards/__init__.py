"""Model cards and data set cards for the Hugging Face hub, written to disk."""
