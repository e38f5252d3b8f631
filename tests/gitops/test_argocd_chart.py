"""AppProjects, Applications and ApplicationSets of chart argocd, against Argo CD's CRDs and the other charts."""

import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
import yaml

from charts.each_chart import CHARTS, chart_of
from charts.kit import example, over, rendered
from charts.oracles import validator_of
from gitops.lua import CUSTOMIZATIONS, KINDS
from rayhelm.deploy.charts.argocd import load_allowed_kinds
from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.errors import FleetError, MissingError
from testbed.tools.crds import crd_files

ARGOCD = chart_of("argocd")
WAVE = "argocd.argoproj.io/sync-wave"
CRDS = {
    "Application": "application-crd.yaml",
    "AppProject": "appproject-crd.yaml",
    "ApplicationSet": "applicationset-crd.yaml",
}
Object = dict[str, Any]


def objects(name: str = "argocd/everything", overlay: Object | None = None) -> list[Object]:
    return rendered(overlay, chart="argocd", base=name, release="acme", namespace="argocd")


def of_kind(kind: str, name: str = "argocd/everything", overlay: Object | None = None) -> dict[str, Object]:
    return {item["metadata"]["name"]: item for item in objects(name, overlay) if item["kind"] == kind}


def validator(kind: str) -> jsonschema.Draft202012Validator:
    try:
        (path,) = [path for path in crd_files("argo-cd") if path.name == CRDS[kind]]
    except MissingError as error:
        pytest.skip(str(error))
    return validator_of(path, "v1alpha1")


def validate(item: Object) -> list[str]:
    return [error.message for error in validator(item["kind"]).iter_errors(item)]


@pytest.mark.parametrize("name", ARGOCD.examples)
def test_objects_match_the_crds_of_argo_cd(name: str) -> None:
    found = [item for item in objects(name) if item["kind"] in CRDS]
    assert found
    for item in found:
        assert validate(item) == [], item["metadata"]["name"]


def test_crds_refuse_an_unknown_field() -> None:
    application = next(iter(of_kind("Application").values()))
    assert validate(over(application, {"spec": {"syncPolicy": {"selfHeal": True}}}))


DELIVERED = [chart for chart in CHARTS if chart.name != "argocd"]


def project_of(chart: Any) -> str:
    return "platform" if chart.name in ("platform", "tenant") else "services"


def rendered_kinds(chart: Any) -> Iterator[tuple[str, str]]:
    """Yield the kinds that the examples of a chart render, each with its scope."""
    for name in chart.examples:
        release = "" if chart.name == "ray-service" else chart.release
        for item in rendered(chart=chart.name, base=name, release=release, namespace=chart.namespace):
            group = item["apiVersion"].rpartition("/")[0]
            scope = "namespaced" if item["metadata"].get("namespace") else "cluster"
            yield f"{group}/{item['kind']}".lstrip("/"), scope


def named_kinds(chart: Any) -> set[str]:
    """Return the kinds that templates of a chart name, with values that no example has too."""
    texts = [path.read_text() for path in (chart.folder / "templates").rglob("*.yaml")]
    found = [pair for text in texts for pair in re.findall(r"^apiVersion: (\S+)\nkind: (\w+)$", text, re.MULTILINE)]
    return {f"{version.rpartition('/')[0]}/{kind}".lstrip("/") for version, kind in found}


@pytest.mark.parametrize("chart", DELIVERED, ids=str)
def test_project_allows_what_its_charts_render(chart: Any) -> None:
    allowed = load_allowed_kinds()[project_of(chart)]
    for kind, scope in rendered_kinds(chart):
        assert kind in allowed[scope]


def test_project_allows_exactly_the_kinds_of_its_charts() -> None:
    """A kind that a template no longer has must leave the list."""
    kinds: dict[str, set[str]] = {"platform": set(), "services": set()}
    for chart in DELIVERED:
        kinds[project_of(chart)] |= named_kinds(chart) | {kind for kind, _ in rendered_kinds(chart)}
    allowed = load_allowed_kinds()
    assert {project: {*allowed[project]["cluster"], *allowed[project]["namespaced"]} for project in kinds} == kinds


def test_services_may_install_only_namespaces_for_the_whole_cluster() -> None:
    project = of_kind("AppProject")["acme-services"]
    # Of a release with createNamespace.
    assert project["spec"]["clusterResourceWhitelist"] == [{"group": "", "kind": "Namespace"}]
    assert {place["namespace"] for place in project["spec"]["destinations"]} == {"search", "ai-ml", "models", "gateway"}


def test_namespaces_that_argocd_creates_have_a_pod_security_level() -> None:
    for name, item in of_kind("Application").items():
        options = item["spec"]["syncPolicy"]
        if "CreateNamespace=true" in options["syncOptions"] and "managedNamespaceMetadata" not in options:
            assert name.startswith(("acme-cert-manager", "acme-kuberay")), "operators need more rights"
        elif "managedNamespaceMetadata" in options:
            labels = options["managedNamespaceMetadata"]["labels"]
            assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


def test_waves_are_operators_platform_tenants_services_gateway() -> None:
    waves = {name: int(item["metadata"]["annotations"][WAVE]) for name, item in of_kind("Application").items()}
    order = ["acme-cert-manager", "acme-kuberay", "acme-platform", "acme-tenant-search", "acme-audio", "acme-gateway"]
    found = [waves[name] for name in order]
    assert found == sorted(set(found))
    project_waves = {int(item["metadata"]["annotations"][WAVE]) for item in of_kind("AppProject").values()}
    assert max(project_waves) < min(found)


