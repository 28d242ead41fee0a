"""What runs say, as plain numbers: read from run folders alone, for whoever shows them."""
