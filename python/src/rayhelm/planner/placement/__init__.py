"""Placement: which split of a model over which GPUs, with how many replicas."""
