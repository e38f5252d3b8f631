"""Schemas that are not ours: CRDs turned into closed JSON Schemas, and Kubernetes' own kinds."""

import os
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate.utils as kubernetes
import pytest
import yaml

# Reading 10 MB of definitions for every object would take minutes.
kubernetes.schema_contents = cache(kubernetes.schema_contents)


def crd_file(name: str) -> Path:
    folder = os.environ.get("RAYHELM_CRDS")
    if not folder:
        pytest.skip("RAYHELM_CRDS names no folder with CRDs")
    return Path(folder, name)


@cache
def crd_validator(name: str) -> jsonschema.Draft202012Validator:
    """Validator of the newest version in a CRD; keys that it does not know are errors."""
    return validator_of(crd_file(name))


@cache
def validator_of(file: Path, version: str = "v1") -> jsonschema.Draft202012Validator:
    """Validator of a version in the CRD that a file holds; keys that it does not know are errors."""
    crd = yaml.load(file.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    found = next(item for item in crd["spec"]["versions"] if item["name"] == version)
    return jsonschema.Draft202012Validator(_closed(found["schema"]["openAPIV3Schema"], root=True))


def built_in(item: dict[str, Any], version: str) -> None:
    """Raises for what a Kubernetes of this version does not know, an unknown kind included."""
    kubernetes.validate(item, version, strict=True)


def _closed(schema: Any, root: bool = False) -> Any:
    if isinstance(schema, list):
        return [_closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {key: _closed(value) for key, value in schema.items() if key not in ("description", "format")}
    if "properties" in schema:
        closed["properties"] = {key: _closed(value) for key, value in schema["properties"].items()}
        if root:
            closed["properties"]["metadata"] = {"type": "object"}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            closed.setdefault("additionalProperties", False)
    if schema.get("x-kubernetes-int-or-string"):
        closed.pop("type", None)
        closed["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if schema.get("nullable") and "type" in closed:
        closed["type"] = [closed["type"], "null"]
    return closed
