"""The base class of every model in rayhelm.

Closed (`extra="forbid"`): a mistyped key is an error with its line, not a setting without effect.
Frozen: data flows one way, from the fleet file to the values.
Attribute docstrings are the field descriptions of the JSON schemas, `rayhelm explain` and the README tables, so a field
is described once, beside its type. They are read from the source only when they are needed: pydantic's own
`use_attribute_docstrings` reads them at import, which took a third of the time of `rayhelm plan`.
"""

import ast
import inspect
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic_core import core_schema

__all__ = ["Closed", "ClosedCamel", "Unchecked", "fields_of"]


class Closed(BaseModel):
    """A record that refuses unknown keys."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        protected_namespaces=(),
    )

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler(core_schema)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name, info in fields_of(cls).items():
            key = next((key for key in (info.alias, name) if key in properties), None)
            if key and info.description:
                properties[key].setdefault("description", info.description)
        return schema


class Unchecked:
    """Annotation of a field whose value is made by the program: no schema is built for its type."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        return core_schema.any_schema()


class ClosedCamel(Closed):
    """A record that users write in YAML, with camelCase keys as in Kubernetes."""

    model_config = ConfigDict(alias_generator=to_camel)


def fields_of(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the fields of a model by name, each with its description: that of `Field(...)`, or the docstring behind
    it."""
    for name, info in model.model_fields.items():
        if info.description is None:
            owner = next((each for each in model.__mro__ if name in _read_docstrings(each)), model)
            info.description = _read_docstrings(owner).get(name)
    return model.model_fields


@cache
def _read_docstrings(owner: type) -> dict[str, str]:
    """Return the docstrings of the attributes of one class, by attribute."""
    file = getattr(sys.modules.get(owner.__module__), "__file__", None)
    body = _read_class_bodies(file).get(owner.__name__, []) if file else []
    return {
        attribute.target.id: inspect.cleandoc(text.value.value)
        for attribute, text in pairwise(body)
        if isinstance(attribute, ast.AnnAssign)
        and isinstance(attribute.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
    }


@cache
def _read_class_bodies(file: str) -> dict[str, list[ast.stmt]]:
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    return {node.name: node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
