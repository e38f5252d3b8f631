"""Admission policies, asked before anything reaches a cluster: the same CEL that the API server runs."""
