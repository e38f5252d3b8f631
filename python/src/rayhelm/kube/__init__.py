"""Clients of the Kubernetes API."""
