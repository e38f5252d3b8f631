"""Whether Ray would take a configuration: asked of Ray's own schema where Ray is installed."""

import importlib
import threading
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

__all__ = ["RayCheck", "shape_check"]


class _Application(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)
    import_path: str
    name: str = "default"
    deployments: list[dict[str, Any]] = []


class _Shape(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)
    applications: list[_Application]
    http_options: dict[str, Any] = {}


def shape_check(body: object) -> str | None:
    """What is wrong with the JSON, as far as it can be checked without Ray; None for valid JSON."""
    return _objection(_Shape, body)


class RayCheck:
    """Imports Ray in a thread of its own, so that the program is up at once; the first question waits for it."""

    def __init__(self, load: Callable[[], tuple[str, type[BaseModel]]] | None = None) -> None:
        self._load = load or _load_ray
        self._schema: type[BaseModel] = _Shape
        self.by = "loading Ray"
        """What checks: a version of Ray, or the shape with the reason why."""
        self._thread = threading.Thread(target=self._import, daemon=True)
        self._thread.start()

    def __call__(self, body: object) -> str | None:
        """Ray's objection to a configuration, or None."""
        self._thread.join()
        return _objection(self._schema, body)

    def _import(self) -> None:
        try:
            version, self._schema = self._load()
            self.by = f"Ray {version}"
        except Exception as error:
            # A broken installation can raise anything; `by` reports it, and answers continue.
            self.by = f"the shape of the JSON only, for Ray cannot be imported: {error}"


def _load_ray() -> tuple[str, type[BaseModel]]:
    schema: type[BaseModel] = importlib.import_module("ray.serve.schema").ServeDeploySchema
    return str(importlib.import_module("ray").__version__), schema


def _objection(schema: type[BaseModel], body: object) -> str | None:
    try:
        schema.model_validate(body)
    except ValidationError as error:
        return repr(error)
    return None if isinstance(body, Mapping) else "not a JSON object"
