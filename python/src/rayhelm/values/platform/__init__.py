"""Values of the chart `platform`: one release is what a cluster has once, under all of its services.

The one place where they are typed: `values.schema.json`, `values.yaml` and the README table are written from here. Each
section is a module of its own, and a folder of the same name among the chart's templates.
"""

from typing import Annotated, Any

from pydantic import Field

from rayhelm.values.common.base import Values
from rayhelm.values.common.labels import ObjectName
from rayhelm.values.platform.classes import PriorityClasses, RuntimeClass
from rayhelm.values.platform.gpus import Amd, Intel, Nvidia
from rayhelm.values.platform.metrics import Metrics
from rayhelm.values.platform.policies import Policies

__all__ = ["PlatformValues"]


class PlatformValues(Values):
    """A cluster: its classes of pods."""

    global_: Annotated[dict[str, Any], Field(alias="global")] = {}
    """Helm hands a parent chart's globals down here; this chart reads none of them."""
    priority_classes: PriorityClasses = PriorityClasses()
    """Who gives way to whom where room is short. Kubernetes changes no value of a class that is there: take another
    name with another value."""
    runtime_classes: dict[ObjectName, RuntimeClass] = {}
    """RuntimeClasses by name, for clusters where nobody else makes them: NVIDIA's GPU operator and k3s make `nvidia`
    themselves."""
    nvidia: Nvidia = Nvidia()
    """NVIDIA's cards: what its GPU operator is told."""
    amd: Amd = Amd()
    """AMD's cards: what its GPU operator is told."""
    intel: Intel = Intel()
    """Intel's cards: what its device plugin operator is told."""
    metrics: Metrics = Metrics()
    """Metrics that scale the gateway and workloads of yours."""
    policies: Policies = Policies()
    """What the API server refuses. `rayhelm lint` says the same before anything reaches it."""
