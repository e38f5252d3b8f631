"""The doctor: `rayhelm doctor` in the cluster, which serves its findings as metrics."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.deploy.values.common.base import Name, Quantity, Values, WebUrl
from rayhelm.deploy.values.common.image import Digest, Repository, Tag
from rayhelm.deploy.values.common.labels import Labels, Namespace, ObjectName, Toleration
from rayhelm.deploy.values.common.pods import ImagePullSecret, PodSettings
from rayhelm.deploy.values.common.security import PodSecurityContext

__all__ = ["Doctor", "DoctorImage"]


class DoctorImage(Values):
    """Image with the command `rayhelm` and helm. None is published: the repository of rayhelm has a Dockerfile."""

    repository: Repository = ""
    """Name without tag; required if `enabled`."""
    tag: Tag = ""
    """Tag; `digest` overrides it."""
    digest: Digest = ""
    """Digest; empty for the tag."""


class DoctorLimits(Values):
    """Limits of the container."""

    cpu: Quantity = "1"
    """CPU cores."""
    memory: Quantity = "512Mi"
    """Memory."""


class DoctorRequests(Values):
    """Requests of the container."""

    cpu: Quantity = "50m"
    """CPU cores."""
    memory: Quantity = "256Mi"
    """Memory."""


class DoctorResources(Values):
    """Resources of the container."""

    limits: DoctorLimits = DoctorLimits()
    """Limits."""
    requests: DoctorRequests = DoctorRequests()
    """Requests."""


class Doctor(PodSettings):
    """Runs `rayhelm doctor` again and again. `rayhelm doctor FLEET --values IMAGE` writes these values."""

    enabled: bool = False
    """Run it. It only reads: its ClusterRole has `get` and `list` of the kinds that the checks read, and no Secrets."""
    image: DoctorImage = DoctorImage()
    """Image of the pod."""
    fleet: str = ""
    """The fleet file as text (`--set-file doctor.fleet=fleet.yaml`). Empty: only checks that need none."""
    measurements: str = ""
    """Text of the file that `measurements` of the fleet file names; required if it names one."""
    measurements_path: Annotated[
        str, Field(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$")
    ] = "measurements.yaml"
    """Path of that file, below the folder of the fleet file."""
    cluster: Name | Literal[""] = ""
    """Name of this cluster in the fleet file; empty for a fleet with one cluster."""
    secrets: dict[Namespace, list[ObjectName]] = {}
    """Secrets that it may read, by namespace: those that the fleet refers to. Without them the check of Secrets reports
    what it may not read."""
    prometheus_url: WebUrl = ""
    """Address of Prometheus. Empty: targets, rules and queries are not checked."""
    every_minutes: Annotated[int, Field(ge=1, le=1440)] = 10
    """Minutes between two runs."""
    resources: DoctorResources = DoctorResources()
    """Resources of the pod."""
    image_pull_secrets: list[ImagePullSecret] = []
    """Secrets with registry credentials."""
    pod_security_context: PodSecurityContext = PodSecurityContext(run_as_user=65532, run_as_group=65532, fs_group=65532)
    """User and groups of the pods."""
    node_selector: Labels = {}
    """Labels of the nodes for the pod."""
    tolerations: list[Toleration] = []
    """Tolerations of the pod."""
