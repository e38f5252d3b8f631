"""GPUs, models and networks that rayhelm knows: data files with a thin loader.

A new one is one new file: `data/gpus/<id>.yaml`, `data/mig/<id>.yaml`, `data/models/<owner>--<name>.yaml`,
`data/networks/<id>.yaml`.
"""

from functools import cache
from pathlib import Path

from rayhelm.catalog._load import CatalogFolder
from rayhelm.catalog.gpu import GpuKind
from rayhelm.catalog.mig import MigTable
from rayhelm.catalog.model import Checkpoint
from rayhelm.catalog.network import NetworkKind
from rayhelm.catalog.parts import make_mig_instance, make_time_slice
from rayhelm.errors import FleetError, Problem

__all__ = ["Catalog", "load_catalog"]

_DATA = Path(__file__).parent.parent / "data"


class Catalog:
    """Finds entries by id or alias, whatever the case; a name that nobody knows is a FleetError with the nearest."""

    def __init__(self, folder: Path = _DATA) -> None:
        self._gpus = CatalogFolder(folder / "gpus", GpuKind, "gpu")
        self._mig = CatalogFolder(folder / "mig", MigTable, "mig")
        self._models = CatalogFolder(folder / "models", Checkpoint, "model")
        self._networks = CatalogFolder(folder / "networks", NetworkKind, "network")

    def gpu(self, name: str) -> GpuKind:
        """A card, or behind a slash a part of one: a MIG profile, or one of so many time slices."""
        whole, _, part = name.partition("/")
        card = self._gpus.get(whole)
        if not part:
            return card
        if part.isdecimal():
            return make_time_slice(card, int(part))
        if table := self.mig(card):
            return make_mig_instance(card, table, part)
        raise FleetError(Problem(f"{card.id} cannot be cut by MIG", fix=f"{card.id}/2   # one of two time slices"))

    def mig(self, card: GpuKind) -> MigTable | None:
        """How a card can be cut; None where it cannot."""
        return self._mig.get(card.mig) if card.mig else None

    def model(self, name: str) -> Checkpoint:
        return self._models.get(name)

    def network(self, name: str) -> NetworkKind:
        return self._networks.get(name)

    def gpus(self) -> tuple[GpuKind, ...]:
        return self._gpus.all()

    def mig_tables(self) -> tuple[MigTable, ...]:
        return self._mig.all()

    def models(self) -> tuple[Checkpoint, ...]:
        return self._models.all()

    def networks(self) -> tuple[NetworkKind, ...]:
        return self._networks.all()


@cache
def load_catalog() -> Catalog:
    """The catalog that rayhelm carries."""
    return Catalog()
