"""Values of the chart `argocd`: one release holds the AppProjects and Applications of a fleet.

`values.schema.json`, `values.yaml` and the README table are generated from these models.
"""

from typing import Literal

from rayhelm.deploy.values.argocd.applications import Destination, Operator, ReleaseApplication
from rayhelm.deploy.values.argocd.project import Project
from rayhelm.deploy.values.argocd.sources import Charts, Repository
from rayhelm.deploy.values.argocd.sync import HealthChecks, IgnoredDifference, Sync
from rayhelm.deploy.values.common.base import Name
from rayhelm.deploy.values.common.release import ReleaseValues

__all__ = ["ArgocdValues"]


class ArgocdValues(ReleaseValues):
    """A fleet in Argo CD: where its values and charts are, and what is installed in which cluster."""

    repository: Repository = Repository()
    """Git repository with the files of `rayhelm render`."""
    charts: Charts = Charts()
    """Source of the charts of rayhelm."""
    clusters: dict[Name, Destination] = {}
    """Clusters by the name that `releases` and `operators` use."""
    releases: dict[Name, ReleaseApplication] = {}
    """Releases of the charts of rayhelm. The Application has the name `<release of this chart>-<name>`."""
    operators: dict[Name, Operator] = {}
    """Charts of others that are installed first: operators with their CRDs. Removing an entry removes the Application,
    and keeps its objects."""
    kind: Literal["Applications", "ApplicationSet"] = "Applications"
    """`Applications`: one Application for each release, ordered by sync waves. `ApplicationSet`: an ApplicationSet
    makes them, ordered by progressive syncs, which the ApplicationSet controller has to enable. Both revert manual
    changes, and remove the objects of a removed release. Argo CD keeps an ApplicationSet that the release no longer
    has: its services would be deleted with it."""
    project: Project = Project()
    """AppProjects: what the Applications may install."""
    sync: Sync = Sync()
    """How Applications are synchronized."""
    ignore_differences: dict[Name, IgnoredDifference] = {}
    """Fields that a controller owns and Argo CD must not revert, by any name. The charts of rayhelm need none: they
    leave out every field that a controller writes."""
    health: HealthChecks = HealthChecks()
    """Health checks of RayServices, RayClusters, RayJobs and Applications, as keys of the ConfigMap `argocd-cm`."""
