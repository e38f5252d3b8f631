"""The namespace: its labels, Pod Security and default service account."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.deploy.values.common.base import Text, Values

__all__ = ["DefaultServiceAccount", "PodSecurity", "TenantNamespace"]

LABEL = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
Labels = dict[Annotated[str, Field(pattern=LABEL)], Text]


class TenantNamespace(Values):
    """The namespace of the tenant's services. An uninstall keeps it, with its quota, limits and default denial of
    traffic, and removes the rights."""

    manage: bool = True
    """Create the namespace and its labels. The release is installed into another namespace, which the team cannot read.
    False: another tool creates and labels the namespace, and the release is installed into it."""
    name: Annotated[str, Field(pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$")] = ""
    """Name, at most 63 characters. Empty: the name of the tenant, or the release's own namespace if `manage` is
    false."""
    labels: Labels = {}
    """Additional labels."""
    annotations: Labels = {}
    """Additional annotations."""


class PodSecurity(Values):
    """Pod Security Standards, as labels of the namespace, for the modes enforce, warn and audit."""

    level: Literal["restricted", "baseline"] = "restricted"
    """Level. All pods of `ray-service` and `gateway` pass `restricted`."""
    version: Annotated[str, Field(pattern=r"^(latest|v1\.[0-9]+)$")] = "latest"
    """Kubernetes version of the level. `latest` can become stricter when the cluster is upgraded."""
    reason: str = ""
    """Why the level is not `restricted`; required for `baseline`, which lets the team run pods as root."""


class DefaultServiceAccount(Values):
    """The service account `default`, which Kubernetes creates in every namespace."""

    manage: bool = True
    """Do not mount the API token in pods that name no service account. Kubernetes creates the account before Helm 3
    does, so Helm 3 needs an existing namespace and `--take-ownership`; see the README."""
