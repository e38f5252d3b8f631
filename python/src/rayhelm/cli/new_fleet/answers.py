"""The answers that make a fleet file, and the answers that rayhelm proposes."""

from dataclasses import dataclass

from rayhelm.facts import load_catalog
from rayhelm.facts.tensors import count_weights

__all__ = ["Answers", "OwnPool", "propose_context", "propose_model"]

_SHARE_OF_WEIGHTS = 0.7
"""Largest part of a GPU that the weights of a proposed model take; the KV cache needs the rest."""


@dataclass(frozen=True)
class OwnPool:
    """A pool without a live cluster."""

    gpu: str
    nodes: int
    gpus_per_node: int
    image: str = ""
    """Image for the GPUs of the vendor; empty for the default one."""


@dataclass(frozen=True)
class Answers:
    """Everything that a first fleet file says, besides its pools."""

    fleet: str
    api_server: str
    """CIDR; empty if the cluster has one already."""
    model: str
    source: str
    revision: str
    """Empty: not pinned."""
    task: str
    context: int | None
    requests_per_second: float
    """0: no planned load."""
    input_tokens: int
    output_tokens: int
    tenant: str
    clients: str
    """Namespace whose pods may connect to the gateway."""
    hub_token: str
    """Secret with the token of the hub; empty for none."""


def propose_model(task: str, gpu: str) -> str:
    """Return the largest model of the catalog for a task that is not gated and leaves room for the KV cache on one such
    GPU; the smallest one if none does."""
    room = (load_catalog().gpu(gpu).usable_gib or 0) * 2**30 * _SHARE_OF_WEIGHTS
    models = [model for model in load_catalog().models() if task in model.tasks and not model.needs_token]
    sizes = {model.id: count_weights(model).bytes for model in models}
    fitting = [name for name, size in sizes.items() if size <= room]
    return max(fitting, key=lambda name: (sizes[name], name)) if fitting else min(sizes, key=lambda name: sizes[name])


def propose_context(most: int) -> int:
    """Return a context that leaves memory for many requests, at most the one of the model."""
    return min(8192, most)
