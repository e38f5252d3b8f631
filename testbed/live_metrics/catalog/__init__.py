"""Comparison of the metric catalog with a live endpoint: `make metrics-catalog`."""
