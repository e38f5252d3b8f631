"""Messages and fixes for values that the schema of a chart refuses."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from rayhelm.deploy.compose.planned_values import get_value
from rayhelm.errors import Fix
from rayhelm.fleet.base import short
from rayhelm.fleet.nearest import did_you_mean, nearest
from rayhelm.fleet.translate import describe_type
from rayhelm.fleet.walk import fields, has_step, model_at
from rayhelm.fleet.yaml_nodes import Path

__all__ = ["describe_errors", "list_coerced", "list_unknown_globals"]

Described = tuple[Path, str, Fix]
_LAST = ("literal_error", "_type")
"""Errors of the other members of a union, which say less."""


def describe_errors(
    error: ValidationError, merged: Any, planned: Mapping[str, Any], model: type[BaseModel]
) -> Iterator[Described]:
    """Yield the key, the message and the fix of each error, one for each key."""
    details = [(_find_key(detail, merged), detail) for detail in error.errors(include_url=False)]
    details.sort(key=lambda item: item[1]["type"].endswith(_LAST))
    seen: set[Path] = set()
    entered = {key[:end] for key, _ in details for end in range(len(key))}
    for key, detail in details:
        if key in seen or (key in entered and detail["type"].endswith(_LAST)):
            continue
        seen.add(key)
        yield (key, *_describe(key, detail, planned, model))


def list_coerced(given: Any, accepted: Any, key: Path = ()) -> Iterator[Described]:
    """Yield text that stands for a number or a boolean, and booleans that stand for numbers: Python's types take them,
    and the chart's schema refuses them."""
    if isinstance(given, Mapping):
        for step, value in given.items():
            if isinstance(accepted, Mapping) and step in accepted:
                yield from list_coerced(value, accepted[step], (*key, step))
    elif isinstance(given, list) and isinstance(accepted, list):
        for index, (value, other) in enumerate(zip(given, accepted, strict=False)):
            yield from list_coerced(value, other, (*key, index))
    elif isinstance(given, str | bool) and not isinstance(accepted, type(given)) and accepted is not None:
        kind = "true or false" if isinstance(accepted, bool) else "a number"
        what = f'"{short(given)}"' if isinstance(given, str) else short(given)
        yield key, f"`{what}` must be {kind}", Fix("", accepted)


def list_unknown_globals(given: Any, model: type[BaseModel]) -> Iterator[Described]:
    """Yield keys of `global` that no chart reads. The charts accept them, because a parent chart can have more; a fleet
    file has no parent chart."""
    section = given.get("global") if isinstance(given, Mapping) else None
    known = fields(found) if (found := model_at(model, ("global",))) else {}
    for key, value in section.items() if isinstance(section, Mapping) else ():
        if key not in known:
            yield (path := ("global", key)), *_describe_unknown(path, value, model)


def _find_key(detail: ErrorDetails, data: Any) -> Path:
    """Location without the names of union members and validators, which the values do not have."""
    key: list[str | int] = []
    for step in detail["loc"]:
        # Sections that were completed with their defaults have the names of Python.
        for name in (step, to_camel(step)) if isinstance(step, str) else (step,):
            if has_step(data, name):
                data = data[name]
                key.append(name)
                break
    return (*key, _to_key(detail["loc"][-1])) if detail["type"] == "missing" else tuple(key)


def _to_key(step: str | int) -> str | int:
    return to_camel(step) if isinstance(step, str) else step


def _describe(key: Path, detail: ErrorDetails, planned: Mapping[str, Any], model: type[BaseModel]) -> tuple[str, Fix]:
    kind, value = detail["type"], detail.get("input")
    if kind == "extra_forbidden":
        return _describe_unknown(key, value, model)
    if kind == "missing":
        return "it is required", Fix.removal("", "or complete it")
    if detail["loc"][-1] == "[key]":
        return f"`{short(key[-1])}` is not a key of this map: it does not match the pattern", Fix.removal()
    if kind == "string_pattern_mismatch":
        message = f"`{short(value)}` does not match {detail['ctx']['pattern']}"
    elif kind == "literal_error":
        message = f"`{short(value)}` is not one of {detail['ctx']['expected']}"
    else:
        message = f"`{short(value)}` {describe_type(detail)}"
    before = get_value(planned, tuple(map(str, key)))
    if before in (None, ""):
        return message, Fix.removal()
    if isinstance(before, Mapping):
        return message, Fix.removal("", "the plan has it")
    return message, Fix("", before, "as in the plan")


def _describe_unknown(key: Path, value: Any, model: type[BaseModel]) -> tuple[str, Fix]:
    parent = model_at(model, key[:-1])
    known = list(fields(parent)) if parent else []
    hint = did_you_mean(str(key[-1]), known)
    message = f"unknown key `{short(key[-1])}`" + (f"; {hint}" if hint else "")
    for near in nearest(str(key[-1]), known):
        if parent and _takes(fields(parent)[near], value):
            return message, Fix(f"../{near}", value, replaces="")
    return message, Fix.removal()


def _takes(field: FieldInfo, value: Any) -> bool:
    """Return whether a field takes the value as it is."""
    annotation: Any = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
    try:
        accepted = TypeAdapter(annotation).validate_python(value)
    except ValidationError:
        return False
    return isinstance(accepted, BaseModel) or bool(accepted == value)
