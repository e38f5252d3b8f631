"""values.schema.json from a values model."""

from typing import Any

from pydantic import BaseModel

__all__ = ["values_schema"]

Schema = dict[str, Any]
_NULL: Schema = {"type": "null"}


def values_schema(model: type[BaseModel], title: str) -> Schema:
    """Build a closed schema.

    Sections require all of their keys: with `a: null` in an overlay Helm drops the default without a message, so the
    schema refuses it, except for a key that means something when it is absent. Entries of maps may omit keys with a
    default.
    """
    raw = model.model_json_schema(by_alias=True)
    definitions = {name: _tidy(definition) for name, definition in raw.pop("$defs", {}).items()}
    root = _build_section(_tidy(raw), definitions)
    used = _find_reachable(root, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": "Generated from the values model. Do not edit.",
        **root,
        "title": title,
        "$defs": {name: definitions[name] for name in sorted(used)},
    }


def _build_section(schema: Schema, definitions: dict[str, Schema]) -> Schema:
    """Return the schema of a section with its nested sections inlined and every key required that has a default."""
    properties = {name: _inline(node, definitions) for name, node in schema["properties"].items()}
    required = sorted(
        name
        for name, node in properties.items()
        if _NULL not in node.get("anyOf", ()) and "null" not in node.get("type", "")
    )
    return {**schema, "properties": properties, "required": required}


def _inline(node: Schema, definitions: dict[str, Schema]) -> Schema:
    name = _get_ref(node)
    if not name or "properties" not in definitions[name]:
        return node
    beside = {key: value for key, value in node.items() if key not in ("$ref", "default")}
    return {**_build_section(definitions[name], definitions), **beside}


def _tidy(node: Any) -> Any:
    """Return the schema without titles, with descriptions on one line and closed patterns of names. A type beside null
    replaces both."""
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
        real = [choice for choice in choices if choice != _NULL]
        if len(real) == 1:
            del tidied["anyOf"]
            tidied = {**real[0], **tidied}
    return tidied


def _get_ref(node: Schema) -> str:
    return str(node.get("$ref", "")).removeprefix("#/$defs/")


def _find_reachable(node: Any, definitions: dict[str, Schema], seen: frozenset[str] = frozenset()) -> frozenset[str]:
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    if isinstance(node, dict) and (name := _get_ref(node)) and name not in seen:
        seen = _find_reachable(definitions[name], definitions, seen | {name})
    for child in children:
        seen = _find_reachable(child, definitions, seen)
    return seen
