"""Networks, their weights and their preprocessing."""
