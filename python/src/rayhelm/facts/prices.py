"""Prices of GPUs: one file of a provider in `data/prices/` each. A price without a source is left out."""

from pathlib import Path

import yaml
from pydantic import Field

from rayhelm.facts.closed import Closed
from rayhelm.facts.gpu import GpuPrice

__all__ = ["Price", "PriceTable", "ProviderPrices"]

_FIRST = "aws"
"""Provider whose prices are taken before those of the others, which follow by name."""
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Price(Closed):
    """Price of one GPU for one hour."""

    usd_per_hour: float = Field(gt=0)
    region: str = ""
    """Empty if the source names none."""
    date: str = Field(default="", pattern=r"^(\d{4}(-\d\d(-\d\d)?)?)?$")
    """Day, month or year of the source; empty if it names none."""
    source: str = Field(min_length=1)


class GpuPrices(Closed):
    """Prices of one GPU at a provider."""

    on_demand: Price | None = None
    spot: Price | None = None


class ProviderPrices(Closed):
    """Prices of one provider, by id of the GPU."""

    id: str
    name: str
    prices: dict[str, GpuPrices]


class PriceTable:
    """The prices of all providers."""

    def __init__(self, folder: Path) -> None:
        files = sorted(folder.glob("*.yaml"), key=lambda path: (path.stem != _FIRST, path.stem))
        self._providers = {path.stem: ProviderPrices.model_validate(_read(path)) for path in files}

    @property
    def providers(self) -> dict[str, ProviderPrices]:
        """By id, in the order in which their prices are taken."""
        return self._providers

    def find(self, gpu: str, provider: str | None = None) -> GpuPrice:
        """Return the prices of a GPU: those of one provider, or the first ones."""
        listed = [each for each in self._providers.values() if provider in (None, each.id) and gpu in each.prices]
        on_demand = [(each.name, price) for each in listed if (price := each.prices[gpu].on_demand)]
        spot = [(each.name, price) for each in listed if (price := each.prices[gpu].spot)]
        found: dict[str, object] = {}
        for kind, prices in (("on_demand", on_demand), ("spot", spot)):
            if prices:
                name, price = prices[0]
                found |= {kind: price.usd_per_hour, f"{kind}_source": price.source, f"{kind}_provider": name}
        return GpuPrice.model_validate(found)


def _read(path: Path) -> object:
    return yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)
