"""Values that the plan decides, by chart: each with the key of the fleet file that changes it."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import yaml
from pydantic.alias_generators import to_camel

from rayhelm.facts.closed import Closed

__all__ = ["Key", "PlannedValue", "find_planned", "get_value", "list_contradictions", "load_planned_values"]

Key = tuple[str, ...]


class PlannedValue(Closed, alias_generator=to_camel):
    """A value that the plan decides."""

    key: str
    """Key of the chart; `*` for the name of an entry."""
    field: str = ""
    """Key of the fleet file to use instead, with `{service}`, `{cluster}`, `{pool}`, `{model}` or `{tenant}` in it."""
    why: str = ""
    """Reason, if no key of the fleet file fits."""
    takes_value: bool = False
    """The key of the fleet file takes the same value."""
    may_add: bool = False
    """Only the entries of the plan are decided; others may be added to the last map."""
    among: tuple[str, ...] = ()
    """Values that may replace each other."""
    may_be: tuple[str, ...] = ()
    """Values that may replace the planned one."""
    where: dict[str, str | bool] = {}
    """Planned values, by key: with another one the plan does not decide this value. The first `*` is the entry of
    `key`."""

    @property
    def steps(self) -> Key:
        return tuple(self.key.split("."))

    def has(self, key: Key) -> bool:
        """Return whether it decides a key, or one above it."""
        steps = self.steps
        return len(steps) <= len(key) and all(a in ("*", b) for a, b in zip(steps, key, strict=False))


@cache
def load_planned_values(chart: str) -> tuple[PlannedValue, ...]:
    rows = yaml.safe_load(files("rayhelm").joinpath(f"data/overrides/{chart}.yaml").read_text(encoding="utf-8"))
    return tuple(PlannedValue.model_validate(row) for row in rows)


def find_planned(chart: str, key: Key) -> PlannedValue | None:
    """Return the first row of a key, or of one above it."""
    rows = load_planned_values(chart)
    return next((row for row in rows if row.has(key)), None) if key else None


def list_contradictions(
    chart: str, planned: Mapping[str, Any], merged: Mapping[str, Any]
) -> Iterator[tuple[Key, PlannedValue]]:
    """Yield each key whose value differs from the plan, with its row; a key of several rows once, with the first."""
    found: set[Key] = set()
    for row in load_planned_values(chart):
        for key in _expand(row.steps, planned, merged, may_add=row.may_add):
            if not _is_decided(row, key, planned):
                continue
            before, after = get_value(planned, key), get_value(merged, key)
            if before == after or after in row.may_be or (before in row.among and after in row.among):
                continue
            if not any(other[: len(key)] == key for other in found):
                found.add(key)
                yield key, row


def _is_decided(row: PlannedValue, key: Key, planned: Mapping[str, Any]) -> bool:
    entry = next((name for step, name in zip(row.steps, key, strict=True) if step == "*"), "")
    steps = {where: tuple(entry if step == "*" else step for step in where.split(".")) for where in row.where}
    return all(get_value(planned, steps[where]) == value for where, value in row.where.items())


def get_value(data: Any, key: Key) -> Any:
    """Return the value at a key; None if there is none."""
    for step in key:
        data = data.get(step) if isinstance(data, Mapping) else None
    return data


def _expand(steps: Key, planned: Any, merged: Any, *, may_add: bool) -> Iterator[Key]:
    """Yield the keys that a pattern matches in either of two trees."""
    if not steps:
        yield ()
        return
    step, *rest = steps
    names = [step]
    if step == "*":
        decided = planned if isinstance(planned, Mapping) else {}
        given = {} if may_add and "*" not in rest else merged if isinstance(merged, Mapping) else {}
        names = list(dict.fromkeys([*decided, *given]))
    for name in names:
        for below in _expand(tuple(rest), get_value(planned, (name,)), get_value(merged, (name,)), may_add=may_add):
            yield (name, *below)
