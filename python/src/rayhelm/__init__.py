"""rayhelm: from a fleet file to an inference API on Kubernetes, through Helm and GitOps."""

__version__ = "0.2.0"
