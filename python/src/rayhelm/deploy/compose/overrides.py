"""Merge `values` of the fleet file into the values of a chart, last.

The result is checked by the types that the chart's schema is generated from. A value that the plan decides is refused
with the key of the fleet file that changes it. Each problem has its line in the fleet file.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import ValidationError

from rayhelm.deploy.compose.origin import Origins, Placed
from rayhelm.deploy.compose.override_errors import describe_errors, list_coerced, list_unknown_globals
from rayhelm.deploy.compose.planned_values import Key, PlannedValue, get_value, list_contradictions
from rayhelm.deploy.values.common.base import Values
from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.fleet.base import short
from rayhelm.fleet.problems import problem_at
from rayhelm.fleet.walk import model_at
from rayhelm.fleet.yaml_nodes import Path, dotted

__all__ = ["apply_overrides"]

AnyValues = TypeVar("AnyValues", bound=Values)


def apply_overrides(values: AnyValues, origins: Origins) -> AnyValues:
    """Return the values of a release with the overrides of the fleet file, merged in order. Raises FleetError with
    every problem."""
    if not origins.placed:
        return values
    planned = values.model_dump(by_alias=True)
    merged, problems = planned, list[Problem]()
    for each in origins.placed:
        trial = _merge(merged, _nest(each.key, each.override.values), type(values), ())
        if found := list(_find_wrong(trial, each, type(values), planned)):
            problems += found
        else:
            merged = trial
    result = type(values).model_validate(merged).model_dump(by_alias=True)
    problems += _list_contradictions(planned, result, origins)
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
    coerced = list_coerced(given, result.model_dump(by_alias=True))
    for key, message, fix in (*coerced, *list_unknown_globals(given, model)):
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


def _list_contradictions(planned: Mapping[str, Any], result: Mapping[str, Any], origins: Origins) -> list[Problem]:
    """Return a problem for each place that changes the plan."""
    problems: dict[Path, Problem] = {}
    for key, row in list_contradictions(origins.chart, planned, result):
        # The last override that has the key decided its value.
        given = next((each for each in reversed(origins.placed) if _touches(each, key)), origins.placed[-1])
        path = given.locate(key)
        here = key[: len(given.key) + len(path) - len(given.override.path)]
        field = origins.describe_field(row, key)
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
