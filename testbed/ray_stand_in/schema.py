"""Check configurations with Ray's own schema, or by their shape if Ray is not installed."""

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
    """Return the error of a configuration by its shape, without Ray; None if it is valid."""
    return _find_error(_Shape, body)


class RayCheck:
    """Check with Ray's schema. Ray is imported in a thread, so that the program starts at once; the first check waits
    for it."""

    def __init__(self, load: Callable[[], tuple[str, type[BaseModel]]] | None = None) -> None:
        self._load = load or _load_ray
        self._schema: type[BaseModel] = _Shape
        self.by = "loading Ray"
        """Description of the check: a version of Ray, or the shape, with the reason."""
        self._thread = threading.Thread(target=self._import, daemon=True)
        self._thread.start()

    def __call__(self, body: object) -> str | None:
        """Ray's objection to a configuration, or None."""
        self._thread.join()
        return _find_error(self._schema, body)

    def _import(self) -> None:
        try:
            version, self._schema = self._load()
            self.by = f"Ray {version}"
        except Exception as error:
            # A broken installation can raise anything; `by` reports it, and answers continue.
            self.by = f"only the shape of the JSON, because Ray cannot be imported: {error}"


def _load_ray() -> tuple[str, type[BaseModel]]:
    schema: type[BaseModel] = importlib.import_module("ray.serve.schema").ServeDeploySchema
    return str(importlib.import_module("ray").__version__), schema


def _find_error(schema: type[BaseModel], body: object) -> str | None:
    try:
        schema.model_validate(body)
    except ValidationError as error:
        return repr(error)
    return None if isinstance(body, Mapping) else "not a JSON object"
