"""Run Helm on the charts, and generate their files from the values models."""
