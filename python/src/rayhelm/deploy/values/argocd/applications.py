"""Applications: releases of the charts of rayhelm, and operators."""

from typing import Annotated, Any, Literal

from pydantic import Field

from rayhelm.deploy.values.argocd.sources import Url
from rayhelm.deploy.values.common.base import Name, Text, Values, WebUrl
from rayhelm.deploy.values.common.labels import Annotations, Namespace

__all__ = ["Destination", "Operator", "ReleaseApplication"]

Wave = Annotated[int, Field(ge=-100, le=100)]


class Destination(Values):
    """A cluster that Argo CD knows: exactly one of both keys is required."""

    server: WebUrl = ""
    """URL of its API server. The cluster of Argo CD itself is `https://kubernetes.default.svc`."""
    name: Annotated[str, Field(pattern=r"^\S*$")] = ""
    """Name of the cluster in Argo CD."""


class ReleaseApplication(Values):
    """A release of one of the charts of rayhelm."""

    chart: Literal["platform", "tenant", "ray-service", "gateway"]
    """Chart."""
    cluster: Name
    """Cluster, a key of `clusters`."""
    release: Name
    """Name of the Helm release."""
    namespace: Namespace
    """Namespace of the release."""
    file: Annotated[str, Field(pattern=r"^\S+$")]
    """File with its values, below `repository.path`."""
    other_files: list[Annotated[str, Field(pattern=r"^(\w[\w.-]*/)*\w[\w.-]*$")]] = []
    """Further files with values, below `repository.path`; a later one takes precedence. Not for an ApplicationSet."""
    annotations: Annotations = {}
    """Annotations of the Application, such as those of Argo CD's notifications. Not for an ApplicationSet."""
    create_namespace: bool = False
    """Create the namespace. Not for the namespace of a tenant: its chart creates and labels it."""
    other_namespaces: list[Namespace] = []
    """Other namespaces in which the release has objects: those of `aliases` of chart `ray-service`."""


class Operator(Values):
    """A chart of others."""

    cluster: Name
    """Cluster, a key of `clusters`."""
    url: Url
    """URL of the Helm repository, OCI registry (without `oci://`) or Git repository."""
    chart: Text = ""
    """Name of the chart in a Helm repository or OCI registry. Empty for a Git repository."""
    path: Annotated[str, Field(pattern=r"^[^\s]*$")] = ""
    """Folder of the chart in a Git repository."""
    version: Text
    """Version of the chart, or branch, tag or commit."""
    release: Name
    """Name of the Helm release."""
    namespace: Namespace
    """Namespace of the operator; it is created."""
    wave: Wave = -30
    """Sync wave. Releases of rayhelm have: platform -20, tenants -10, services 0, gateway 10."""
    values: dict[str, Any] = {}
    """Values of the chart."""
