"""Part of the requests that finds its prefix in the KV cache of a replica.

vLLM evicts the block that was used least recently. Che's approximation of such a cache: a prefix stays as long as the
tokens that arrive after its last request fit in the cache (Che et al., 2002).
"""

from math import exp

from rayhelm.planner.placement.model_spec import ResolvedModelSpec

__all__ = ["PREFIX_PAYS_FROM", "compute_prefix_hits", "estimate_prefix_hits", "is_prefix_routed"]

PREFIX_PAYS_FROM = 0.2
"""Part of the prompt, 0 to 1: with less shared prefix, routing by prefix costs more balance than it saves prefill."""
_ALL_PREFIXES = 0.9
"""Part of the requests that find their prefix on any replica from which routing by prefix saves too little."""
_STEPS = 100


def estimate_prefix_hits(model_spec: ResolvedModelSpec, kv_tokens: float | None, replicas: int = 1) -> float | None:
    """Return the part of the requests, 0 to 1; None if the number of prefixes or the cache is not known.

    `kv_tokens`: of one cache. `replicas`: over which routing divides the prefixes; 1 if each replica gets all of them.
    """
    traffic, lengths = model_spec.declared.traffic, model_spec.lengths
    if not (traffic and traffic.prefixes and kv_tokens and lengths.shared):
        return None
    prefix = lengths.prompt * lengths.shared
    own = lengths.prompt - prefix + lengths.answer
    return compute_prefix_hits(max(1.0, traffic.prefixes / replicas), prefix, own, kv_tokens)


def is_prefix_routed(model_spec: ResolvedModelSpec, undivided_hits: float | None) -> bool:
    """Return whether several replicas of the model get requests by their prefix. `undivided_hits`: of a replica that
    gets all prefixes; None if that is not known."""
    pays = model_spec.lengths.shared >= PREFIX_PAYS_FROM and model_spec.task.has_shared_prefix
    return pays and (undivided_hits is None or undivided_hits < _ALL_PREFIXES)


def compute_prefix_hits(count: float, prefix: float, own: float, capacity: float) -> float:
    """Return the part of the requests that finds its prefix, 0 to 1.

    `count`: prefixes, requested equally often. `prefix`: tokens of each. `own`: tokens that a request adds. `capacity`:
    tokens in the cache."""
    if not own:
        return min(1.0, capacity / (count * prefix))
    low, high = 0.0, capacity / own
    for _ in range(_STEPS):
        requests = (low + high) / 2
        held = count * prefix * (1 - exp(-requests / count)) + own * requests
        low, high = (requests, high) if held <= capacity else (low, requests)
    return 1 - exp(-low / count)
