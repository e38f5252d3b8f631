"""Build the files of `rayhelm render` as text by path. Pure: this module writes nothing.

<fleet>/plan.md                            the plan, for review
<fleet>/map.svg                            the nodes and what is in the memory of their GPUs, for review
<fleet>/shapes.svg                         chart of other shapes, with `review.alternatives`
<fleet>/network.md                         allowed connections, for review
<fleet>/<chart>/[<cluster>/]<release>.yaml values, one release each
<fleet>/argocd/...                         Applications of Argo CD, if the fleet has a section `gitops`
<fleet>/manifests/...                      Kubernetes objects under the same paths, with `--manifests`
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rayhelm.deploy.compose.fleet_values import compose_values
from rayhelm.deploy.render.argocd import CHART as ARGOCD
from rayhelm.deploy.render.argocd import ROOT_FILE, VALUES_FILE, build_argocd_values, build_root
from rayhelm.deploy.render.releases import Release, build_releases
from rayhelm.deploy.values.argocd import ArgocdValues
from rayhelm.deploy.values.emit import dump_yaml, select_changed
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.deploy.values.tenant import TenantValues
from rayhelm.fleet.load import load_fleet
from rayhelm.planner.alternative import Alternative
from rayhelm.planner.plan import Plan
from rayhelm.planner.planner import plan_fleet

__all__ = [
    "CHART",
    "Rendered",
    "build_files",
    "build_manifests",
    "format_mark",
    "list_paths",
    "locate_manifest",
    "render_fleet",
    "render_plan",
]

CHART = "ray-service"
MAP = "map.svg"
"""Nodes and GPUs, which plan.md shows."""
SHAPES = "shapes.svg"
"""Chart of the alternatives, which plan.md shows."""


@dataclass(frozen=True)
class Rendered:
    """A fleet with its plan, values and releases."""

    plan: Plan
    values: Mapping[str, RayServiceValues]
    """Values by service; the release has the name of the service."""
    tenants: Mapping[tuple[str, str], TenantValues]
    """Values by cluster and tenant."""
    releases: tuple[Release, ...]
    """Releases of all charts in the order of their installation."""
    argocd: ArgocdValues | None
    """Values of chart `argocd`; None if the fleet has no section `gitops`."""

    def namespace(self, service: str) -> str:
        """Return the namespace of the service: the one of its tenant, or `models`."""
        return self.plan.services[service].namespace

    def kubernetes(self, service: str) -> str:
        """Return the version of Kubernetes for a service, in the form of `helm template --kube-version`."""
        cluster = self.plan.services[service].cluster
        return f"{self.plan.declared.clusters[cluster].kubernetes}.0"


def render_fleet(path: Path) -> Rendered:
    """Plan the fleet file at `path` and build its values. Raises FleetError."""
    return render_plan(plan_fleet(load_fleet(path)))


def render_plan(plan: Plan) -> Rendered:
    """Build the values of a plan. Raises FleetError with all problems, each with its line."""
    with plan.source.joined():
        values = compose_values(plan)
        releases = build_releases(plan, values)
        argocd = build_argocd_values(plan, releases)
    return Rendered(plan, values.services, values.tenants, releases, argocd)


def build_files(rendered: Rendered) -> dict[str, str]:
    """Return the text of each file, by its path below the fleet's folder."""
    from rayhelm.deploy.render.fleet_map import draw_fleet_map
    from rayhelm.deploy.render.network_page import build_network_page
    from rayhelm.deploy.render.plan_page import plan_page

    found, chart = _draw_alternatives(rendered)
    pages = {
        "plan.md": plan_page(rendered.plan, rendered.tenants, found),
        MAP: draw_fleet_map(rendered.plan),
        "network.md": build_network_page(rendered.plan.fleet, rendered.releases),
    }
    return pages | {
        **chart,
        **{release.file: dump_yaml(release.values, _build_header(release, rendered)) for release in rendered.releases},
        **_build_argocd_files(rendered),
    }


def _draw_alternatives(rendered: Rendered) -> tuple[dict[str, list[Alternative]], dict[str, str]]:
    """Return other shapes of each model and their chart; nothing if the fleet file does not ask for them."""
    if not rendered.plan.declared.review.alternatives:
        return {}, {}
    from rayhelm.deploy.render.shapes_chart import draw_shapes
    from rayhelm.planner.alternatives import list_alternatives

    found = list_alternatives(rendered.plan)
    return found, {SHAPES: draw_shapes(rendered.plan, found)}


def _build_argocd_files(rendered: Rendered) -> dict[str, str]:
    if not rendered.argocd:
        return {}
    written = f"{format_mark(rendered)}; edit the fleet file, not this one."
    section = rendered.plan.declared.gitops
    assert section
    about = f"Values of chart {ARGOCD}: the Applications of the fleet, namespace `{section.namespace}`.\n{written}"
    header = f"# The Application that installs all others. Apply it once: kubectl apply -f root.yaml\n# {written}\n"
    return {
        VALUES_FILE: dump_yaml(rendered.argocd, about),
        ROOT_FILE: build_root(rendered.plan, rendered.argocd, header),
    }


def _build_header(release: Release, rendered: Rendered) -> str:
    cluster = f", cluster `{release.cluster}`" if len(rendered.plan.declared.clusters) > 1 else ""
    return (
        f"Values of chart {release.chart}: release `{release.name}` ({release.about}), namespace"
        f" `{release.namespace}`{cluster}.\n"
        f"{format_mark(rendered)}; edit the fleet file, not this one. plan.md has the reasons."
    )


def format_mark(rendered: Rendered) -> str:
    """Return the text in the header of each file that marks it as rendered."""
    return f"Written by `rayhelm render {Path(rendered.plan.source.file).name}`"


def list_paths(rendered: Rendered) -> set[str]:
    """Return the paths of all files with values or objects, whether they are written or not."""
    own = {VALUES_FILE, ROOT_FILE, f"manifests/{VALUES_FILE}"} if rendered.argocd else set()
    return own | {name for release in rendered.releases for name in (release.file, locate_manifest(release))}


def build_manifests(rendered: Rendered) -> dict[str, str]:
    """Return the rendered objects of each release by path. Raises FleetError with the violated rule of a chart."""
    from rayhelm.deploy.charts.helm import render

    header = f"# {format_mark(rendered)}; edit the fleet file, not this one.\n"
    texts = {
        locate_manifest(each): header
        + render(each.chart, each.name, each.namespace, select_changed(each.values), kube_version=each.kubernetes)
        for each in rendered.releases
    }
    if rendered.argocd and (section := rendered.plan.declared.gitops):
        text = render(ARGOCD, rendered.plan.fleet, section.namespace, select_changed(rendered.argocd))
        texts[f"manifests/{VALUES_FILE}"] = header + text
    return texts


def locate_manifest(release: Release) -> str:
    """Return the path of the rendered objects of a release."""
    return f"manifests/{release.file}"
