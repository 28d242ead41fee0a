"""Analysis and presentation of finished runs: reports, viewer, figures, leaderboards, trackers, cards."""
