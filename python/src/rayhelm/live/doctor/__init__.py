"""Check a live installation: `checks` has one module for each check, `run` runs them all."""
