"""The largest counts that are taken for meant. They stand alone, because the command line must not import more."""

__all__ = ["MOST_RANKS", "MOST_TOKENS"]

MOST_RANKS = 1024
"""Of tensor or of pipeline parallelism."""
MOST_TOKENS = 2**24
"""Of a context, a batch, or sequences at a time; the longest context published is 10 million tokens."""
