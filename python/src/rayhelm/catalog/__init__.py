"""GPUs, models and networks that rayhelm knows: data files with a thin loader.

A new one is one new file: `data/gpus/<id>.yaml`, `data/mig/<id>.yaml`, `data/models/<owner>--<name>.yaml`,
`data/networks/<id>.yaml`.
"""

from functools import cache
from pathlib import Path

from rayhelm.catalog._load import Shelf
from rayhelm.catalog.gpu import Gpu
from rayhelm.catalog.mig import Mig
from rayhelm.catalog.model import Model
from rayhelm.catalog.network import Network
from rayhelm.catalog.parts import instance_of, slice_of
from rayhelm.errors import FleetError, Problem

__all__ = ["Catalog", "catalog"]

_DATA = Path(__file__).parent.parent / "data"


class Catalog:
    """Finds entries by id or alias, whatever the case; a name that nobody knows is a FleetError with the nearest."""

    def __init__(self, folder: Path = _DATA) -> None:
        self._gpus = Shelf(folder / "gpus", Gpu)
        self._mig = Shelf(folder / "mig", Mig)
        self._models = Shelf(folder / "models", Model)
        self._networks = Shelf(folder / "networks", Network)

    def gpu(self, name: str) -> Gpu:
        """A card, or behind a slash a part of one: a MIG profile, or one of so many time slices."""
        whole, _, part = name.partition("/")
        card = self._gpus.get(whole)
        if not part:
            return card
        if part.isdecimal():
            return slice_of(card, int(part))
        if table := self.mig(card):
            return instance_of(card, table, part)
        raise FleetError(Problem(f"{card.id} cannot be cut by MIG", fix=f"{card.id}/2   # one of two time slices"))

    def mig(self, card: Gpu) -> Mig | None:
        """How a card can be cut; None where it cannot."""
        return self._mig.get(card.mig) if card.mig else None

    def model(self, name: str) -> Model:
        return self._models.get(name)

    def network(self, name: str) -> Network:
        return self._networks.get(name)

    def gpus(self) -> tuple[Gpu, ...]:
        return self._gpus.all()

    def mig_tables(self) -> tuple[Mig, ...]:
        return self._mig.all()

    def models(self) -> tuple[Model, ...]:
        return self._models.all()

    def networks(self) -> tuple[Network, ...]:
        return self._networks.all()


@cache
def catalog() -> Catalog:
    """The catalog that rayhelm carries."""
    return Catalog()
