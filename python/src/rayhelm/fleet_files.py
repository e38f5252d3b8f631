"""What `rayhelm render` writes for a fleet, as text by path. Pure: nothing is written here.

<fleet>/plan.md                      the plan, for people and for review
<fleet>/ray-service/<service>.yaml   values, one release each
<fleet>/manifests/<service>.yaml     Kubernetes objects, when asked for
"""

from dataclasses import dataclass
from pathlib import Path

from rayhelm.planner.plan import Plan
from rayhelm.planner.planner import plan_fleet
from rayhelm.spec.load import LoadedFleet, load_fleet
from rayhelm.values.emit import as_yaml, changed
from rayhelm.values.from_plan import values_of_plan
from rayhelm.values.ray_service import RayServiceValues

__all__ = ["CHART", "Rendered", "files_of", "manifests_of", "mark_of", "render_fleet"]

CHART = "ray-service"


@dataclass(frozen=True)
class Rendered:
    """A fleet on its way through the house."""

    loaded: LoadedFleet
    plan: Plan
    values: dict[str, RayServiceValues]
    """By service, which is also the release's name."""

    def namespace(self, service: str) -> str:
        """Where the service lives: with its owner, or in `models`."""
        return self.plan.services[service].namespace

    def kubernetes(self, service: str) -> str:
        """Version of Kubernetes that the service runs on, as helm takes it."""
        cluster = self.plan.services[service].cluster
        return f"{self.loaded.fleet.clusters[cluster].kubernetes}.0"


def render_fleet(path: Path) -> Rendered:
    """Plan and value the fleet file at `path`. Raises FleetError."""
    loaded = load_fleet(path)
    plan = plan_fleet(loaded)
    return Rendered(loaded, plan, values_of_plan(plan, loaded))


def files_of(rendered: Rendered) -> dict[str, str]:
    """Text of each file, by its path below the fleet's folder."""
    from rayhelm.plan_page import plan_page

    files = {"plan.md": plan_page(rendered.plan)}
    for service, values in rendered.values.items():
        models = ", ".join(plan.model for plan in rendered.plan.of_service(service))
        planned = rendered.plan.services[service]
        cluster = f", cluster `{planned.cluster}`" if len(rendered.loaded.fleet.clusters) > 1 else ""
        header = (
            f"Values of chart {CHART}: release `{service}` ({models}), namespace `{planned.namespace}`{cluster}.\n"
            f"{mark_of(rendered)}; edit the fleet file, not this one. plan.md has the reasons."
        )
        files[f"{CHART}/{service}.yaml"] = as_yaml(values, header)
    return files


def mark_of(rendered: Rendered) -> str:
    """What stands in the head of each file, and tells later whose it is."""
    return f"Written by `rayhelm render {Path(rendered.loaded.document.file).name}`"


def manifests_of(rendered: Rendered) -> dict[str, str]:
    """What Helm makes of the values, by path. FleetError carries the rule that was broken."""
    from rayhelm.charts.helm import render

    header = f"# {mark_of(rendered)}; edit the fleet file, not this one.\n"
    return {
        f"manifests/{service}.yaml": header
        + render(
            CHART,
            service,
            rendered.namespace(service),
            changed(values),
            kube_version=rendered.kubernetes(service),
        )
        for service, values in rendered.values.items()
    }
