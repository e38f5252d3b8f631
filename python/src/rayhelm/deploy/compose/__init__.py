"""Build the typed values of each chart from a plan: one module for each chart, and shared modules."""
