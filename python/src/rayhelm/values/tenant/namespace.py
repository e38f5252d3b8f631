"""The namespace: who makes it, its labels, and what its pods may ask of a node."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.values.common.base import Text, Values

__all__ = ["DefaultServiceAccount", "PodSecurity", "TenantNamespace"]

LABEL = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
Labels = dict[Annotated[str, Field(pattern=LABEL)], Text]


class TenantNamespace(Values):
    """The namespace that the tenant's services live in. It stays when the release goes, with its quota, its limits and
    the denial of traffic: only the rights go."""

    manage: bool = True
    """Makes the namespace and keeps its labels. The release itself lives in another one, out of the team's reach. Off:
    somebody else makes and labels it, and the release is installed into it."""
    name: Annotated[str, Field(pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$")] = ""
    """Its name, at most 63 characters; empty for the tenant's, or for the release's own namespace where `manage` is
    off."""
    labels: Labels = {}
    """Further labels."""
    annotations: Labels = {}
    """Annotations."""


class PodSecurity(Values):
    """Pod Security Standards, as labels of the namespace: enforced, warned about and audited alike."""

    level: Literal["restricted", "baseline"] = "restricted"
    """Profile. Everything of `ray-service` and `gateway` passes `restricted`."""
    version: Annotated[str, Field(pattern=r"^(latest|v1\.[0-9]+)$")] = "latest"
    """Kubernetes version whose profile is meant; `latest` grows stricter with the cluster."""
    reason: str = ""
    """Why it is not `restricted`; required for `baseline`, under which a team may run its pods as root."""


class DefaultServiceAccount(Values):
    """The service account `default`, which Kubernetes makes in every namespace."""

    manage: bool = True
    """Takes the token of the API server from pods that name no account. Kubernetes is quicker than Helm 3 in making the
    account, so Helm 3 needs a namespace that is there, and `--take-ownership`; see the README."""
