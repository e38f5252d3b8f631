"""values.schema.json from a values model."""

from typing import Any

from pydantic import BaseModel

__all__ = ["values_schema"]

Schema = dict[str, Any]


def values_schema(model: type[BaseModel], title: str) -> Schema:
    """A closed schema in which sections require all of their keys: `a: null` in an overlay drops a default in silence,
    and must not pass. Entries of maps may leave out what has a default.
    """
    raw = model.model_json_schema(by_alias=True)
    definitions = {name: _tidy(definition) for name, definition in raw.pop("$defs", {}).items()}
    root = _section(_tidy(raw), definitions)
    used = _reachable(root, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": "Generated from the values model. Do not edit.",
        **root,
        "title": title,
        "$defs": {name: definitions[name] for name in sorted(used)},
    }


def _section(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    """The schema with its nested sections put in place and every key required."""
    properties = {name: _inlined(node, definitions) for name, node in schema["properties"].items()}
    return {**schema, "properties": properties, "required": sorted(properties)}


def _inlined(node: Schema, definitions: dict[str, Schema]) -> Schema:
    name = _ref(node)
    if not name or "properties" not in definitions[name]:
        return node
    beside = {key: value for key, value in node.items() if key not in ("$ref", "default")}
    return {**_section(definitions[name], definitions), **beside}


def _tidy(node: Any) -> Any:
    """Without titles, without null (a key is left out instead), descriptions on one line, names of entries closed."""
    if isinstance(node, list):
        return [_tidy(item) for item in node]
    if not isinstance(node, dict):
        return node
    tidied = {
        key: {name: _tidy(value) for name, value in item.items()} if key in ("properties", "$defs") else _tidy(item)
        for key, item in node.items()
        if not (key == "title" and isinstance(item, str)) and not (key == "default" and item is None)
    }
    if "patternProperties" in tidied:
        tidied["additionalProperties"] = False
    description = tidied.get("description")
    if isinstance(description, str):
        tidied["description"] = " ".join(description.split())
    if choices := tidied.get("anyOf"):
        real = [choice for choice in choices if choice != {"type": "null"}]
        if len(real) == 1:
            del tidied["anyOf"]
            tidied = {**real[0], **tidied}
    return tidied


def _ref(node: Schema) -> str:
    return str(node.get("$ref", "")).removeprefix("#/$defs/")


def _reachable(node: Any, definitions: dict[str, Schema], seen: frozenset[str] = frozenset()) -> frozenset[str]:
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    if isinstance(node, dict) and (name := _ref(node)) and name not in seen:
        seen = _reachable(definitions[name], definitions, seen | {name})
    for child in children:
        seen = _reachable(child, definitions, seen)
    return seen
