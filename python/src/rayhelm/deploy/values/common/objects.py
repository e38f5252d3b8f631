"""Objects of Kubernetes that a chart renders as they are written."""

from typing import Annotated, Any

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

__all__ = ["ExtraObject"]


def _check_object(written: dict[str, Any]) -> dict[str, Any]:
    metadata = written.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not all(isinstance(text, str) and text for text in (written.get("apiVersion"), written.get("kind"), name)):
        raise PydanticCustomError("extra_object", "needs `apiVersion`, `kind` and `metadata.name`, each a text")
    return written


_TEXT: dict[str, Any] = {"type": "string", "minLength": 1}
_NAMED: dict[str, Any] = {"type": "object", "required": ["name"], "properties": {"name": _TEXT}}

ExtraObject = Annotated[
    dict[str, Any],
    AfterValidator(_check_object),
    Field(
        json_schema_extra={
            "required": ["apiVersion", "kind", "metadata"],
            "properties": {"apiVersion": _TEXT, "kind": _TEXT, "metadata": _NAMED},
        }
    ),
]
