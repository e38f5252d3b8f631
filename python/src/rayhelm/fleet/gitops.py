"""Delivery by Argo CD: the section `gitops` of the fleet file."""

from typing import Literal

from pydantic import Field

from rayhelm.fleet.base import ListOf, PublicUrl, Record
from rayhelm.fleet.names import Name
from rayhelm.fleet.overrides import ChartValues

__all__ = ["Gitops", "OperatorName"]

OperatorName = Literal["kuberay", "gpu-operator", "keda", "prometheus-adapter", "cert-manager", "external-secrets"]


class FleetRepository(Record):
    """The Git repository that has the files of `rayhelm render`."""

    url: PublicUrl = Field(pattern=r"^\S+$", max_length=2048, examples=["https://git.example.com/ai/fleets.git"])
    """URL as Argo CD knows it, without credentials: Argo CD has them in a repository Secret."""
    revision: str = Field(default="main", pattern=r"^\S+$", examples=["main"])
    """Branch, tag or commit."""
    path: str = Field(default="", pattern=r"^(\S*[^\s/])?$", examples=["acme"])
    """Folder of this fleet in the repository; default: its root."""


class ChartSource(Record):
    """Source of the charts of rayhelm: a registry with `url` and `version`, or a folder of a Git repository."""

    url: PublicUrl = Field(default="", pattern=r"^\S*$", max_length=2048, examples=["registry.example.com/rayhelm"])
    """OCI registry (without `oci://`), Helm repository, or Git repository; default: the repository of the fleet."""
    path: str = Field(default="", pattern=r"^(\S*[^\s/])?$", examples=["charts"])
    """Folder with the charts in a Git repository."""
    version: str = Field(default="", pattern=r"^\S*$", examples=["0.2.0"])
    """Version of the charts, or branch, tag or commit; default: the revision of the repository of the fleet."""


class ArgoCdCluster(Record):
    """A cluster as Argo CD knows it: `server` or `name`."""

    server: PublicUrl = Field(default="", pattern=r"^(https?://\S+)?$", examples=["https://kubernetes.default.svc"])
    """URL of its API server."""
    name: str = Field(default="", pattern=r"^\S*$", examples=["edge-berlin"])
    """Its name in Argo CD."""


class Gitops(Record):
    """Argo CD installs the releases. `rayhelm render` then writes an Application for each of them."""

    repository: FleetRepository = Field(examples=[{"url": "https://git.example.com/ai/fleets.git", "path": "acme"}])
    charts: ChartSource = Field(default=ChartSource(), examples=[{"path": "charts"}])
    clusters: dict[Name, ArgoCdCluster] = Field(default={}, examples=[{"main": {"name": "prod"}}])
    """Clusters; default for a single one: the cluster of Argo CD itself."""
    operators: ListOf[OperatorName] = Field(default=("kuberay",), examples=[["kuberay", "keda"]])
    """Charts of others to install first, in every cluster. Leave out what is installed already."""
    namespace: Name = "argocd"
    """Namespace of Argo CD."""
    project: Name = "default"
    """AppProject of the root Application, which installs the others."""
    kind: Literal["Applications", "ApplicationSet"] = "Applications"
    """Form of the Applications; an ApplicationSet needs progressive syncs. Both revert manual changes."""
    manage_health: bool = False
    """Add the health checks to `argocd-cm`. Default: add them yourself, once."""
    values: ChartValues = Field(default={}, examples=[{"sync": {"retry": {"limit": 10}}}])
    """Overrides: values of the chart `argocd`, merged last, such as further kinds that a project may install. What the
    plan decides is refused."""
