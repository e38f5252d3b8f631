"""Workers of an ingress in the plan."""

from rayhelm.facts.closed import Closed

__all__ = ["IngressWorkersPlan"]


class IngressWorkersPlan(Closed):
    """Workers without GPUs, on which the ingress of a service runs whose models can scale to zero."""

    min_workers: int
    max_workers: int
