"""Fit the speed model to the measured rows of `data/performance/measured.csv`."""
