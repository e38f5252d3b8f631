"""Explanation: reasons, warnings and refusals, and the plan of each model."""
