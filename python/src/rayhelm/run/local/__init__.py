"""Serve the rendered configuration on this computer: `rayhelm up` and `rayhelm down`."""
