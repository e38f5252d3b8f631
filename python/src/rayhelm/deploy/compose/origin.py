"""Where the fleet file has what a value of a release comes from: the one answer for messages, lines and image keys."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

from rayhelm.deploy.compose.planned_values import Key, PlannedValue, find_planned
from rayhelm.fleet.overrides import Override, list_overrides
from rayhelm.fleet.walk import has_step
from rayhelm.fleet.yaml_nodes import Path
from rayhelm.planner.plan import Plan
from rayhelm.planner.workers.kinds import is_group_of_host

__all__ = ["Origins", "Placed"]

_SECTIONS = {"tenants": "tenant", "models": "model", "pools": "pool"}
"""What the steps below a key of a chart are names of."""


@dataclass(frozen=True)
class Placed:
    """An override, and where its keys belong in the values of a release."""

    override: Override
    key: Key = ()
    """`("workerGroups", "l4")` for the values of a pool."""

    def read(self, path: Path) -> Any:
        """Return what the fleet file has at the path of a key."""
        here: Any = self.override.values
        for step in path[len(self.override.path) :]:
            here = here[step]
        return here

    def locate(self, key: Path) -> Path:
        """Return the path in the fleet file of a key of the release: the deepest part of it that the override has."""
        found: Path = self.override.path
        here: Any = self.override.values
        for step in key[len(self.key) :] if key[: len(self.key)] == self.key else ():
            if not has_step(here, step):
                break
            here, found = here[step], (*found, step)
        return found

    def sets(self, key: Path) -> bool:
        """Return whether it sets a key of the release, one below or beside it, or a whole value above it."""
        if not key or key[: len(self.key)] != self.key:
            return False
        path = self.locate(key)
        depth, below = len(path) - len(self.override.path), len(key) - len(self.key)
        # A rule names a key that is missing beside the one that is wrong: `reason` beside `enabled`.
        is_near = depth >= below - 1 and (depth or self.key)
        return bool(is_near) or not isinstance(self.read(path), Mapping)


@dataclass(frozen=True)
class Origins:
    """Where the fleet file has the values of one release."""

    chart: str
    name: str
    cluster: str
    plan: Plan

    def find(self, dotted_key: str, names: Sequence[str] = ()) -> Path:
        """Return the path of a key: that of an override, else of the key that changes the planned value, else of the
        model, pool or tenant that the key or `names` name, else of what the release serves."""
        key = self._split(dotted_key)
        override = next((placed.locate(key) for placed in reversed(self.placed) if placed.sets(key)), None)
        return override or self._find_planned(key, {}) or self._find_part((*key, *names))

    def find_setting(self, dotted_key: str, **names: str) -> Key:
        """Return the path that sets a key: the one that changes the planned value, else the one in `values`. `names`:
        `pool` or `model`, where the key has `*` for a part of the fleet that the release may not use."""
        key = self._split(dotted_key)
        return self._find_planned(key, names) or (*self.values_path, *key)

    def _split(self, dotted_key: str) -> Key:
        """Return the steps of a key, without indexes of lists; a known name that has dots is one step."""
        steps, rest = [], [step.partition("[")[0] for step in dotted_key.split(".")] if dotted_key else []
        while rest:
            size = next((end for end in range(len(rest), 1, -1) if ".".join(rest[:end]) in self._names), 1)
            steps.append(".".join(rest[:size]))
            rest = rest[size:]
        return tuple(steps)

    @cached_property
    def _names(self) -> frozenset[str]:
        """Names that a key can have: of the overrides, models, pools and tenants."""
        declared = self.plan.declared
        given = (step for placed in self.placed for step in _list_steps(placed.override.values))
        served = (model.served_as for model in self.plan.models.values())
        return frozenset((*given, *served, *declared.models, *declared.pools, *declared.tenants))

    @cached_property
    def values_path(self) -> Key:
        """Path of the `values` of the release."""
        match self.chart:
            case "ray-service":
                return (*self.plan.find_service_path(self.name), "values")
            case "gateway":
                return ("clusters", self.cluster, "gateway", "values")
            case "platform":
                return ("clusters", self.cluster, "values")
            case "tenant":
                return ("tenants", self.name, "values")
        return ("gitops", "values")

    @cached_property
    def placed(self) -> tuple[Placed, ...]:
        """Overrides of the release that are not empty, in the order in which they are merged."""
        return tuple(self._list_placed())

    def _list_placed(self) -> Iterator[Placed]:
        declared = self.plan.declared
        owner = self.cluster if self.chart in ("gateway", "platform") else self.name
        for override in list_overrides(declared):
            if override.chart != self.chart or not override.values:
                continue
            if override.path[0] == "pools":
                groups = [group for group, pool in self._pools.items() if pool == override.name]
                if override.path[2] == "hosts":
                    index = int(override.path[3])
                    groups = [group for group in groups if is_group_of_host(group, override.name, index, declared)]
                yield from (Placed(override, ("workerGroups", group)) for group in groups)
            elif override.name == owner:
                yield Placed(replace(override, path=self.values_path))

    @cached_property
    def _pools(self) -> Mapping[str, str]:
        """Pool of each worker group with GPUs."""
        if self.chart != "ray-service":
            return {}
        workers = self.plan.services[self.name].workers
        return {group: worker.pool for group, worker in workers.items() if worker.pool}

    def find_names(self, steps: Path) -> dict[str, str]:
        """Return what the steps of a key name in the fleet file, by kind, with the cluster, service or tenant of the
        release."""
        if self.chart == "ray-service":
            models, written = self.plan.of_service(self.name), {*map(str, steps)}
            model = next((each for each in models if {each.model, each.served_as, each.application} & written), None)
            pool = next((pool for group, pool in self._pools.items() if group in written), "")
            own = {"cluster": self.cluster, "service": str(self.values_path[1])}
            return own | ({"model": model.written} if model else {}) | ({"pool": pool} if pool else {})
        names = {"cluster": self.cluster} | ({"tenant": self.name} if self.chart == "tenant" else {})
        for step, name in pairwise(map(str, steps)):
            if step in _SECTIONS and name in getattr(self.plan.declared, step):
                names[_SECTIONS[step]] = self.plan.models[name].written if step == "models" else name
        return names

    def describe_field(self, row: PlannedValue, steps: Path) -> str:
        """Return the dotted key of the fleet file that changes a planned value; `*` for a name that is not known."""
        return row.field.format_map(_Names(self._complete(self.find_names(steps))))

    def _complete(self, names: dict[str, str]) -> dict[str, str]:
        """Return the names with the first model of a service, if none is named."""
        return names if self.chart != "ray-service" else {"model": self.plan.of_service(self.name)[0].written} | names

    def _find_planned(self, key: Key, given: Mapping[str, str]) -> Key | None:
        row = find_planned(self.chart, key)
        names = _Names({**self._complete(self.find_names(key)), **given})
        # The field is divided before its names are in it: they can have dots.
        path = tuple(step.format_map(names) for step in row.field.split(".")) if row and row.field else ()
        return None if not path or "*" in path else path

    def _find_part(self, steps: Path) -> Path:
        """Return the model, pool or tenant that the steps name, else the part that the release is made for."""
        names = self.find_names(steps)
        for section in ("tenants", "models", "pools"):
            if name := names.get(_SECTIONS[section]):
                return (section, name)
        match self.chart:
            case "ray-service":
                return self.plan.of_service(self.name)[0].path
            case "gateway":
                return ("clusters", self.cluster, "gateway")
            case "platform":
                return ("clusters", self.cluster)
        return ("gitops", "repository")


class _Names(dict[str, str]):
    """Names of the fleet file; `*` for one that is not known."""

    def __missing__(self, key: str) -> str:
        return "*"


def _list_steps(value: Any) -> Iterator[str]:
    """Yield the names in a map, at every depth."""
    if isinstance(value, Mapping):
        for step, below in value.items():
            yield str(step)
            yield from _list_steps(below)
