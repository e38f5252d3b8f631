"""values.schema.json from a values model."""

import copy
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from rayhelm.facts.renamed import Renamed

__all__ = ["values_schema"]

Schema = dict[str, Any]
_NULL: Schema = {"type": "null"}


def values_schema(model: type[BaseModel], title: str, renamed: Sequence[Renamed] = ()) -> Schema:
    """Build a closed schema.

    Sections require all of their keys: with `a: null` in an overlay Helm drops the default without a message, so the
    schema refuses it, except for a key that means something when it is absent. Entries of maps may omit keys with a
    default. Old keys of `renamed` are accepted without a type and without other keys: the chart refuses them with a
    message that names the new key.
    """
    raw = model.model_json_schema(by_alias=True)
    definitions = {name: _tidy(definition) for name, definition in raw.pop("$defs", {}).items()}
    root = _build_section(_tidy(raw), definitions)
    for row in renamed:
        _admit(row, root, definitions)
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
    required = sorted(name for name, node in properties.items() if _NULL not in node.get("anyOf", ()))
    return {**schema, "properties": properties, "required": required}


def _admit(row: Renamed, root: Schema, definitions: dict[str, Schema]) -> None:
    """Accept the old key.

    In an entry of a map, the entry and its sections may then omit every key, so that the chart's message with the new
    key comes before Helm's message about a missing property. Sections outside of maps have defaults. Definitions on the
    path are copied and inlined, so that other maps with the same kind of entries stay closed.
    """
    parts = row.old.split(".")
    node = root
    opened: list[tuple[Schema, list[str]]] = []
    for depth, part in enumerate(parts[:-1], 1):
        node = _open_key(node, part, definitions)
        if "*" in parts[:depth]:
            opened.append((node, parts[depth:]))
    node.setdefault("properties", {})[parts[-1]] = {}
    for section, below in opened:
        _require_without(section, _has(below))


def _require_without(section: Schema, old: Schema) -> None:
    """Require keys only if the section does not match `old`, nor the conditions of earlier calls."""
    conditional = next((rule for rule in section.get("allOf", ()) if set(rule) == {"if", "else"}), None)
    if conditional:
        conditional["if"]["anyOf"].append(old)
    elif required := section.pop("required", None):
        section.setdefault("allOf", []).append({"if": {"anyOf": [old]}, "else": {"required": required}})


def _has(path: list[str]) -> Schema:
    """Return a schema of objects that have a key at a path; `*` stands for any name."""
    part, *below = path
    inner = {"type": "object", **_has(below)} if below else {}
    if part == "*":
        return {"not": {"additionalProperties": {"not": inner}}}
    return {"required": [part], "properties": {part: inner}} if below else {"required": [part]}


def _open_key(node: Schema, part: str, definitions: dict[str, Schema]) -> Schema:
    """Replace the schema of a key (or of any name, for `*`) with a copy, and return the copy."""
    if part == "*":
        holder, key = _find_entry_schema(node)
    else:
        holder, key = node["properties"], part
        # An old section: all of its keys were moved to other sections.
        holder.setdefault(key, {"type": "object", "properties": {}, "additionalProperties": False})
    holder[key] = copy.deepcopy(holder[key])
    if name := _get_ref(holder[key]):
        beside = {key: value for key, value in holder[key].items() if key != "$ref"}
        holder[key] = {**copy.deepcopy(definitions[name]), **beside}
    found: Schema = holder[key]
    return found


def _find_entry_schema(node: Schema) -> tuple[Schema, str]:
    if patterns := node.get("patternProperties"):
        (pattern,) = patterns
        return patterns, pattern
    return node, "additionalProperties"


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
