"""Measures the speed of a live endpoint, beside the plan, with vLLM's load generator."""
