"""Edits of a RayService and what KubeRay did with each: `observed/<version>.yaml`.

A test makes every edit on a real API server with the real operator, and compares the result with these files.
`compact.py` writes the table of the package from them.
"""

from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import Field, model_validator

from rayhelm.deploy.charts.helm import Loader
from rayhelm.facts.closed import Closed

__all__ = [
    "FOLDER",
    "EditCase",
    "EditStep",
    "Observation",
    "ObservationTable",
    "ObservedEdit",
    "OperatorState",
    "Outcome",
    "PodCounts",
    "Progression",
    "ServePut",
    "list_versions",
    "load_observations",
]

FOLDER = Path(__file__).parent / "observed"

Outcome = Literal[
    "nothing",  # no RayCluster, Service or pod changed, and Ray received nothing
    "serve config",  # Ray received a configuration, and nothing else changed
    "in place",  # the active RayCluster was changed and went on serving
    "beside",  # Services or labels of pods changed, and no RayCluster
    "new cluster",  # another RayCluster was created and took over
    "new cluster, waiting",  # another RayCluster was created and has not taken over
    "suspended",  # every RayCluster was deleted, because `spec.suspend` is true
    "invalid",  # the operator reports the RayService as invalid and stops reconciling it
    "refused",  # the API server refused the edit
]

OperatorState = Literal["runs", "restarts", "other takes over", "takes over from other"]
"""The operator while the edit is made. In every state but `runs` it is stopped. Then the same one starts, or one of
another version replaces the one under test, or the one under test replaces the other."""


class EditStep(Closed):
    """One action. The next one follows when the operator has reconciled."""

    patch: dict[str, Any] | list[dict[str, Any]] | None = None
    """Patch of the RayService: a merge patch, or a JSON patch if it is a list."""
    scale: dict[str, int] = {}
    """Workers by group, written into the active RayCluster as Ray's autoscaler does."""
    ray: Literal["", "fails", "heals"] = ""
    """`fails`: applications of every RayCluster created from now on end in DEPLOY_FAILED; `heals`: they run."""

    @model_validator(mode="after")
    def _check_one_action(self) -> Self:
        if sum(map(bool, (self.patch, self.scale, self.ray))) != 1:
            raise ValueError("a step is one of patch, scale and ray")
        return self


class EditCase(Closed):
    """An edit of a RayService that is Ready."""

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,39}$")]
    edit: str
    """Description."""
    before: tuple[EditStep, ...] = ()
    """Steps from the chart's RayService to the one that is edited."""
    operator: OperatorState = "runs"
    steps: tuple[EditStep, ...] = ()
    """The edit; empty if only the operator changes."""
    varies: tuple[str, ...] = ()
    """Fields of `Observation` that differ between runs: they depend on which of two objects the operator sees first."""


class Progression(Closed):
    """A count before the edit, its extreme value during the edit, and its value when the operator has reconciled."""

    before: int
    during: int
    after: int


class PodCounts(Closed):
    """Pods of the head or of a group, before the edit and after."""

    kept: int = 0
    """The same pods, by UID."""
    added: int = 0
    removed: int = 0


class ServePut(Closed):
    """A Serve configuration that the operator sent to Ray."""

    to: str
    """RayCluster."""
    config: Literal["first", "edited", "other"]
    """`first`: the one before the edit, whether or not it was edited."""
    status: int
    """HTTP status of Ray's answer."""
    repeated: bool = False


class Observation(Closed):
    """What happened. RayClusters are named `<rs>-1`, `<rs>-2`, ... in the order of their creation; `<rs>` is the
    RayService."""

    outcome: Outcome
    messages: tuple[str, ...] = ()
    """Message of a refusal, and warnings of the API server."""
    active_clusters: tuple[str, str]
    """Active RayCluster, before and after."""
    hash: Literal["kept", "changed"]
    """Hash of the active RayCluster: that of the specification from which the operator created it."""
    clusters: Progression
    """RayClusters; `during` is the maximum."""
    gpus: Progression
    """GPUs of pods that are bound to a node; `during` is the maximum."""
    endpoints: Progression
    """Pods that are Ready and that the Service for traffic selects; `during` is the minimum."""
    reported_endpoints: int
    """`numServeEndpoints` of the RayService's status after the edit."""
    conditions: tuple[str, ...]
    """Conditions of the RayService before the edit, and each change of one, with reasons."""
    errors: tuple[str, ...] = ()
    """Errors with which the operator's last reconciliations end repeatedly; the beginning of each."""
    puts: tuple[ServePut, ...] = ()
    pods: dict[str, PodCounts]
    """By `head` or the name of the group."""
    changed: dict[str, dict[str, tuple[Any, Any]]]
    """Object to path to old and new value, as the API server stores them; null for a value that does not exist.

    The RayService and kept pods are compared without status, the active RayCluster also if another one has replaced it.
    Generated names, UIDs, times and hashes are left out.
    """


class ObservedEdit(EditCase):
    """An edit and what it did."""

    kuberay: str
    """Version of the operator under test."""
    other_version: str = ""
    """Version of the other operator, if there is one."""
    command: str = ""
    """Command that observes it, if it is not that of the table."""
    observed: Observation | Literal["no"]
    reason: str = ""
    """Why it was not observed."""
    status_shows: Outcome | None = None
    """Outcome that the status of a RayService shows that was not observed to its end."""

    @model_validator(mode="after")
    def _check_reason(self) -> Self:
        if (self.observed == "no") != bool(self.reason):
            raise ValueError(f"{self.id}: a row has a reason if, and only if, it was not observed")
        return self


class ObservationTable(Closed):
    """One file."""

    kuberay: str
    """Version of the operator."""
    kubernetes: str
    """Version of the API server."""
    command: str
    """Command that observes the rows and writes them."""
    values: dict[str, Any]
    """Values of chart `ray-service`; its RayService is edited."""
    rows: tuple[ObservedEdit, ...]


@cache
def load_observations(kuberay: str) -> ObservationTable | None:
    """Return what an operator of this version did; None if it was not observed."""
    file = FOLDER / f"{kuberay}.yaml"
    return ObservationTable.model_validate(yaml.load(file.read_bytes(), Loader=Loader)) if file.is_file() else None


def list_versions() -> list[str]:
    """Versions of KubeRay that were observed."""
    return sorted(file.stem for file in FOLDER.glob("*.yaml"))
