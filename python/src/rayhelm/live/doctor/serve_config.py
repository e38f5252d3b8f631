"""The models of a RayService's `serveConfigV2`, which no API server checks: any JSON may be in this text."""

import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rayhelm.deploy.serve_models import list_engine_configs

__all__ = ["ModelConfig", "ServeConfigError", "list_models"]

_Count = Annotated[int, Field(ge=0, le=1_000_000)]
_Share = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]


class ServeConfigError(ValueError):
    """A field has another type than Ray Serve reads."""


class _Open(BaseModel):
    """Numbers may be texts, as Ray Serve reads them; fields that the doctor does not read may be anything."""

    model_config = ConfigDict(extra="ignore", frozen=True, protected_namespaces=())


class _Scaling(_Open):
    min_replicas: _Count | None = None
    max_replicas: _Count | None = None
    target_ongoing_requests: _Share | None = None


class _Deployment(_Open):
    autoscaling_config: _Scaling | None = None
    num_replicas: _Count | Literal["auto"] | None = None


class _PlacementGroup(_Open):
    bundles: tuple[dict[str, _Share], ...] | None = None


class _Loading(_Open):
    model_id: str | None = None


class ModelConfig(_Open):
    """What the doctor reads of the config of one model."""

    model_loading_config: _Loading | None = None
    deployment_config: _Deployment | None = None
    placement_group_config: _PlacementGroup | None = None

    @property
    def name(self) -> str:
        return (self.model_loading_config and self.model_loading_config.model_id) or "?"

    @property
    def scaling(self) -> _Scaling:
        return (self.deployment_config and self.deployment_config.autoscaling_config) or _Scaling()

    @property
    def most_replicas(self) -> int:
        """Replicas that the model may have."""
        stated = self.deployment_config.num_replicas if self.deployment_config else None
        return self.scaling.max_replicas or (stated if isinstance(stated, int) else 0) or 1

    @property
    def bundles(self) -> tuple[dict[str, float], ...]:
        return (self.placement_group_config and self.placement_group_config.bundles) or ()


def list_models(text: str) -> Iterator[ModelConfig | ServeConfigError]:
    """Yield each model of a config, or why it cannot be read. A text that is no JSON has none: it is not rayhelm's
    form, and the admission policy serve-config-form refuses it."""
    try:
        config = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return
    applications = config.get("applications") if isinstance(config, dict) else None
    if not isinstance(applications, list):
        return
    for number, application in enumerate(applications):
        if not isinstance(application, dict):
            yield ServeConfigError(f"applications.{number} is not an object")
            continue
        for config in list_engine_configs(application):
            yield _parse(config, number)


def _parse(config: dict[str, Any], application: int) -> ModelConfig | ServeConfigError:
    try:
        return ModelConfig.model_validate(config)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        path = ".".join(ascii(part)[:60].strip("'") for part in first["loc"])
        message = first["msg"][0].lower() + first["msg"][1:]
        return ServeConfigError(f"a model of applications.{application}: {path}: {message}")
