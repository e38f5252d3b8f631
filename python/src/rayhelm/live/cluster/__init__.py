"""Talk to a Kubernetes API server: `kubectl` writes, `reader` reads."""
