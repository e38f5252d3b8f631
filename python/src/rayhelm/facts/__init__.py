"""GPUs, models, networks and tasks: data files with a thin loader.

A new entry is one new file: `data/gpus/<id>.yaml`, `data/mig/<id>.yaml`, `data/models/<owner>--<name>.yaml`,
`data/networks/<id>.yaml`, `data/prices/<provider>.yaml`, `data/tasks/<id>.yaml`.
"""

from collections.abc import Callable, Sequence
from copy import copy
from functools import cache
from pathlib import Path

from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.facts._load import CatalogFolder, stem
from rayhelm.facts._origin import shown
from rayhelm.facts.gpu import GpuKind, GpuPrice
from rayhelm.facts.gpu_names import find_spelling, list_candidates
from rayhelm.facts.mig import MigTable
from rayhelm.facts.model import Checkpoint
from rayhelm.facts.network import NetworkKind
from rayhelm.facts.parts import make_mig_instance, make_time_slice
from rayhelm.facts.prices import PriceTable

__all__ = ["Catalog", "load_catalog"]

_MOST_CANDIDATES = 4
_DATA = Path(__file__).parent.parent / "data"


class Catalog:
    """Finds entries by id or alias, case-insensitive. An unknown name raises FleetError with the nearest names."""

    def __init__(self, folder: Path = _DATA) -> None:
        self.prices = PriceTable(folder / "prices")
        self._gpus = CatalogFolder(folder / "gpus", GpuKind, "GPU").map(self._add_price)
        self._mig = CatalogFolder(folder / "mig", MigTable, "mig")
        self._models = CatalogFolder(folder / "models", Checkpoint, "model")
        self._networks = CatalogFolder(folder / "networks", NetworkKind, "network")

    def gpu(self, name: str) -> GpuKind:
        """Return a GPU kind by id or alias. A slash selects a part: a MIG profile (`/3g.40gb`) or the number of time
        slices (`/2`)."""
        whole, _, part = name.partition("/")
        gpu = self._find_gpu(whole)
        if not part:
            return gpu
        if part.isdecimal():
            return make_time_slice(gpu, int(part))
        if table := self.mig(gpu):
            return make_mig_instance(gpu, table, part)
        raise FleetError(Problem(f"{gpu.id} has no MIG", fix=Fix(value=f"{gpu.id}/2", why="one of two time slices")))

    def _find_gpu(self, name: str) -> GpuKind:
        if gpu := self._gpus.find(name) or find_spelling(name, self.gpus()):
            return gpu
        if not (candidates := list_candidates(name, self.gpus())):
            raise FleetError(self._gpus.build_unknown_problem(name))
        first, *others = [Fix(value=gpu.id, why=_describe(gpu)) for gpu in candidates[:_MOST_CANDIDATES]]
        listed = ", ".join(gpu.id for gpu in candidates[:_MOST_CANDIDATES])
        message = f"the catalog has no GPU {shown(name)}; similar: {listed}"
        raise FleetError(Problem(message, fix=first, alternatives=tuple(others)))

    def explain_gpu_name(self, name: str) -> str:
        """Return which GPU a name that several boards have is read as, and the other boards; empty for an id.

        `H100` is the SXM board, and PCIe and NVL boards exist."""
        whole = name.partition("/")[0]
        found, wanted = self._find_gpu(whole), stem(whole)
        if stem(found.id) == wanted:
            return ""  # before the files of all other GPUs are read
        words = wanted.split("-")
        others = [gpu.id for gpu in self.gpus() if gpu.id != found.id and _can_mean(words, stem(gpu.id).split("-"))]
        if not others:
            return ""
        return f"GPU {whole} is read as {found.id}; it could also be {', '.join(others)}"

    def add_gpus(self, gpus: Sequence[GpuKind]) -> "Catalog":
        """Return a catalog that has these GPUs too."""
        found = copy(self)
        found._gpus = self._gpus.add(gpus)
        return found

    def set_prices(self, change: Callable[[GpuKind], GpuPrice]) -> "Catalog":
        """Return a catalog with other prices."""
        found = copy(self)
        found._gpus = self._gpus.map(lambda gpu: gpu.model_copy(update={"price": change(gpu)}))
        return found

    def _add_price(self, gpu: GpuKind) -> GpuKind:
        return gpu.model_copy(update={"price": self.prices.find(gpu.id)})

    def mig(self, gpu: GpuKind) -> MigTable | None:
        """Return the MIG profiles of a GPU; None if it has no MIG."""
        return self._mig.get(gpu.mig) if gpu.mig else None

    def model(self, name: str) -> Checkpoint:
        return self._models.get(name)

    def find_model(self, name: str) -> Checkpoint | None:
        """Return a model by id or alias; None if the catalog lacks it."""
        return self._models.find(name)

    def build_unknown_model_problem(self, name: str) -> Problem:
        """Return the problem of a model that the catalog lacks, with the nearest names."""
        return self._models.build_unknown_problem(name)

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


def _describe(gpu: GpuKind) -> str:
    memory = f"{gpu.memory_gb:g} GB" if gpu.memory_gb else ""
    return ", ".join(part for part in (memory, gpu.architecture) if part)


def _can_mean(wanted: Sequence[str], parts: Sequence[str]) -> bool:
    """Return whether each word of a name begins a word of an id, and the first word is the same."""
    return wanted[0] == parts[0] and all(any(part.startswith(word) for part in parts) for word in wanted)


@cache
def load_catalog() -> Catalog:
    """Return the catalog in the rayhelm package."""
    return Catalog()
