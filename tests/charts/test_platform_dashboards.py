"""Dashboards as objects: ConfigMaps for Grafana's sidecar, or GrafanaDashboards for the Grafana operator."""

import base64
import gzip
import json
import re
from typing import Any

import pytest
import yaml

from charts import kit
from charts.oracles import validator_of
from rayhelm.deploy.charts.helm import charts_dir
from rayhelm.errors import MissingError
from rayhelm.observe.bundled import list_panels
from rayhelm.observe.dashboards import load_dashboards
from testbed.tools.crds import crd_files

Object = dict[str, Any]

NAMES = sorted(load_dashboards())
URL = "https://git.example.com/docs/runbooks"
KIB = 1024


def rendered(**settings: Any) -> list[Object]:
    values = {"dashboards": {"kind": "ConfigMap", **settings}}
    return kit.rendered(
        values, chart="platform", base="platform/minimal", release="platform", namespace="rayhelm-system"
    )


def objects(kind: str, **settings: Any) -> dict[str, Object]:
    """Objects of the dashboards by name."""
    found = [
        item for item in rendered(kind=kind, **settings) if item["metadata"]["name"].startswith("platform-dashboard-")
    ]
    assert {item["kind"] for item in found} <= {kind}
    return {item["metadata"]["name"].removeprefix("platform-dashboard-"): item for item in found}


def jsons(kind: str, **settings: Any) -> dict[str, Object]:
    """Dashboards by name, parsed."""
    return {
        name: json.loads(item["spec"]["json"] if kind == "GrafanaDashboard" else item["data"][f"rayhelm-{name}.json"])
        for name, item in objects(kind, **settings).items()
    }


def panel_links(dashboard: Object) -> list[str]:
    of_panels = [link["url"] for panel in list_panels(dashboard) for link in panel.get("links", [])]
    return [*of_panels, *re.findall(r'"(\$\{runbooks\}/\$\{__value[^"]*)"', json.dumps(dashboard))]


def runbooks_variable(dashboard: Object) -> Object:
    (variable,) = [each for each in dashboard["templating"]["list"] if each["name"] == "runbooks"]
    found: Object = variable
    return found


def test_default_values_render_a_config_map_per_dashboard() -> None:
    values = yaml.safe_load((charts_dir() / "platform/values.yaml").read_text())
    assert values["dashboards"]["kind"] == "ConfigMap"
    found = objects("ConfigMap")
    assert sorted(found) == NAMES
    for item in found.values():
        assert item["metadata"]["labels"]["grafana_dashboard"] == "1"
        assert item["metadata"]["annotations"] == {"grafana_folder": "rayhelm"}
        assert item["metadata"]["namespace"] == "rayhelm-system"


def test_no_dashboard_is_rendered_with_kind_none() -> None:
    assert not [item for item in rendered(kind="None") if item["metadata"]["name"].startswith("platform-dashboard-")]


@pytest.mark.parametrize("kind", ["ConfigMap", "GrafanaDashboard"])
def test_dashboards_of_the_chart_are_those_of_the_repository(kind: str) -> None:
    folder = charts_dir().parent / "dashboards"
    for name, dashboard in jsons(kind, runbookUrl=URL).items():
        committed = json.loads((folder / f"{name}.json").read_text())
        runbooks_variable(committed).update(query=URL, hide=2)
        assert dashboard == committed


def test_grafana_dashboard_has_the_fields_of_its_crd() -> None:
    try:
        (file,) = [file for file in crd_files("grafana-operator") if file.stem.endswith("_grafanadashboards")]
    except MissingError as error:
        pytest.skip(str(error))
    for item in objects("GrafanaDashboard").values():
        validator_of(file, "v1beta1").validate(item)


def test_panels_link_to_the_runbook_url() -> None:
    for dashboard in jsons("ConfigMap", runbookUrl=URL).values():
        assert runbooks_variable(dashboard)["query"] == URL
        assert all(link.startswith("${runbooks}/") for link in panel_links(dashboard))
        assert panel_links(dashboard)


def test_panels_link_to_the_runbook_url_of_the_alerts() -> None:
    values = {"dashboards": {"kind": "ConfigMap"}, "prometheusRules": {"runbookUrl": URL}}
    found = kit.rendered(values, chart="platform", base="platform/minimal", release="platform", namespace="x")
    (item,) = [each for each in found if each["metadata"]["name"] == "platform-dashboard-service"]
    dashboard = json.loads(item["data"]["rayhelm-service.json"])
    assert runbooks_variable(dashboard)["query"] == URL
    assert panel_links(dashboard)


def test_panels_have_no_runbook_links_without_a_url() -> None:
    for dashboard in jsons("ConfigMap").values():
        assert panel_links(dashboard) == []


def test_excluded_dashboard_is_not_rendered() -> None:
    assert sorted(objects("ConfigMap", exclude=["gpu"])) == [name for name in NAMES if name != "gpu"]


def test_config_map_has_no_folder_annotation_without_a_folder() -> None:
    for item in objects("ConfigMap", folder="").values():
        assert "annotations" not in item["metadata"]


def test_object_is_small_enough_for_kubernetes_and_for_kubectl_apply() -> None:
    for name, item in objects("ConfigMap").items():
        # `kubectl apply` without --server-side keeps the object in an annotation, which is limited to 256 KiB.
        assert len(json.dumps(item)) < 200 * KIB, name


def test_release_is_small_enough_for_its_secret() -> None:
    """Helm keeps the chart and the manifest in one Secret, compressed; a Secret has at most 1 MiB."""
    folder = charts_dir() / "platform"
    files = {
        str(path.relative_to(folder)): base64.b64encode(path.read_bytes()).decode()
        for path in folder.rglob("*")
        if path.is_file()
    }
    release = json.dumps({"chart": files, "manifest": yaml.safe_dump_all(rendered())})
    assert len(base64.b64encode(gzip.compress(release.encode()))) < 700 * KIB
