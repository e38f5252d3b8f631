"""The charts: running Helm on them, and writing what is generated from their values models."""
