"""Worker processes, model servers and Ray clusters."""
