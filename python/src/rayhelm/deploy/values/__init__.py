"""Typed Helm values: one model for each chart, and how a plan fills them."""
