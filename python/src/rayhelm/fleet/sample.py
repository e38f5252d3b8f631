"""A value that a field takes, for the fix of a wrong one."""

from typing import Annotated, Any

import yaml
from pydantic import TypeAdapter
from pydantic.fields import FieldInfo

__all__ = ["as_yaml", "sample"]


def sample(info: FieldInfo) -> Any:
    """The field's own example, or one that its type allows."""
    if info.examples:
        return info.examples[0]
    annotation: Any = Annotated[info.annotation, *info.metadata] if info.metadata else info.annotation
    schema = TypeAdapter(annotation).json_schema()
    return _of_schema(schema, schema.get("$defs", {}))


def as_yaml(key: str, value: Any) -> str:
    """In one line, so that it can be pasted into either style."""
    flow = str(yaml.safe_dump([value], default_flow_style=True, sort_keys=False, width=10_000))
    return f"{key}: {flow.strip()[1:-1]}"


def _of_schema(schema: dict[str, Any], known: dict[str, Any]) -> Any:
    if "$ref" in schema:
        return _of_schema(known[schema["$ref"].rpartition("/")[2]], known)
    if schema.get("examples"):
        return schema["examples"][0]
    if "anyOf" in schema:
        return _of_schema(schema["anyOf"][0], known)
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "array":
        return [_of_schema(schema["items"], known)]
    if kind == "object":
        return _of_record(schema, known)
    return {"boolean": True, "string": "text"}.get(str(kind), schema.get("minimum", 1))


def _of_record(schema: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    """Required fields of it, or its first field if none is required."""
    fields = schema.get("properties", {})
    if not fields:
        inner = schema.get("additionalProperties")
        return {"name": _of_schema(inner, known)} if isinstance(inner, dict) else {}
    wanted = schema.get("required") or list(fields)[:1]
    return {key: _of_schema(fields[key], known) for key in wanted}
