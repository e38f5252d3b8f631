"""The CPU stand-in: a tiny model with random weights that replaces each model where there is no GPU."""
