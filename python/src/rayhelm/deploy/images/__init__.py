"""Container images of a fleet, and their mirror for a cluster without access to their registries."""
