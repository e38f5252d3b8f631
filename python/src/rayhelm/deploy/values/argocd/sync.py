"""How Argo CD synchronizes, compares and judges."""

from typing import Annotated

from pydantic import Field

from rayhelm.deploy.values.common.base import Text, Values

__all__ = ["HealthChecks", "IgnoredDifference", "Sync"]

Duration = Annotated[str, Field(pattern=r"^[1-9][0-9]*[smh]$")]


class Retry(Values):
    """Retries of a sync that failed."""

    limit: Annotated[int, Field(ge=0, le=100)] = 5
    """Number of retries."""
    delay: Duration = "10s"
    """Time before the first one; it doubles up to `maxDelay`."""
    max_delay: Duration = "5m"
    """Longest time between two."""


class Sync(Values):
    """Settings of all Applications."""

    automated: bool = True
    """Synchronize when the repository changes. False: a person starts each sync, but of an ApplicationSet its
    controller does."""
    prune: bool = True
    """Remove objects that the repository no longer has, after all others are healthy."""
    self_heal: bool = True
    """Revert manual changes in the cluster. An ApplicationSet with progressive syncs always does."""
    server_side_diff: bool = True
    """Compare by a dry run of the API server, so that defaults and admission do not count as differences. Stable since
    Argo CD 3.1."""
    retry: Retry = Retry()
    """Retries of a failed sync, for example while a webhook is not ready yet."""


class IgnoredDifference(Values):
    """A field that a controller owns."""

    group: Text = ""
    """API group; empty for the core group."""
    kind: Text
    """Kind."""
    json_pointers: list[Text] = []
    """Paths such as `/spec/replicas`."""
    jq_path_expressions: list[Text] = []
    """Expressions such as `.webhooks[].clientConfig.caBundle`."""
    managed_fields_managers: list[Text] = []
    """Field managers whose fields are ignored."""
    reason: Text
    """Which controller owns the field."""


class HealthChecks(Values):
    """Argo CD 3 has no health check for `ray.io`: without these a RayService is Healthy at once."""

    manage: bool = False
    """Apply them to `argocd-cm` by server-side apply, and keep its other keys. Only if nothing else manages that
    ConfigMap as a whole. False: paste the file that NOTES names."""
