"""A CronJob that repeats `rayhelm probe`."""

from typing import Annotated

from pydantic import Field

from rayhelm.deploy.values.common.base import Values
from rayhelm.deploy.values.common.image import Digest, PullPolicy, Repository, Tag
from rayhelm.deploy.values.common.labels import Namespace
from rayhelm.deploy.values.common.pods import ImagePullSecret
from rayhelm.deploy.values.common.security import PodSecurityContext

__all__ = ["Probe", "ProbeImage"]


ImageName = Annotated[str, Field(pattern=r"^[^\s@]+(:[^\s:/@]+|@sha256:[0-9a-f]{64})$")]
"""REPOSITORY:TAG or REPOSITORY@DIGEST."""


class ProbeImage(Values):
    """Image with the Python package `rayhelm[cluster]`."""

    repository: Repository = ""
    """Repository; required if the probe is enabled."""
    tag: Tag = ""
    """Tag; `digest` overrides it."""
    digest: Digest = ""
    """Digest; empty for the tag."""
    pull_policy: PullPolicy = "IfNotPresent"
    """When the kubelet pulls the image."""


class Probe(Values):
    """Repeats `rayhelm probe`, which writes the ConfigMap `rayhelm-measurements`. Off by default: its Jobs use free
    GPUs. The objects are those of `rayhelm probe FLEET --setup`."""

    enabled: bool = False
    """Create the CronJob and the objects that it needs."""
    namespace: Namespace = "rayhelm-probe"
    """Namespace of all these objects, which the chart creates with Pod Security `restricted`. Nothing else belongs
    there: the account of the probe may create Jobs in it."""
    images: list[ImageName] = []
    """Images of the pools, which the Jobs may have; required if the probe is enabled. An admission policy refuses
    others. `global.imageRegistry` moves them too, and the CronJob then starts its Jobs from there."""
    image_pull_secrets: list[ImagePullSecret] = []
    """Secrets with registry credentials, in the namespace of the probe. The accounts of the pods have them, because the
    admission policy refuses Jobs that name Secrets."""
    pod_security_context: PodSecurityContext = PodSecurityContext(run_as_user=65532, run_as_group=65532, fs_group=65532)
    """User and groups of the pod of the CronJob. Without `runAsUser` the pods of its Jobs have none either."""
    schedule: Annotated[str, Field(pattern=r"^\S+( \S+){4}$|^@(yearly|monthly|weekly|daily|hourly)$")] = "0 3 * * 0"
    """Cron expression, in the time zone of the cluster."""
    image: ProbeImage = ProbeImage()
    """Image of the CronJob. Its Jobs have the images of the pools."""
    fleet: str = ""
    """Text of the fleet file, whose pools are measured."""
    cluster: str = ""
    """Name of this cluster in the fleet file; empty if the fleet has one."""
    cpu: bool = False
    """Measure CPUs and the network between them only; requests no GPU."""
    timeout_minutes: Annotated[int, Field(ge=1, le=120)] = 10
    """Time for each Job."""
