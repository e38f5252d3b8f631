"""The tree of a values model: keys that are sections with defaults, and keys that are maps or lists of entries.

The schema differs for both. A section is always in values.yaml, so a missing key can only come from `key: null`, and
the schema requires all keys. Users write entries: they may omit optional keys, and the chart completes each entry with
the defaults in `files/defaults.json`.
"""

import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from rayhelm.deploy.values.common.pods import PodSettings
from rayhelm.facts.closed import fields_of

__all__ = ["Key", "default_of", "entry_models", "entry_paths", "keys", "summary"]


@dataclass(frozen=True)
class Key:
    """One key of a values model."""

    name: str
    """Spelling in YAML."""
    field: FieldInfo
    section: type[BaseModel] | None
    """Model of the section below, if it is one."""
    entry: type[BaseModel] | None
    """Model of the entries below, if it is a map of them."""

    @property
    def doc(self) -> str:
        return " ".join((self.field.description or "").split())


def keys(model: type[BaseModel]) -> Iterator[Key]:
    """Yield the keys in the order of the model; then the settings that all pods have."""
    fields = fields_of(model)
    shared = PodSettings.model_fields if issubclass(model, PodSettings) and model is not PodSettings else {}
    own = {name: field for name, field in fields.items() if name not in shared}
    for name, field in (own | fields).items():
        found = _find_model(field.annotation)
        origin = get_origin(field.annotation)
        yield Key(
            name=field.alias or name,
            field=field,
            section=None if origin in (dict, list) else found,
            entry=found if origin is dict else None,
        )


def default_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return all defaults, nested, without required keys."""
    values: dict[str, Any] = {}
    for key in keys(model):
        if key.field.is_required():
            if key.section and (below := default_of(key.section)):
                values[key.name] = below
            continue
        default = key.field.get_default(call_default_factory=True)
        if default is None:
            continue
        values[key.name] = (
            default.model_dump(by_alias=True, exclude_none=True) if isinstance(default, BaseModel) else default
        )
    return values


def entry_paths(
    model: type[BaseModel], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], type[BaseModel]]]:
    """Yield the path of each map of entries (`*` for a name) and of each section that may be absent, with the model of
    the entries or the section, parents before children."""
    for key in keys(model):
        here = (*above, key.name)
        if key.entry:
            yield (*here, "*"), key.entry
            yield from entry_paths(key.entry, (*here, "*"))
        if key.section and not key.field.is_required() and key.field.get_default(call_default_factory=True) is None:
            yield here, key.section
        if key.section:
            yield from entry_paths(key.section, here)


def entry_models(model: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """Return the models of all entries below `model` by class name."""
    found: dict[str, type[BaseModel]] = {}
    for key in keys(model):
        if key.entry:
            found[key.entry.__name__] = key.entry
        for below in (key.entry, key.section):
            if below:
                found |= entry_models(below)
    return dict(sorted(found.items()))


def summary(annotation: Any) -> str:
    """Return a short name of a type, for tables."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return summary(args[0])
    if origin is Literal:
        return " \\| ".join(f"`{value}`" if value != "" else "empty" for value in args)
    if origin in (Union, types.UnionType):
        return " \\| ".join(dict.fromkeys(summary(arg) for arg in args if arg is not type(None)))
    if origin is dict:
        return "map"
    if origin is list:
        return "list"
    names = {str: "string", int: "integer", float: "number", bool: "boolean"}
    return names.get(annotation, "section")


def _find_model(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for arg in get_args(annotation) if (found := _find_model(arg))), None)
