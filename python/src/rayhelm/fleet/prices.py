"""Prices of GPUs that the fleet file sets for all of its pools: those of one provider, or a list of its own."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from pydantic import Field

from rayhelm.errors import Fix, collect
from rayhelm.facts import Catalog
from rayhelm.facts.gpu import GpuKind, GpuPrice
from rayhelm.fleet.base import Record
from rayhelm.fleet.nearest import nearest
from rayhelm.fleet.own_gpus import GpuName
from rayhelm.fleet.units import PricePerHour

__all__ = ["Prices", "build_prices", "find_price_problems"]

_SOURCE = "`prices` of the fleet file"


class Prices(Record):
    """Prices of GPUs per hour. `price` of a pool goes before them."""

    provider: str | None = Field(default=None, min_length=1, max_length=63, examples=["aws"])
    """Provider of the catalog whose prices count; GPUs that it has no price of have none. Default: the first price of
    each GPU in the catalog, so that pools may be compared across providers."""
    on_demand: dict[GpuName, PricePerHour] = Field(default={}, examples=[{"H100-SXM-80GB": "2.10 USD/h"}])
    """Your own prices, for example those of a contract, in place of the catalog's."""
    spot: dict[GpuName, PricePerHour] = Field(default={}, examples=[{"H100-SXM-80GB": "1.20 USD/h"}])
    """The same for pools with `spot`."""


def build_prices(prices: Prices, facts: Catalog) -> Callable[[GpuKind], GpuPrice]:
    """Return what finds the prices of a GPU."""
    on_demand, spot = (_by_id(listed, facts) for listed in (prices.on_demand, prices.spot))

    def find(gpu: GpuKind) -> GpuPrice:
        own: dict[str, Any] = {}
        for kind, listed in (("on_demand", on_demand), ("spot", spot)):
            if gpu.id in listed:
                own |= {kind: listed[gpu.id], f"{kind}_source": _SOURCE, f"{kind}_provider": ""}
        return facts.prices.find(gpu.id, prices.provider).model_copy(update=own)

    return find


def find_price_problems(prices: Prices, facts: Catalog) -> Iterator[tuple[tuple[str, ...], str, Fix | str]]:
    """Yield key below `prices`, what is wrong, and fix."""
    known = facts.prices.providers
    if prices.provider and prices.provider not in known:
        near = [*nearest(prices.provider, known), *known][0]
        why = f"the catalog has prices of {', '.join(known)}; others: `prices.onDemand`"
        yield ("provider",), f"`{prices.provider}` is no provider of the catalog", Fix("", near, why)
    for key, listed in (("onDemand", prices.on_demand), ("spot", prices.spot)):
        first: dict[str, str] = {}
        for name, price in listed.items():
            gpu, problems = collect(partial(facts.gpu, name))
            if not gpu:
                fix = problems[0].fix
                value = fix.value if isinstance(fix, Fix) else None
                renamed = Fix(f"../{value}", f"{price:g} USD/h", "if it is this GPU", replaces="")
                yield (key, name), problems[0].message, renamed if value else ""
                continue
            if gpu.id in first:
                yield (key, name), f"{gpu.id} has two prices: `{first[gpu.id]}` is the same GPU", Fix.removal()
            first.setdefault(gpu.id, name)


def _by_id(listed: Mapping[str, float], facts: Catalog) -> dict[str, float]:
    return {facts.gpu(name).id: price for name, price in listed.items()}
