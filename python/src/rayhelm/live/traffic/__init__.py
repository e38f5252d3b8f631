"""The traffic of models, from logs."""
