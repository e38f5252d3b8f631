"""The fields of pods and RayClusters that the stand-in reads."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["Cluster", "Objects", "Pod", "Unreachable", "cluster_of", "pod_of"]

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Pod:
    """A pod of a RayCluster."""

    namespace: str
    name: str
    uid: str
    owner: str
    """UID of the RayCluster that owns the pod."""
    is_head: bool
    group: str
    ip: str
    ready: bool
    """Phase Running and condition Ready."""
    restarts: int
    """Restarts of Ray's container."""
    dashboard_port: int | None
    """Port of Ray's dashboard; None if it listens on loopback only or is off."""
    token_mode: bool
    token_secret: tuple[str, str] | None
    """Name and key of the Secret that holds Ray's token."""


@dataclass(frozen=True)
class Cluster:
    """A RayCluster."""

    namespace: str
    name: str
    uid: str
    service: str
    """RayService that owns the cluster; empty if there is none."""
    head_service: str
    remembers: bool
    """GCS fault tolerance: configurations survive the loss of the head."""
    minimum: Mapping[str, int]
    """Minimum number of pods by worker group."""


class Objects(Protocol):
    """The API server, as the stand-in uses it."""

    def clusters(self) -> Sequence[Cluster]: ...

    def pods(self) -> Sequence[Pod]: ...

    def secret(self, namespace: str, name: str, key: str) -> str | None:
        """Return one value of a Secret; None if it does not exist. Raises Unreachable."""


class Unreachable(Exception):
    """The API server did not answer."""


def cluster_of(found: Mapping[str, Any]) -> Cluster:
    """Parse a RayCluster from the API server's JSON."""
    about, spec = found["metadata"], found.get("spec") or {}
    own_service = (spec.get("headGroupSpec") or {}).get("headService") or {}
    marked = str((about.get("annotations") or {}).get("ray.io/ft-enabled", "")).lower() == "true"
    return Cluster(
        namespace=about["namespace"],
        name=about["name"],
        uid=about["uid"],
        service=(about.get("labels") or {}).get("ray.io/originated-from-cr-name", ""),
        head_service=(own_service.get("metadata") or {}).get("name") or f"{about['name']}-head-svc",
        remembers=marked or spec.get("gcsFaultToleranceOptions") is not None,
        minimum={
            group["groupName"]: (group.get("minReplicas") or 0) * (group.get("numOfHosts") or 1)
            for group in spec.get("workerGroupSpecs") or ()
            if not group.get("suspend")
        },
    )


def pod_of(found: Mapping[str, Any]) -> Pod:
    """Parse a pod from the API server's JSON; Ray's container is the first one."""
    about, status = found["metadata"], found.get("status") or {}
    labels = about.get("labels") or {}
    container = found["spec"]["containers"][0]
    env = {entry["name"]: entry for entry in container.get("env") or ()}
    reference = (env.get("RAY_AUTH_TOKEN", {}).get("valueFrom") or {}).get("secretKeyRef")
    return Pod(
        namespace=about["namespace"],
        name=about["name"],
        uid=about["uid"],
        owner=next((owner["uid"] for owner in about.get("ownerReferences") or () if owner.get("controller")), ""),
        is_head=labels.get("ray.io/node-type") == "head",
        group=labels.get("ray.io/group", ""),
        ip=status.get("podIP", ""),
        ready=status.get("phase") == "Running" and _is_true(status, "Ready"),
        restarts=sum(
            entry.get("restartCount", 0)
            for entry in status.get("containerStatuses") or ()
            if entry["name"] == container["name"]
        ),
        dashboard_port=_find_dashboard_port(env.get("KUBERAY_GEN_RAY_START_CMD", {}).get("value", "")),
        token_mode=env.get("RAY_AUTH_MODE", {}).get("value") == "token",
        token_secret=(reference["name"], reference["key"]) if reference else None,
    )


def _is_true(status: Mapping[str, Any], condition: str) -> bool:
    return any(entry["type"] == condition and entry["status"] == "True" for entry in status.get("conditions") or ())


def _find_dashboard_port(command: str) -> int | None:
    options = dict(word[2:].split("=", 1) for word in shlex.split(command) if word.startswith("--") and "=" in word)
    hidden = options.get("dashboard-host") in LOOPBACK or options.get("include-dashboard", "").lower() == "false"
    return None if hidden else int(options.get("dashboard-port", 8265))
