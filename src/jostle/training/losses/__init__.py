"""Losses of recognisers, and divergences of the consistency loss."""
