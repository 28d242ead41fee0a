"""Detection and repair of damaged frames."""
