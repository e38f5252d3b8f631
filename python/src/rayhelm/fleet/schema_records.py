"""Pydantic types made from a JSON Schema that was generated from another program, when a file first needs them."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal, Union

from pydantic import BeforeValidator, Field, create_model

from rayhelm.facts.closed import Closed

__all__ = ["SchemaRecord", "SchemaRecords"]

_LEFT_OUT: Any = None
"""Placeholder: only keys that are written are kept."""
_TYPES: dict[str, Any] = {"boolean": bool, "integer": int, "number": float, "string": str, "null": None}


class SchemaRecord(Closed):
    """A record of such a schema."""

    UNKNOWN: ClassVar[str] = "unknown key"
    """How a message about an unknown key starts."""
    PROGRAM: ClassVar[str] = ""
    """The program that has the schema, for keys without a description."""


class SchemaRecords:
    """The records of a schema, each made once."""

    def __init__(
        self,
        definitions: Mapping[str, Any],
        base: type[SchemaRecord],
        examples: Mapping[str, Any],
        check_map: Callable[[object], object] | None = None,
    ) -> None:
        """`base`: class of the records. `examples`: values for fixes, by key. `check_map` gets each map, or
        what a file has in place of one, before its keys are read."""
        self._definitions, self._base, self._examples = definitions, base, examples
        self._before = [BeforeValidator(check_map)] if check_map else []
        self._records: dict[str, type[SchemaRecord]] = {}

    def build(self, name: str, schema: Mapping[str, Any]) -> type[SchemaRecord]:
        required = schema.get("required", ())
        fields: dict[str, Any] = {
            key: self._build_field(key, below, is_required=key in required)
            for key, below in schema["properties"].items()
        }
        return create_model(name, __base__=self._base, __module__=__name__, **fields)

    def find(self, name: str) -> type[SchemaRecord]:
        """Return the record of a definition."""
        if name not in self._records:
            self._records[name] = self.build(name, self._definitions[name])
        return self._records[name]

    def _build_field(self, key: str, schema: Mapping[str, Any], *, is_required: bool) -> tuple[Any, Any]:
        info = Field(
            default=... if is_required else _LEFT_OUT,
            description=schema.get("description")
            or f"`{key}` of {self._base.PROGRAM}, which has no description of it.",
            examples=[self._examples[key]] if key in self._examples else None,
            **_read_bounds(schema),
        )
        return self._find_type(schema), info

    def _find_type(self, schema: Mapping[str, Any]) -> Any:
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            is_record = "properties" in self._definitions[name]
            return self._as_map(self.find(name)) if is_record else self._find_type(self._definitions[name])
        if "anyOf" in schema:
            return Union[tuple(self._find_member(member) for member in schema["anyOf"])]  # noqa: UP007  # at run time
        if "enum" in schema:
            return Literal[tuple(schema["enum"])]
        if schema.get("type") == "array":
            return list[self._find_member(schema.get("items", {}))]  # type: ignore[misc]  # made at run time
        if schema.get("type") == "object":
            below = schema["additionalProperties"]
            inner = Any if below is True else self._find_member(below)
            return self._as_map(dict[str, inner])  # type: ignore[valid-type]  # made at run time
        return _TYPES.get(schema.get("type", ""), Any)

    def _find_member(self, schema: Mapping[str, Any]) -> Any:
        """Return the type of a value that is no field, whose bounds belong to its type."""
        bounds = _read_bounds(schema)
        return Annotated[self._find_type(schema), Field(**bounds)] if bounds else self._find_type(schema)

    def _as_map(self, kind: Any) -> Any:
        return Annotated[kind, *self._before] if self._before else kind


def _read_bounds(schema: Mapping[str, Any]) -> dict[str, Any]:
    names = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}
    return {name: schema[key] for name, key in names.items() if schema.get(key) is not None}
