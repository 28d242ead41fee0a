"""The benchmark runner: loads models, schedules videos, resumes, and writes a run folder."""
