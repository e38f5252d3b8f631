"""A CronJob that repeats `rayhelm probe`."""

from typing import Annotated

from pydantic import Field

from rayhelm.values.common.base import Cidr, Values
from rayhelm.values.common.image import Digest, PullPolicy

__all__ = ["Probe", "ProbeImage"]


class ProbeImage(Values):
    """Image with the Python package `rayhelm[cluster]`."""

    repository: str = ""
    """Repository; required if the probe is enabled."""
    tag: str = ""
    """Tag; `digest` overrides it."""
    digest: Digest = ""
    """Digest; empty for the tag."""
    pull_policy: PullPolicy = "IfNotPresent"
    """When the kubelet pulls the image."""


class Probe(Values):
    """Repeats `rayhelm probe`, which writes the ConfigMap `rayhelm-measurements`. Off by default: its Jobs use free
    GPUs. The objects are those of `rayhelm probe --setup`, in the namespace of the release."""

    enabled: bool = False
    """Create the CronJob and the objects that it needs."""
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
    api_server_cidrs: list[Cidr] = []
    """Addresses of the API server, which the CronJob may reach; required if the probe is enabled."""
