"""Grafana dashboards, as objects that Grafana's sidecar or the Grafana operator reads."""

from typing import Annotated, Literal

from pydantic import Field

from rayhelm.deploy.values.common.base import Name, Values
from rayhelm.deploy.values.common.labels import Annotations, LabelKey, Labels

__all__ = ["Dashboards"]

DashboardName = Annotated[str, Field(pattern="^[a-z][a-z0-9-]*$")]
Text = Annotated[str, Field(max_length=200)]


class Dashboards(Values):
    """Grafana dashboards. They read any data source of type Prometheus, which is chosen in Grafana."""

    kind: Literal["ConfigMap", "GrafanaDashboard", "None"] = "ConfigMap"
    """`ConfigMap`: for the dashboard sidecar of Grafana's chart. `GrafanaDashboard`: for the Grafana operator, whose
    CRDs have to be installed. `None`: no dashboards; `rayhelm dashboards -o DIR` writes them as files."""
    namespace: Name | Literal[""] = ""
    """Namespace of the objects; empty for the namespace of the release. The sidecar reads other namespaces than its own
    only with `sidecar.dashboards.searchNamespace: ALL`."""
    labels: Labels = {"grafana_dashboard": "1"}
    """Labels of the objects. The sidecar selects by `sidecar.dashboards.label` of Grafana's chart."""
    annotations: Annotations = {}
    """Annotations of the objects."""
    folder: Text = "rayhelm"
    """Folder in Grafana; empty for none."""
    folder_annotation: LabelKey = "grafana_folder"
    """Annotation of ConfigMaps that holds the folder: `sidecar.dashboards.folderAnnotation` of Grafana's chart, which
    does not set it by default."""
    instance_selector: Annotated[Labels, Field(min_length=1)] = {"dashboards": "grafana"}
    """Labels of the Grafana objects that get the dashboards, for `GrafanaDashboard`. It cannot be changed later."""
    runbook_url: Annotated[str, Field(pattern=r"^(https?://[^\s@?#]*[^\s/@?#])?$")] = ""
    """URL of the folder with the runbooks, without a slash at the end, to which panels link. Empty:
    `prometheusRules.runbookUrl`, and no links if that is empty too."""
    exclude: list[DashboardName] = []
    """Dashboards to leave out: `ray-cluster`."""
