"""Metrics of a live endpoint: Ray Serve LLM with CPU stand-ins, the gateway and Prometheus, under load."""
