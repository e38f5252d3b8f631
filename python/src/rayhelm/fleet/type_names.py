"""Names of types for people who write YAML: `map`, `list of maps`, `string`, `quantity like 600ms`."""

from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo

from rayhelm.fleet.lazy_record import type_of
from rayhelm.fleet.units import QuantitySchema
from rayhelm.fleet.walk import members, unwrap

__all__ = ["name_type"]


def name_type(annotation: Any, info: FieldInfo | None = None) -> str:
    """Name a type; that of the field `info`, if there is one."""
    if info is not None:
        annotation = type_of(info)
        if info.metadata and not _is_map(annotation):
            annotation = Annotated[annotation, *info.metadata]
    return " or ".join(dict.fromkeys(_name_member(member) for member in members(annotation)))


def _name_member(annotation: Any) -> str:
    bare = unwrap(annotation)
    origin, arguments = get_origin(bare), get_args(bare)
    if _is_map(bare):
        return "map"
    if origin is dict:
        inner = name_type(arguments[1])
        return "map" if inner == "any value" else f"map of name to {inner}"
    if origin in (list, tuple):
        return f"list of {_plural(name_type(arguments[0]))}" if arguments else "list"
    if get_origin(annotation) is Annotated and any(
        isinstance(each, QuantitySchema) for each in annotation.__metadata__
    ):
        return f"quantity like {_schema(annotation)['examples'][0]}"
    return _name_leaf(_schema(annotation))


def _schema(annotation: Any) -> dict[str, Any]:
    return TypeAdapter(annotation).json_schema()


def _name_leaf(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(str(value) or '""' for value in schema["enum"])
    if "const" in schema:
        return str(schema["const"]) or '""'
    kinds = schema.get("type", "any value")
    if schema.get("examples"):
        return f"{kinds} like {schema['examples'][0]}"
    return " or ".join([kinds] if isinstance(kinds, str) else kinds)


def _plural(name: str) -> str:
    if name.startswith("one of "):
        return f"strings, each {name}"
    return " or ".join(_PLURALS.get(word, f"{word}s") + rest for word, rest in map(_split_word, name.split(" or ")))


def _split_word(name: str) -> tuple[str, str]:
    word, space, rest = name.partition(" ")
    return word, space + rest


_PLURALS = {"quantity": "quantities", "any": "any", '""': '""'}


def _is_map(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)
