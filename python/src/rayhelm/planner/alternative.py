"""Another shape of a model, with its price, and the search that finds it."""

from collections.abc import Callable
from typing import Any, Literal

from rayhelm.facts.closed import Closed
from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.placement.choose import FLAGS, rank
from rayhelm.planner.placement.options import ModelOptions

__all__ = ["LEAST_SAVING", "Alternative", "Kind", "find_cheapest"]

Kind = Literal[
    "checkpoint",
    "gpu",
    "pool",
    "hosts",
    "data parallel",
    "sharing",
    "spot",
    "pools",
    "spare replica",
    "prefill/decode",
]

LEAST_SAVING = 0.01
"""Part of the price from which an alternative is listed."""


class Alternative(Closed):
    """Another shape of a model."""

    kind: Kind
    what: str
    """What is different, as the key of the fleet file that sets it."""
    change: dict[str, Any] = {}
    """The fleet file with this shape, as a merge patch: null removes a key. Empty if a price is unknown."""
    pool: str
    """Empty for a pool that has to be added; several are joined with `+`."""
    gpu: str
    gpus: float
    """GPUs of all replicas; the part of the GPUs that the model pays for if it shares them."""
    tensor_parallel_size: int
    pipeline_parallel_size: int
    data_parallel_size: int = 1
    replicas: int
    price_per_hour: float | None
    """USD for all replicas, as in the plan of the changed fleet file; None if a price is unknown, which `note`
    names."""
    saving_per_hour: float | None
    """USD less than the plan; negative if it costs more; None if a price is unknown. For a shared GPU it counts the
    whole GPUs that become free, divided among the models, while the price is that of the part."""
    ttft_s: float | None
    tpot_s: float | None
    note: str = ""


def find_cheapest(options: ModelOptions, is_possible: Callable[[Candidate], bool]) -> Candidate | None:
    """Return the best candidate without a fault; None if there is none, or if a price is unknown."""
    if not options.by_price:
        return None
    best: tuple[tuple[float, ...], Candidate] | None = None
    for cost, candidate in options.list_with_least_cost():
        if best and best[0][FLAGS] < cost:
            break
        key = rank(candidate, options.by_price)
        if not any(key[:FLAGS]) and (best is None or key < best[0]) and is_possible(candidate):
            best = (key, candidate)
    return best[1] if best else None
