"""Names of releases that other charts refer to; apart from the builders, whose types take long to import."""

__all__ = ["GATEWAY"]

GATEWAY = "gateway"
"""Release of the gateway of each cluster."""
