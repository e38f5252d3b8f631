"""What KubeRay does when a field of a RayService changes: the table `data/kuberay/edits.yaml` and its reader.

The table is generated from observations: a test makes about 130 edits on a real API server with the real operator and
records what happens (tests/cluster/edits in the repository). `tests/cluster/edits/compact.py` writes the table.
"""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Literal, get_args

import yaml

from rayhelm.check.forecast.differences import FieldChange
from rayhelm.facts.closed import Closed
from rayhelm.facts.quantities import are_equal_quantities
from rayhelm.facts.versions import is_at_least

__all__ = [
    "EditTable",
    "FieldEffect",
    "KubeRayEffect",
    "SuspendedEffect",
    "are_equal",
    "find_strongest",
    "generalize_path",
    "list_changed_paths",
    "load_edit_table",
    "match_path",
]

KubeRayEffect = Literal[
    "nothing",  # no RayCluster, Service or pod changes, and Ray receives nothing
    "beside",  # Services or labels of pods change, and no RayCluster
    "serve config",  # Ray receives a configuration, and nothing else changes
    "in place",  # the active RayCluster is changed and continues to serve
    "new cluster",  # another RayCluster is created and takes over
]
"""From the weakest to the strongest: an edit of several fields has the strongest of their effects."""
GROUP_PATH = "spec.rayClusterConfig.workerGroupSpecs"


class FieldEffect(Closed):
    """What a change of a field does."""

    path: str
    """Path without names, see `generalize_path`; it stands for every path below it that has no entry of its own."""
    effects: dict[str, KubeRayEffect]
    """By version of KubeRay."""
    edits: tuple[str, ...]
    """Ids of the observed edits."""


class SuspendedEffect(Closed):
    """What an edit does under `upgradeStrategy.type: None`."""

    effect: KubeRayEffect
    """Effect under another strategy."""
    effects: dict[str, KubeRayEffect]
    """Effect under None, by version of KubeRay."""
    edits: tuple[str, ...]


class EditTable(Closed):
    """The file."""

    fields: tuple[FieldEffect, ...]
    strategy_none: tuple[SuspendedEffect, ...]

    def find_field(self, path: str) -> FieldEffect:
        """Return the entry with the longest path that includes `path`. Raises KeyError if there is none."""
        found = [field for field in self.fields if match_path(field.path, path)]
        if not found:
            raise KeyError(path)
        return max(found, key=lambda field: len(field.path))

    def find_observed(self, kuberay: str) -> str:
        """Return the observed version that is closest: the newest one that is not newer, else the oldest."""
        observed = sorted(self.fields[0].effects, key=lambda version: [int(part) for part in version.split(".")])
        return next((each for each in reversed(observed) if is_at_least(kuberay, each)), observed[0])

    def predict(self, paths: Iterable[str], kuberay: str, *, strategy: str = "NewCluster") -> KubeRayEffect:
        """Return the effect of a change of `paths`, as `list_changes` names them. Raises KeyError for an unknown
        version of KubeRay."""
        effect = find_strongest(self.find_field(path).effects[kuberay] for path in paths)
        if strategy != "None":
            return effect
        rows = {row.effect: row.effects[kuberay] for row in self.strategy_none}
        return rows.get(effect, effect)


@cache
def load_edit_table() -> EditTable:
    return EditTable.model_validate(yaml.safe_load(files("rayhelm").joinpath("data/kuberay/edits.yaml").read_bytes()))


def list_changed_paths(changes: Mapping[str, FieldChange]) -> set[str]:
    """Return the paths of changes without names, and without values that KubeRay treats as equal."""
    return {
        generalize_path(path, *change)
        for path, change in changes.items()
        if not (match_path("spec.rayClusterConfig", path) and _is_equal(path, *change))
    }


def generalize_path(path: str, old: Any, new: Any) -> str:
    """Return a path without names: head and worker groups are `*`, items of lists `[]`.

    A worker group that is added is `workerGroupSpecs[+]`, one that is removed `workerGroupSpecs[-]`.
    """
    if re.fullmatch(rf"{re.escape(GROUP_PATH)}\[[^\]]+\]", path):
        return f"{GROUP_PATH}[{'+' if old is None else '-'}]"
    path = re.sub(rf"^{re.escape(GROUP_PATH)}\[[^\]]+\]\.", "spec.rayClusterConfig.*.", path)
    path = path.replace("spec.rayClusterConfig.headGroupSpec.", "spec.rayClusterConfig.*.")
    return re.sub(r"\[[^\]]*\]", "[]", path)


def match_path(pattern: str, path: str) -> bool:
    """Return whether `pattern` is `path` or one of its parents."""
    return path == pattern or path.startswith((f"{pattern}.", f"{pattern}[", f"{pattern} "))


def find_strongest(effects: Iterable[KubeRayEffect]) -> KubeRayEffect:
    order: tuple[KubeRayEffect, ...] = get_args(KubeRayEffect)
    return max(effects, key=order.index, default="nothing")


def _is_equal(path: str, old: Any, new: Any) -> bool:
    """Return whether KubeRay treats two values as equal; only quantities have several spellings."""
    if old in (None, []) and new in (None, []):
        return True
    return bool(_QUANTITY_PATH.search(path)) and are_equal(old, new)


_QUANTITY_PATH = re.compile(r"\.(limits|requests|overhead)(\.|\[)|\.sizeLimit$")


def are_equal(old: Any, new: Any) -> bool:
    """Return whether KubeRay treats two values as equal: another spelling of a quantity, or an empty list and none."""
    if old in (None, []) and new in (None, []):
        return True
    return are_equal_quantities(old, new)
