"""Delivery by Argo CD: values of chart `argocd`, and the root Application that installs it.

argocd/argocd.yaml             values of chart argocd: an Application for each release
argocd/root.yaml               the Application to apply once
manifests/argocd/argocd.yaml   the Applications, with `--manifests`
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath

import yaml

from rayhelm.deploy.compose.origin import Origins
from rayhelm.deploy.compose.overrides import apply_overrides
from rayhelm.deploy.render.releases import Release
from rayhelm.deploy.values.argocd import ArgocdValues
from rayhelm.deploy.values.argocd.applications import Destination, Operator, ReleaseApplication
from rayhelm.deploy.values.argocd.sources import Charts, Repository
from rayhelm.deploy.values.argocd.sync import HealthChecks
from rayhelm.deploy.values.ray_service import RayServiceValues
from rayhelm.errors import Fix, FleetError, Problem
from rayhelm.facts.versions import versions
from rayhelm.fleet.fleet import UNOWNED
from rayhelm.fleet.gitops import Gitops
from rayhelm.fleet.problems import problem_at
from rayhelm.planner.plan import Plan

__all__ = ["CHART", "ROOT_FILE", "VALUES_FILE", "build_argocd_values", "build_root", "find_argocd_problems"]

CHART = "argocd"
VALUES_FILE = "argocd/argocd.yaml"
ROOT_FILE = "argocd/root.yaml"
HERE = "https://kubernetes.default.svc"


def build_argocd_values(plan: Plan, releases: Sequence[Release]) -> ArgocdValues | None:
    """Build the values; None without a section `gitops`. Raises FleetError."""
    section = plan.declared.gitops
    if not section:
        return None
    if problems := list(find_argocd_problems(plan)):
        raise FleetError(problems)
    values = ArgocdValues(
        repository=Repository(**section.repository.model_dump()),
        charts=Charts(**section.charts.model_dump()),
        clusters=_build_clusters(section, {release.cluster for release in releases}),
        releases={_build_name(each, plan): _build_release(each) for each in releases},
        operators=dict(_build_operators(plan, section, sorted({release.cluster for release in releases}))),
        kind=section.kind,
        health=HealthChecks(manage=section.manage_health),
    )
    return apply_overrides(values, Origins("argocd", plan.fleet, "", plan))


def find_argocd_problems(plan: Plan) -> Iterator[Problem]:
    """Yield Applications that would point nowhere."""
    section = plan.declared.gitops
    if not section:
        return
    charts, repository = section.charts, section.repository
    if not charts.path and charts.url in ("", repository.url):
        message = "`charts` names neither a registry nor a folder of the repository, so no Application finds its chart"
        fix = Fix("charts", {"path": "charts"}, "after `cp -r $(rayhelm charts) charts`; or `url` and `version`")
        yield problem_at(("gitops",), message, fix)
    elif not charts.path and not charts.version:
        message = f"`charts.url` {charts.url} is a registry, and there is no `version`"
        from rayhelm import __version__

        yield problem_at(("gitops", "charts"), message, Fix("version", __version__))
    for key, text in {"repository.path": repository.path, "charts.path": charts.path}.items():
        if text.startswith("/") or ".." in PurePosixPath(text).parts:
            message = f"`{text}` is not a folder below the root of the repository"
            fix = Fix("", "charts" if key.startswith("charts") else plan.declared.fleet)
            yield problem_at(("gitops", *key.split(".")), message, fix)
    yield from _find_destination_problems(plan, section)


def _find_destination_problems(plan: Plan, section: Gitops) -> Iterator[Problem]:
    for name, destination in section.clusters.items():
        path = ("gitops", "clusters", name)
        if name not in plan.declared.clusters:
            known = ", ".join(plan.declared.clusters)
            fix = Fix("clusters", {next(iter(plan.declared.clusters)): {"server": HERE}})
            yield problem_at(path, f"there is no cluster `{name}` (known: {known})", fix)
        elif bool(destination.server) == bool(destination.name):
            count = "both `server` and `name`" if destination.server else "neither `server` nor `name`"
            message = f"{count} is set; Argo CD needs exactly one"
            yield problem_at(path, message, Fix("", {"server": HERE}))
    missing = [name for name in plan.declared.clusters if name not in section.clusters]
    if missing and len(plan.declared.clusters) > 1:
        message = (
            f"there are {len(plan.declared.clusters)} clusters, and `gitops.clusters` has none for {', '.join(missing)}"
        )
        fix = Fix("clusters", {name: {"name": name} for name in missing}, "their names in Argo CD")
        yield problem_at(("gitops",), message, fix)


def _build_clusters(section: Gitops, clusters: set[str]) -> dict[str, Destination]:
    given = {name: Destination(**each.model_dump()) for name, each in section.clusters.items()}
    return {name: given.get(name) or Destination(server=HERE) for name in sorted(clusters)}


def _build_name(release: Release, plan: Plan) -> str:
    """Return a name that is unique in the fleet: `service-chat`, `platform`, `tenant-edge-search`."""
    kind = {"ray-service": "service"}.get(release.chart, release.chart)
    cluster = release.cluster if len(plan.declared.clusters) > 1 and release.chart != "ray-service" else ""
    name = release.name if release.chart in ("ray-service", "tenant") else ""
    return "-".join(part for part in (kind, cluster, name) if part)


def _build_release(release: Release) -> ReleaseApplication:
    others: set[str] = set()
    if isinstance(release.values, RayServiceValues):
        others = {alias.namespace for alias in release.values.aliases.values() if alias.namespace}
    return ReleaseApplication(
        chart=release.chart,
        cluster=release.cluster,
        release=release.name,
        namespace=release.namespace,
        file=release.file,
        create_namespace=release.chart != "ray-service" or release.namespace == UNOWNED,
        other_namespaces=sorted(others - {release.namespace}),
    )


def _build_operators(plan: Plan, section: Gitops, clusters: Sequence[str]) -> Iterator[tuple[str, Operator]]:
    for name in dict.fromkeys(section.operators):
        pinned = versions().charts[name]
        for cluster in clusters:
            version = pinned.version or plan.declared.clusters[cluster].kuberay
            yield (
                f"{name}-{cluster}" if len(plan.declared.clusters) > 1 else name,
                Operator(
                    cluster=cluster,
                    url=pinned.repository,
                    chart=pinned.chart,
                    version=version,
                    release=pinned.chart,
                    namespace=_choose_namespace(name, cluster, plan) or pinned.namespace,
                    wave=pinned.wave,
                    values={**pinned.values, **_build_operator_values(name, cluster, plan)},
                ),
            )


def _choose_namespace(name: str, cluster: str, plan: Plan) -> str:
    """Return the namespace that the fleet decides; empty if it decides none."""
    declared = plan.declared.clusters[cluster]
    if name == "kuberay":
        return declared.kuberay_operator.namespace
    return declared.gpu_operator.namespace if name == "gpu-operator" and declared.gpu_operator else ""


def _build_operator_values(name: str, cluster: str, plan: Plan) -> Mapping[str, object]:
    """Return what the fleet decides of an operator's values."""
    declared = plan.declared.clusters[cluster]
    if name == "gpu-operator" and declared.gpu_operator and declared.gpu_operator.cluster_policy:
        return {"clusterPolicy": {"deployCR": False}}
    if name == "prometheus-adapter" and declared.prometheus:
        scheme, _, rest = declared.prometheus.url.partition("://")
        host, _, port = rest.partition("/")[0].partition(":")
        url = f"{scheme}://{host}"
        return {"prometheus": {"url": url, "port": int(port or {"https": 443}.get(scheme, 80))}}
    return {}


