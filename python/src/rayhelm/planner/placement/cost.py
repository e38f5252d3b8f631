"""Prices of a plan. An unknown price stays None, and is compared as one above all known prices."""

from rayhelm.facts.gpu import GpuKind
from rayhelm.fleet.pools import Pool

__all__ = ["compute_cost", "compute_token_price", "find_gpu_price", "find_provider"]

_UNKNOWN = 1e6
"""USD per hour and GiB of a GPU without a price, far above all prices. Such GPUs are the last choice, and are compared
with each other by memory."""


def compute_cost(price: float | None, memory_gib: float, *, by_price: bool) -> float:
    """Return what is compared. Without `by_price`, where no pool of a model has a price, it is memory, GiB."""
    if not by_price:
        return memory_gib
    return memory_gib * _UNKNOWN if price is None else price


def find_gpu_price(gpu: GpuKind, pool: Pool) -> tuple[float | None, str]:
    """Return USD per GPU and hour, and the source of the figure."""
    if pool.price is not None:
        return pool.price, "`price` of the pool"
    if pool.spot:
        if gpu.price.spot is not None:
            return gpu.price.spot, f"spot, {gpu.price.spot_source}"
        return None, f"the spot price of {gpu.id} is unknown; set `price` of the pool"
    if gpu.price.on_demand is not None:
        return gpu.price.on_demand, f"on demand, {gpu.price.on_demand_source}"
    return None, f"the price of {gpu.id} is unknown; set `price` of the pool"


def find_provider(gpu: GpuKind, pool: Pool) -> str:
    """Return the provider whose price of the catalog counts; empty if none does."""
    if pool.price is not None:
        return ""
    return gpu.price.spot_provider if pool.spot else gpu.price.on_demand_provider


def compute_token_price(
    price_per_hour: float | None, requests_per_second: float, output_tokens: int | None
) -> float | None:
    """Return USD per million output tokens at the planned load, idle time of the planned replicas included."""
    if price_per_hour is None or not output_tokens:
        return None
    return price_per_hour / (requests_per_second * output_tokens * 3600) * 1e6
