"""GPUs, models and networks that rayhelm knows: data files with a thin loader.

A new one is one new file: `data/gpus/<id>.yaml`, `data/models/<owner>--<name>.yaml`, `data/networks/<id>.yaml`.
"""

from functools import cache
from pathlib import Path

from rayhelm.catalog._load import Shelf
from rayhelm.catalog.gpu import Gpu
from rayhelm.catalog.model import Model
from rayhelm.catalog.network import Network

__all__ = ["Catalog", "catalog"]

_DATA = Path(__file__).parent.parent / "data"


class Catalog:
    """Finds entries by id or alias, whatever the case; a name that nobody knows is a FleetError with the nearest."""

    def __init__(self, folder: Path = _DATA) -> None:
        self._gpus = Shelf(folder / "gpus", Gpu)
        self._models = Shelf(folder / "models", Model)
        self._networks = Shelf(folder / "networks", Network)

    def gpu(self, name: str) -> Gpu:
        return self._gpus.get(name)

    def model(self, name: str) -> Model:
        return self._models.get(name)

    def network(self, name: str) -> Network:
        return self._networks.get(name)

    def gpus(self) -> tuple[Gpu, ...]:
        return self._gpus.all()

    def models(self) -> tuple[Model, ...]:
        return self._models.all()

    def networks(self) -> tuple[Network, ...]:
        return self._networks.all()


@cache
def catalog() -> Catalog:
    """The catalogue that rayhelm carries."""
    return Catalog()
