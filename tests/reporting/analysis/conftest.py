"""Finished runs of every task, generated once per session."""

from __future__ import annotations

from helpers.synthetic_runs import record_of

LANGUAGE_CELLS = ("thumos14-c/black_frame:1", "thumos14-c/motion_blur:3", "ucf101-p/reverse_sampling:3")

detection = record_of(scope="session")
robust_detection = record_of(scope="session", weakness=0.3, model="firmer")
recognition = record_of("recognition", scope="session", videos=40)
frames = record_of("frames", scope="session", videos=20)
questions = record_of("questions", scope="session", videos=20, cells=LANGUAGE_CELLS)
moments = record_of("moments", scope="session", videos=20, cells=LANGUAGE_CELLS)
