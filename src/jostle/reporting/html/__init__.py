"""Self-contained HTML pages: the report and the leaderboard."""
