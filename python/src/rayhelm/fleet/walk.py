"""Walks the fleet's types by a dotted path, the same way for errors and for `explain`."""

import types
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from rayhelm.facts.closed import fields_of
from rayhelm.fleet.lazy_record import type_of

__all__ = ["Step", "alternatives", "field_at", "fields", "has_step", "members", "model_at", "type_at", "unwrap"]

Step = str | int


def has_step(value: Any, step: Step) -> bool:
    """Return whether the map or list `value` holds `step`."""
    return (isinstance(value, Mapping) and step in value) or (isinstance(value, list) and step in range(len(value)))


def unwrap(annotation: Any) -> Any:
    """The type under `Annotated`."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation


def members(annotation: Any) -> Iterator[Any]:
    """The members of a union, each with what is beside it in `Annotated`; the type itself when it is none."""
    bare = unwrap(annotation)
    if get_origin(bare) in (Union, types.UnionType):
        for member in get_args(bare):
            yield from members(member)
    elif bare is not type(None):
        yield annotation


def alternatives(annotation: Any) -> Iterator[Any]:
    """The members of a union; the type itself when it is none."""
    return map(unwrap, members(annotation))


def fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Fields by the key that people write."""
    return {info.alias or name: info for name, info in fields_of(model).items()}


def field_at(model: type[BaseModel], path: tuple[Step, ...]) -> tuple[str, FieldInfo] | None:
    """The last field on `path` and its key, or None where `path` leads nowhere."""
    here: Any = model
    field: tuple[str, FieldInfo] | None = None
    for step in path:
        found = _down(here, step)
        if found is None:
            return None
        here, info = found
        field = (str(step), info) if info else field
    return field


def type_at(model: type[BaseModel], path: tuple[Step, ...]) -> Any:
    """The type of the value at `path`, with what its field asks of it; None where `path` leads nowhere."""
    here: Any = model
    info: FieldInfo | None = None
    for step in path:
        found = _down(here, step)
        if found is None:
            return None
        here, info = found
    return Annotated[here, *info.metadata] if info and info.metadata else here


def model_at(model: type[BaseModel], path: tuple[Step, ...]) -> type[BaseModel] | None:
    """The record whose keys stand at `path`, or None if the value there is not a record."""
    here: Any = model
    for step in path:
        found = _down(here, step)
        if found is None:
            return None
        here = found[0]
    return next((item for item in alternatives(here) if isinstance(item, type) and issubclass(item, BaseModel)), None)


def _down(annotation: Any, step: Step) -> tuple[Any, FieldInfo | None] | None:
    for item in alternatives(annotation):
        origin = get_origin(item)
        if origin is dict:
            return get_args(item)[1], None
        if origin in (tuple, list) and isinstance(step, int):
            return get_args(item)[0], None
        if origin is Literal or not isinstance(item, type) or not issubclass(item, BaseModel):
            continue
        if info := fields(item).get(str(step)):
            return type_of(info), info
    return None
