"""Watching and running it: scraping, budgets, the test."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.values.common.base import Name, Values
from rayhelm.values.common.labels import Annotations, Labels

__all__ = ["HelmTest", "PodDisruptionBudget", "PodMonitor", "ServiceAccount"]


class PodMonitor(Values):
    """Scraping by the Prometheus operator; needs its CRDs."""

    enabled: bool = False
    """On where the CRD `podmonitors.monitoring.coreos.com` is installed."""
    labels: Labels = {}
    """Labels by which your Prometheus finds it."""
    interval: Annotated[str, Field(pattern=r"^[0-9]+(ms|s|m)$")] = "15s"
    """Time between scrapes; vLLM's gauges vanish 20 s after it idles, so not much longer."""


class PodDisruptionBudget(Values):
    """Budgets for drains; the counts stand at `head.minAvailable` and at each group. A worker is ready
    once a Serve proxy runs on it, so those that only hold ranks of a replica elsewhere count as not ready: to drain a
    node of a replica over several pods, lift its budget (`minAvailable: 0`) for as long as it takes."""

    enabled: bool = True
    """Off: a drain may take every pod at once."""


class ServiceAccount(Values):
    """The identity of the pods; only the head gets its token, and only for the autoscaler."""

    create: bool = True
    """Off: the account named below is there already."""
    name: Annotated[Name, Field(max_length=50)] | Literal[""] = ""
    """Name, at most 50 characters, because KubeRay cuts longer ones; empty for the release's."""
    annotations: Annotations = {}
    """Annotations, as clouds want them for their own identities."""


class HelmTest(Values):
    """`helm test`: one token from every model that can give one. `/v1/models` would not notice a dead engine."""

    enabled: bool = True
    """Off: no test pod is rendered."""
    image: str = ""
    """Image with `wget`; empty for the serving image, which has it because KubeRay's probes need it."""
    timeout_seconds: Annotated[int, Field(ge=1)] = 120
    """Seconds for one answer."""
