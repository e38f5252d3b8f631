"""Prices of a plan. An unknown price stays None."""

from rayhelm.facts.gpu import GpuKind
from rayhelm.fleet.pools import Pool

__all__ = ["compute_token_price", "find_gpu_price"]


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


def compute_token_price(
    price_per_hour: float | None, requests_per_second: float, output_tokens: int | None
) -> float | None:
    """Return USD per million output tokens at the planned load, idle time of the planned replicas included."""
    if price_per_hour is None or not output_tokens:
        return None
    return price_per_hour / (requests_per_second * output_tokens * 3600) * 1e6
