"""The candidates and the placements of a fleet, as the planner finds them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from rayhelm.errors import FleetError
from rayhelm.facts import load_catalog
from rayhelm.fleet.document import parse_document
from rayhelm.fleet.load import LoadedFleet, parse_fleet
from rayhelm.planner.place import list_placements
from rayhelm.planner.placement.assignment import Assignment, Value
from rayhelm.planner.placement.candidates import Candidate
from rayhelm.planner.placement.inventory import PoolInventory, build_inventories
from rayhelm.planner.placement.model_spec import ResolvedModelSpec
from rayhelm.planner.placement.options import ModelOptions, PoolSplits
from rayhelm.planner.resolved import resolve

__all__ = ["FoundPlacement", "ResolvedFleet", "load_fleet", "resolve_fleet"]


@dataclass(frozen=True)
class FoundPlacement:
    chosen: dict[str, Candidate]
    value: Value


@dataclass(frozen=True)
class ResolvedFleet:
    """A fleet, resolved against the catalog. Its placements allocate the GPUs of its inventories."""

    loaded: LoadedFleet
    inventories: dict[str, PoolInventory]
    model_specs: list[ResolvedModelSpec]

    def list_candidates(self) -> dict[str, list[Candidate]]:
        """Return all candidates of each model that can meet its objectives, regardless of room."""
        splits = PoolSplits(self.inventories)
        return {spec.name: list(ModelOptions(spec, splits, None).list_up_to(float("inf"))) for spec in self.model_specs}

    def place(self) -> dict[str, FoundPlacement]:
        """Return the placement that the planner prefers, `found`, and the one without its search, `one_by_one`. Those
        that leave a model without room are missing."""
        found: dict[str, FoundPlacement] = {}
        try:
            for is_moved, placement in self._iterate_placements():
                found.setdefault("found", placement)
                if not is_moved:
                    found["one_by_one"] = placement
        except FleetError:
            return {}
        return found

    def _iterate_placements(self) -> Iterator[tuple[bool, FoundPlacement]]:
        for choices in list_placements(self.model_specs, self.inventories, self.loaded.fleet, load_catalog()):
            chosen = {name: choice.candidate for name, choice in choices.items()}
            value = Assignment(self.inventories, chosen, True).value
            yield any(choice.moved for choice in choices.values()), FoundPlacement(chosen, value)


def load_fleet(data: dict[str, Any]) -> LoadedFleet:
    """Read a generated fleet as `rayhelm` reads a fleet file."""
    return parse_fleet(parse_document(yaml.safe_dump(data, sort_keys=False), "fleet.yaml"))


def resolve_fleet(loaded: LoadedFleet) -> ResolvedFleet:
    facts = load_catalog()
    return ResolvedFleet(
        loaded, build_inventories(loaded.fleet, loaded.measured, facts), list(resolve(loaded, facts).models)
    )
