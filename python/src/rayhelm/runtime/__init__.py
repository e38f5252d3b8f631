"""Code that runs inside Ray: the Serve autoscaling policy, stream errors, speech.

This package imports nothing else of rayhelm, and only packages that come with Ray Serve LLM: a serving image contains
rayhelm, but not its requirements. tests/runtime/test_runtime_imports.py proves it.
"""
