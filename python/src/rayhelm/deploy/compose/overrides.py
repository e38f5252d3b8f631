"""Merge `values` of the fleet file into the values of a chart, last.

The result is checked by the types that the chart's schema is generated from. A value that the plan decides is refused
with the key of the fleet file that changes it. Each problem has its line in the fleet file.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import ValidationError

from rayhelm.deploy.compose.override_errors import describe_errors, list_coerced
from rayhelm.deploy.compose.planned_values import PlannedValue, get_value, list_contradictions
from rayhelm.deploy.values.common.base import Values
from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.fleet.base import short
from rayhelm.fleet.overrides import Override
from rayhelm.fleet.problems import problem_at
from rayhelm.fleet.walk import has_step, model_at
from rayhelm.fleet.yaml_nodes import Path, dotted

__all__ = ["Placed", "apply_overrides"]

AnyValues = TypeVar("AnyValues", bound=Values)
Key = tuple[str, ...]


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


def apply_overrides(
    values: AnyValues,
    placed: Sequence[Placed],
    chart: str,
    name: Callable[[Key], Mapping[str, str]],
) -> AnyValues:
    """Return the values with the overrides merged in order. Raises FleetError with every problem.

    `name` returns the names of the fleet file that a key of the chart belongs to, for the advice."""
    used = [each for each in placed if each.override.values]
    if not used:
        return values
    planned = values.model_dump(by_alias=True)
    merged, problems = planned, list[Problem]()
    for each in used:
        trial = _merge(merged, _nest(each.key, each.override.values), type(values), ())
        if found := list(_find_wrong(trial, each, type(values), planned)):
            problems += found
        else:
            merged = trial
    result = type(values).model_validate(merged).model_dump(by_alias=True)
    problems += _list_contradictions(chart, planned, result, used, name)
    if problems:
        raise FleetError(problems)
    return type(values).model_validate(merged)


def _nest(key: Key, values: Mapping[str, Any]) -> Mapping[str, Any]:
    for step in reversed(key):
        values = {step: values}
    return values


def _merge(below: Any, above: Any, model: type[Values], at: Key) -> Any:
    """Merge as Helm does: maps by key, lists and other values as a whole; null removes the entry of a map."""
    if not isinstance(below, Mapping) or not isinstance(above, Mapping):
        return above
    merged = dict(below)
    is_record = model_at(model, at) is not None
    for step, value in above.items():
        if value is None and not is_record:
            merged.pop(step, None)
        else:
            merged[step] = _merge(below.get(step), value, model, (*at, step))
    return merged


def _find_wrong(merged: Any, placed: Placed, model: type[Values], planned: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what the chart's schema refuses."""
    try:
        result = model.model_validate(merged)
    except ValidationError as error:
        for key, message, fix in describe_errors(error, merged, planned, model):
            yield _build_problem(key, message, fix, placed)
        return
    given = _nest(placed.key, placed.override.values)
    for key, message, fix in list_coerced(given, result.model_dump(by_alias=True)):
        yield _build_problem(key, message, fix, placed)


def _build_problem(key: Path, message: str, fix: Fix, placed: Placed) -> Problem:
    path = placed.locate(key)
    if len(path) - len(placed.override.path) < len(key) - len(placed.key):
        # The key is missing, so its nearest parent has the line.
        rest = dotted(key[len(placed.key) + len(path) - len(placed.override.path) :])
        fix = fix if fix.is_removal else replace(fix, path=rest)
        message = f"`{rest}`: {message}"
    chart = placed.override.chart
    return problem_at(path, f"chart {chart}: {message}", fix)


def _list_contradictions(
    chart: str,
    planned: Mapping[str, Any],
    result: Mapping[str, Any],
    used: Sequence[Placed],
    name: Callable[[Key], Mapping[str, str]],
) -> list[Problem]:
    """Return a problem for each place that changes the plan."""
    problems: dict[Path, Problem] = {}
    for key, row in list_contradictions(chart, planned, result):
        # The last override that has the key decided its value.
        given = next((each for each in reversed(used) if _touches(each, key)), used[-1])
        path = given.locate(key)
        here = key[: len(given.key) + len(path) - len(given.override.path)]
        field = row.field.format_map(_Names(name(key)))
        message = _describe_contradiction(here, get_value(planned, here), row, field)
        fix = Fix.removal("", f"use `{field}` of the fleet file" if field else "")
        value = given.read(path)
        if row.takes_value and here == key and value is not None and "*" not in field:
            fix = Fix(f"/{field}", value, "or without it, as the fleet file has it", replaces="")
        problems.setdefault(path, problem_at(path, message, fix))
    return list(problems.values())


def _describe_contradiction(key: Key, before: Any, row: PlannedValue, field: str) -> str:
    name = ".".join(key)
    if not field:
        return f"`{name}` cannot be overridden: {row.why}"
    if before is None:
        what = f"`{name}` is not in the plan and cannot be added"
    elif isinstance(before, Mapping | list) or before == "":
        what = f"`{name}` cannot be overridden: the plan decides it"
    else:
        what = f"`{name}` cannot be overridden: the plan has `{short(before)}`"
    return f"{what}. Use `{field}` of the fleet file"


def _touches(placed: Placed, key: Key) -> bool:
    """Return whether an override has the key, one below it or one above it other than maps."""
    here: Any = _nest(placed.key, placed.override.values)
    for step in key:
        if not isinstance(here, Mapping):
            return True
        if step not in here:
            return False
        here = here[step]
    return True


class _Names(dict[str, str]):
    """Names for the advice; `*` for one that is not known."""

    def __missing__(self, key: str) -> str:
        return "*"