def build_root(plan: Plan, values: ArgocdValues, header: str) -> str:
    """Return the root Application as YAML: it installs chart `argocd` with the values of this fleet."""
    section = plan.declared.gitops
    assert section
    charts, repository = values.charts, values.repository
    file = "/".join(part for part in (repository.path, VALUES_FILE) if part)
    chart = {"path": f"{charts.path}/{CHART}"} if charts.path else {"chart": CHART}
    application = {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Application",
        "metadata": {"name": plan.declared.fleet, "namespace": section.namespace},
        "spec": {
            "project": section.project,
            "destination": {"server": HERE, "namespace": section.namespace},
            "sources": [
                {
                    "repoURL": charts.url or repository.url,
                    **chart,
                    "targetRevision": charts.version or repository.revision,
                    "helm": {"releaseName": plan.declared.fleet, "valueFiles": [f"$values/{file}"]},
                },
                {"repoURL": repository.url, "targetRevision": repository.revision, "ref": "values"},
            ],
            "syncPolicy": {
                "automated": {"prune": True, "selfHeal": True},
                "retry": {"limit": 5, "backoff": {"duration": "10s", "factor": 2, "maxDuration": "5m"}},
                "syncOptions": ["ServerSideApply=true", "FailOnSharedResource=true", "PruneLast=true"],
            },
        },
    }
    return header + yaml.safe_dump(application, sort_keys=False, width=110)
