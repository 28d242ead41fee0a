"""Figures for papers, by matplotlib, and contact sheets."""
