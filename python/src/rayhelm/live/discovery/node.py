"""A node as the API server returns it, with the parts that are read here."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from rayhelm.facts.quantities import read_quantity

__all__ = ["ClusterNode", "Condition", "NodeTaint"]


class _Part(BaseModel):
    """Unknown keys are ignored: the API server adds some with every version."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class NodeTaint(_Part):
    key: str
    value: str | None = None
    effect: str = ""


class Condition(_Part):
    """A condition: `Ready`."""

    type: str
    status: str = ""
    reason: str = "no reason given"


class _Metadata(_Part):
    name: str
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}

    @field_validator("labels", "annotations", mode="before")
    @classmethod
    def _read_null(cls, found: Any) -> Any:
        return found or {}


class _Spec(_Part):
    taints: tuple[NodeTaint, ...] = ()
    unschedulable: bool = False

    @field_validator("taints", mode="before")
    @classmethod
    def _read_null(cls, found: Any) -> Any:
        return found or ()


class _Status(_Part):
    allocatable: dict[str, str | int | float] = {}
    capacity: dict[str, str | int | float] = {}
    conditions: tuple[Condition, ...] = ()

    @field_validator("allocatable", "capacity", mode="before")
    @classmethod
    def _read_null(cls, found: Any) -> Any:
        return found or {}

    @field_validator("conditions", mode="before")
    @classmethod
    def _read_no_conditions(cls, found: Any) -> Any:
        return found or ()


class ClusterNode(_Part):
    metadata: _Metadata
    spec: _Spec = _Spec()
    status: _Status = Field(default=_Status())

    @field_validator("spec", "status", mode="before")
    @classmethod
    def _read_null(cls, found: Any) -> Any:
        return found or {}

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels

    @property
    def offered(self) -> dict[str, float]:
        """Allocatable resources as numbers."""
        return {key: float(read_quantity(value) or 0) for key, value in self.status.allocatable.items()}

    @property
    def capacity(self) -> dict[str, float]:
        """Resources as numbers, with those that are not allocatable."""
        return {key: float(read_quantity(value) or 0) for key, value in self.status.capacity.items()}

    @property
    def hindrance(self) -> str:
        """Why pods do not start on the node now; empty if they do."""
        ready = next((item for item in self.status.conditions if item.type == "Ready"), None)
        if ready and ready.status != "True":
            return f"it is not Ready ({ready.reason})"
        return "it is cordoned" if self.spec.unschedulable else ""