def test_releases_take_values_from_the_repository_by_ref() -> None:
    chart, values = of_kind("Application")["acme-audio"]["spec"]["sources"]
    assert values["ref"] == "values"
    files = ["ray-service/audio.yaml", "ray-service/shared.yaml"]
    assert chart["helm"]["valueFiles"] == [f"$values/fleets/acme/{file}" for file in files]
    assert chart["helm"]["releaseName"] == "audio"


@pytest.mark.parametrize("file", ["../other.yaml", "/etc/passwd", "a/../b.yaml"])
def test_further_file_outside_of_the_repository_is_refused(file: str) -> None:
    with pytest.raises(FleetError, match="otherFiles"):
        objects("argocd/minimal", {"releases": {"chat": {"otherFiles": [file]}}})


def test_application_has_its_annotations_beside_those_of_the_chart() -> None:
    found = {name: item["metadata"]["annotations"] for name, item in of_kind("Application").items()}
    subscription = {"notifications.argoproj.io/subscribe.on-sync-failed.slack": "serving"}
    assert found["acme-audio"] == found["acme-phi"] | subscription


def test_only_releases_remove_their_objects() -> None:
    finalizers = {name: item["metadata"].get("finalizers") for name, item in of_kind("Application").items()}
    operators = {f"acme-{name}" for name in example("argocd/everything")["operators"]}
    assert {name for name, found in finalizers.items() if not found} == operators


def test_sync_options_hold_for_every_application() -> None:
    for item in of_kind("Application").values():
        options = item["spec"]["syncPolicy"]["syncOptions"]
        assert {"ServerSideApply=true", "RespectIgnoreDifferences=true", "FailOnSharedResource=true"} <= {*options}


def test_chart_ignores_no_difference_by_default() -> None:
    found = of_kind("Application", "argocd/minimal").values()
    assert not any("ignoreDifferences" in item["spec"] for item in found)


def test_namespace_of_a_tenant_is_not_created_by_a_service() -> None:
    options = of_kind("Application")["acme-audio"]["spec"]["syncPolicy"]["syncOptions"]
    assert "CreateNamespace=true" not in options


def test_health_config_has_every_script() -> None:
    written = yaml.safe_load((charts_dir() / "argocd/files/argocd-cm.yaml").read_text())["data"]
    scripts = {
        f"resource.customizations.health.{kind.replace('/', '_')}": (CUSTOMIZATIONS / kind / "health.lua").read_text()
        for kind in KINDS
    }
    assert written == scripts


def test_managed_health_config_keeps_other_keys_and_stays() -> None:
    (config,) = of_kind("ConfigMap").values()
    assert config["metadata"]["name"] == "argocd-cm"
    options = config["metadata"]["annotations"]["argocd.argoproj.io/sync-options"]
    assert options == "ServerSideApply=true,Prune=false,Delete=false"
    assert not of_kind("ConfigMap", overlay={"health": {"manage": False}})


def test_smoke_test_runs_after_each_sync() -> None:
    pod = next(item for item in rendered({"suspend": False}) if item["kind"] == "Pod")
    annotations = pod["metadata"]["annotations"]
    assert annotations["argocd.argoproj.io/hook"] == "PostSync"
    assert annotations["helm.sh/hook"] == "test"


def test_argocd_runs_no_smoke_test_of_a_suspended_service() -> None:
    pod = next(item for item in rendered({"suspend": True}) if item["kind"] == "Pod")
    assert not any(key.startswith("argocd.argoproj.io/") for key in pod["metadata"]["annotations"])


def test_application_set_removes_the_objects_of_a_removed_release() -> None:
    (found,) = of_kind("ApplicationSet", "argocd/applicationset").values()
    releases = {name: item for name, item in of_kind("Application").items() if "finalizers" in item["metadata"]}
    wanted = {tuple(item["metadata"]["finalizers"]) for item in releases.values()}
    assert wanted == {tuple(found["spec"]["template"]["metadata"]["finalizers"])}


def test_application_set_stays_when_the_release_no_longer_has_it() -> None:
    (found,) = of_kind("ApplicationSet", "argocd/applicationset").values()
    annotations = found["metadata"]["annotations"]
    assert annotations["argocd.argoproj.io/sync-options"] == "Prune=false,Delete=false"
    assert annotations["helm.sh/resource-policy"] == "keep"


def test_application_set_names_existing_fields_only() -> None:
    """`missingkey=error` stops at a template that names a field without a value."""
    (found,) = of_kind("ApplicationSet", "argocd/applicationset").values()
    elements = found["spec"]["generators"][0]["list"]["elements"]
    text = yaml.safe_dump(found["spec"]["template"])
    for element in elements:
        for name in ("name", "chart", "cluster", "server", "destination", "release", "namespace", "file", "project"):
            assert name in element
            assert f"{{{{ .{name} }}}}" in text
    assert found["spec"]["goTemplateOptions"] == ["missingkey=error"]


def test_schema_of_the_crd_is_not_empty() -> None:
    with pytest.raises(jsonschema.ValidationError):
        validator("AppProject").validate({"kind": "AppProject"})
