"""Evaluate admission policies before objects reach a cluster, with the CEL that the API server runs."""
