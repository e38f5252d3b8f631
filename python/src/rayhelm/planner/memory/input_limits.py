"""Largest accepted counts. A module without imports, because the command line reads it at start."""

__all__ = ["MOST_RANKS", "MOST_TOKENS"]

MOST_RANKS = 1024
"""Largest tensor or pipeline parallel size."""
MOST_TOKENS = 2**24
"""Largest context, batch or number of sequences; the longest published context has 10 million tokens."""
